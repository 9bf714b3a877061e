"""A broker: what it does with a message, as effects.

It performs nothing itself and reads no clock: `handle` is all there is. The same broker runs behind sockets and in the
simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Final, NamedTuple, TypeAlias

from vestnik.broker.announcements import Announcements, wishes
from vestnik.broker.clients import Client, Clients
from vestnik.broker.effects import (
    Appended,
    ClockSet,
    Consulted,
    Drained,
    Effect,
    Full,
    Gone,
    Joined,
    Joining,
    LinkDown,
    LinkUp,
    LogRead,
    NotAppended,
    Seen,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.fetches import Fetches
from vestnik.broker.intake import Intake
from vestnik.broker.neighbourhood import Neighbourhood
from vestnik.broker.offers import Offers
from vestnik.broker.outlet import Outlet
from vestnik.broker.questions import Questions
from vestnik.broker.reception import Reception
from vestnik.broker.reviews import Reviews
from vestnik.broker.settling import Settling
from vestnik.broker.stored import StoredEvent
from vestnik.broker.subscriptions import SKEW, Subscriptions
from vestnik.model.events import Event
from vestnik.model.reserved import asks
from vestnik.model.times import FOREVER
from vestnik.recovery.limits import RecoveryLimits
from vestnik.recovery.recovery import Recovery
from vestnik.recovery.tail import Tail
from vestnik.routing.router import Router
from vestnik.wire.messages import (
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Announce,
    Ask,
    Fetch,
    FetchMore,
    Finding,
    Inquiry,
    Malformed,
    Message,
    NodeId,
    Notify,
    Opened,
    Publish,
    Question,
    Recalled,
    Refused,
    Review,
    Subscribe,
    Took,
    Unadvertise,
    Unsubscribe,
    WhatIsOpen,
)
from vestnik.wire.origins import (
    FetchPage,
    Frontiers,
    Origin,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    Routed,
)
from vestnik.wire.pages import pages

Handler: TypeAlias = Callable[[Any, NodeId, float], list[Effect]]

RING: Final = 64 * 1024 * 1024
"""Bytes of events that a broker without a data folder keeps."""
TAIL: Final = 8 * 1024 * 1024
"""Bytes of events that a broker with one keeps in memory."""


class OwnLog(NamedTuple):
    """The log of a broker as it starts: its id, the offset of the next event, and the time of the latest one.

    `room` is how many bytes of it are kept in memory. If it `is_whole` there, nothing can be read from a disk. The log
    of a history has copies of what others published.
    """

    id: int = 1
    next: int = 1
    latest: int = 0
    room: int = RING
    is_whole: bool = True
    is_history: bool = False


class BrokerCore:
    """One broker. With `sweep`, it looks every so many seconds for what has expired; it wants a first Tick to begin.

    What its clients publish goes further once it is stored. `stored` is what was stored lately, so that repeats are
    recognised. One that `announces` publishes what its clients want and offer. `skew` is by how many seconds the clocks
    of brokers may differ.
    """

    def __init__(
        self,
        name: NodeId,
        router: Router,
        sweep: float = FOREVER,
        stored: Iterable[StoredEvent] = (),
        log: OwnLog = OwnLog(),  # noqa: B008  # a frozen value
        announces: bool = False,
        skew: float = SKEW,
        limits: RecoveryLimits = RecoveryLimits(),  # noqa: B008  # a frozen value
    ) -> None:
        self.name = name
        self.router = router
        own = Origin(name, log.id)
        tail = Tail(log.room, log.next, is_whole=log.is_whole, latest=log.latest, is_history=log.is_history)
        self.recovery = recovery = Recovery(
            own, tail, lambda event: self._outlet.matching(event), router.wanted_by, limits
        )
        self.topology = recovery.topology
        self._giving = recovery.feeds.giving
        self._meeting = recovery.meeting
        self._sweep = sweep
        self._next_sweep = 0.0
        self._clients = clients = Clients(router, recovery.readers)
        self._outlet = outlet = Outlet(own, router, clients.known, recovery)
        self._questions = Questions(name, self.topology)
        self._reviews = Reviews(name)
        self._intake = Intake(name, router, tail, stored)
        self._announcements = Announcements(name) if announces else None
        self._settling = Settling(recovery, outlet)
        shared = clients, router, recovery, outlet, self._settling, self._announcements
        subscriptions = Subscriptions(*shared, self._tell, skew)
        self._offers = offers = Offers(*shared, self._tell, self._intake.holds_for)
        self._fetches = fetches = Fetches(*shared)
        self._reception = Reception(clients, router, subscriptions, offers, fetches, self._tell)
        self._neighbourhood = near = Neighbourhood(router, recovery, outlet, self._tell, self._met)
        self._handlers: dict[type[Message], Handler] = {
            Routed: self._routed,
            AdminS: self._admin,
            AdminA: self._admin,
            Announce: self._announce,
            Addressed: self._addressed,
            OriginHere: near.here,
            OriginGone: near.gone,
            OriginOffers: near.offers,
            Frontiers: near.frontiers,
            FetchPage: self._fetch_page,
            PageRead: self._page_read,
            Publish: self._publish,
            Subscribe: subscriptions.subscribe,
            Unsubscribe: subscriptions.unsubscribe,
            Advertise: offers.advertise,
            Unadvertise: offers.unadvertise,
            Fetch: fetches.fetch,
            FetchMore: fetches.more,
            Malformed: self._malformed,
            Ask: subscriptions.ask,
            Took: subscriptions.took,
            Recalled: self._recalled,
            Question: self._question,
            Review: self._review,
            Seen: self._seen,
            Consulted: self._consulted,
            LinkUp: near.link_up,
            LinkDown: near.link_down,
            Joining: near.joining,
            Joined: near.joined,
            Gone: self._reception.gone,
            Full: self._full,
            Drained: self._drained,
            Tick: self._tick,
            ClockSet: self._clock_set,
            LogRead: self._log_read,
            Appended: self._appended,
            NotAppended: self._not_appended,
        }

    @property
    def clients(self) -> Mapping[NodeId, Client]:
        """The local clients by their names."""
        return self._clients.known

    @property
    def origin(self) -> Origin:
        """The log of this broker."""
        return self.topology.own

    def handle(self, message: Message, sender: NodeId, now: float) -> list[Effect]:
        """Return what is to be done about a message from a neighbour, a local client, or the world."""
        self._giving.begin_turn(now)
        effects = self._handlers[type(message)](message, sender, now)
        if self._clients.has_returned:
            self._clients.forget_returns()
            effects = effects + self._outlet.perform(self.recovery.moved())  # what the client missed
        if self._meeting.waiting:
            self._meeting.go_on(now)
        return effects + self._settling.take_late() if self._settling.late else effects

    def is_pressed(self, now: float) -> bool:
        """Return whether publishers have to wait, because a reader would lose events otherwise."""
        return self.recovery.pressure.is_on(now)

    def lags(self, client: NodeId) -> bool:
        """Return whether a subscription of a client reads a log by itself: it goes on when the client has taken."""
        readers = self.clients[client].readers if client in self.clients else []
        own = self.recovery.feeds.roster.own
        return any(feed.is_fetching for reader in readers for feed in own(reader.key).values())

    # --- events ---

    def _publish(self, message: Publish, client: NodeId, now: float) -> list[Effect]:
        self._clients.heard(client)
        return self._intake.publish(message, client, now)

    def _appended(self, message: Appended, sender: NodeId, now: float) -> list[Effect]:
        effects = self._outlet.route_stored(message.what, now) if message.what.events else []
        return effects + self._intake.appended(message) + self._after_routing(now)

    def _not_appended(self, message: NotAppended, sender: NodeId, now: float) -> list[Effect]:
        effects = self._intake.not_appended(message, now)
        if message.what.events:
            effects += self._outlet.perform(self.recovery.pass_over(message.what.end))
        return effects + self._after_routing(now)

    def _after_routing(self, now: float) -> list[Effect]:
        offers = self._offers
        effects = self._tell(now) if offers.leaving and offers.routed() else []
        if self.topology.neighbours:
            effects += self._neighbourhood.report_soon(now)
        return effects + offers.told() if offers.acts else effects

    def _routed(self, message: Routed, sender: NodeId, now: float) -> list[Effect]:
        return self._outlet.route(message, sender, now)

    # --- pages of logs ---

    def _fetch_page(self, message: FetchPage, sender: NodeId, now: float) -> list[Effect]:
        return self._outlet.perform(self.recovery.serving.fetch_page(message, sender))

    def _page_read(self, message: PageRead, sender: NodeId, now: float) -> list[Effect]:
        return self._outlet.perform(self.recovery.page_read(message, sender))

    def _log_read(self, message: LogRead, sender: NodeId, now: float) -> list[Effect]:
        return self._outlet.perform(self.recovery.log_read(message.number, message.page))

    def _recalled(self, message: Recalled, client: NodeId, now: float) -> list[Effect]:
        return self._outlet.perform(self.recovery.recalled(message, client))

    # --- what clients ask ---

    def under_way(self, client: NodeId) -> set[int]:
        """Return the requests of a client that wait for other brokers, or for the disk."""
        return self._fetches.under_way(client) | self._reviews.under_way(client)

    def _review(self, message: Review, client: NodeId, now: float) -> list[Effect]:
        return self._reviews.asked(message, client)

    def _seen(self, message: Seen, sender: NodeId, now: float) -> list[Effect]:
        return self._reviews.seen(message)

    def _question(self, message: Question, client: NodeId, now: float) -> list[Effect]:
        return self._questions.asked(message, client)

    def _consulted(self, message: Consulted, sender: NodeId, now: float) -> list[Effect]:
        return self._questions.consulted(message)

    def _malformed(self, message: Malformed, client: NodeId, now: float) -> list[Effect]:
        return [Send(client, Refused(message.request, message.reason))]

    # --- clients ---

    def _full(self, message: Full, sender: NodeId, now: float) -> list[Effect]:
        self._clients.full(message.client)
        return []

    def _drained(self, message: Drained, sender: NodeId, now: float) -> list[Effect]:
        self._clients.drained(message.client)
        return self._outlet.perform(self.recovery.moved())

    # --- neighbours ---

    def _admin(self, message: AdminS | AdminA, sender: NodeId, now: float) -> list[Effect]:
        self.router.take(sender, message, now)
        return self._tell(now)

    def _announce(self, message: Announce, sender: NodeId, now: float) -> list[Effect]:
        return self._outlet.announce(message.events, sender)

    def _met(self, before: Set[NodeId], after: Set[NodeId], now: float) -> list[Effect]:
        """Tell local clients which brokers came within reach and which left, and ask new ones what is open there."""
        if self._announcements is None or before == after:
            return []
        effects: list[Effect] = self._outlet.tell_opened(self._announcements.lost(before - after))
        for broker in sorted(after - before):
            for client, known in self.clients.items():
                for name, one in known.subscriptions.items():
                    if asks(one.filter):
                        effects += self._announcements.ask((client, name), one.filter, self.topology, now, broker)
        if self.router.hearing:
            routed = self._outlet.announce(self._announcements.changes(before, after, now), self.name)
            effects += [one for one in routed if isinstance(one, Send) and isinstance(one.message, Notify)]
        return effects

    def _addressed(self, message: Addressed, sender: NodeId, now: float) -> list[Effect]:
        """Pass on what is for another broker; what is for nobody that is known goes no further."""
        if message.to != self.name:
            way = self.topology.next_hop_to(message.to)
            return [] if way is None else [Send(way, message)]
        match message.body:
            case Inquiry() as inquiry:
                return self._questions.inquired(inquiry, message.origin)
            case Finding() as finding:
                return self._questions.found(finding)
            case WhatIsOpen(number, wanted):
                return self._open(number, wanted, message.origin, now)
            case Opened() as opened:
                return [] if self._announcements is None else self._opened(opened, self._announcements)

    def _open(self, number: int, wanted: Any, asker: NodeId, now: float) -> list[Effect]:
        """Tell another broker what is open here."""
        way = self.topology.next_hop_to(asker)
        if way is None:
            return []
        events: list[Event] = []
        if self._announcements is not None:
            events = self._announcements.open([wanted], wishes(self.clients, self.router.advertised), now)
        found = [Opened(number, page, more=True) for page in pages(events, lambda event: event)]
        return [Send(way, Addressed(asker, self.name, one)) for one in [*found, Opened(number, ())]]

    def _opened(self, message: Opened, announcements: Announcements) -> list[Effect]:
        """Tell those who asked what is open at another broker."""
        found, fetch = announcements.opened(message)
        return self._outlet.tell(found, is_past=True) + self._outlet.tell_opened([fetch] if fetch else [])

    def _tell(self, now: float) -> list[Effect]:
        """Tell neighbours what they have to know, and then what is announced of it: who hears of it can be answered."""
        effects: list[Effect] = [Send(neighbour, message) for neighbour, message in self.router.flush(now)]
        if self._announcements is not None:
            news = self._announcements.news(now, self.router.hearing)
            effects += self._outlet.announce(news, self.name) if news else []
        return effects

    # --- time ---

    def _clock_set(self, message: ClockSet, sender: NodeId, now: float) -> list[Effect]:
        """Move all times: only the times of events are those of the clock."""
        self._next_sweep += message.by
        for one in (self.router, self._neighbourhood, self.recovery):
            one.shift(message.by)
        if self._announcements is not None:
            self._announcements.shift(message.by)
        return []

    def _tick(self, message: Tick, sender: NodeId, now: float) -> list[Effect]:
        effects = [
            *self._intake.tick(now),
            *self._neighbourhood.tick(now),
            *self._outlet.perform(self.recovery.moved()),
        ]
        if self._sweep < FOREVER and now >= self._next_sweep:
            self._next_sweep = now + self._sweep
            effects += self._outlet.perform(self.recovery.look_for_late())
            if self._announcements is not None:
                effects += self._outlet.tell_opened(self._announcements.late(now))
            effects += (*self._neighbourhood.sweep(), Wake(self._next_sweep), *self._reception.expire(now))
        return effects
