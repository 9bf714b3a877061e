"""A broker: what it does with a message, as effects.

It performs nothing itself and reads no clock: `handle` is all there is. The same broker runs behind sockets and in the
simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from itertools import chain, count
from typing import Any, TypeAlias

from msgspec import structs

from vestnik.broker.announcements import Announcements, Wish, admitted, wishes
from vestnik.broker.catchup import CatchUp
from vestnik.broker.clients import MOST_KEPT, Client, Subscription, has_expired
from vestnik.broker.effects import (
    Append,
    Appended,
    Consulted,
    Drained,
    Effect,
    Full,
    Gone,
    Lapsed,
    LinkDown,
    LinkUp,
    NotAppended,
    Note,
    Part,
    Past,
    Read,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.intake import Intake
from vestnik.broker.questions import Questions
from vestnik.broker.reach import Surroundings
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import ADVERTISEMENT, SUBSCRIPTION
from vestnik.model.streams import WINDOW, Arrivals
from vestnik.routing.propagation import FOREVER, Source
from vestnik.routing.router import Router
from vestnik.wire.messages import (
    Accepted,
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Ask,
    Delivery,
    Fetch,
    Finding,
    Forward,
    Inquiry,
    Last,
    Malformed,
    Message,
    NodeId,
    Notify,
    Publish,
    Question,
    Reach,
    Recall,
    Recalled,
    Refused,
    Request,
    Subscribe,
    Taken,
    Unadvertise,
    Unsubscribe,
)

REPORT_AFTER = 1.0
"""Seconds after something was taken in which neighbours are told how far it has been sent to them."""

Handler: TypeAlias = Callable[[Any, NodeId, float], list[Effect]]


class BrokerCore:
    """One broker. With `sweep`, it looks every so many seconds for what has expired; it wants a first Tick to begin.

    What its clients publish goes further once it is stored: a broker that crashes and is given what was `stored` does
    not number other events as it did those that others have seen. Where not all was stored, each life must begin with a
    `first_seq` that was not come to before. One that `announces` publishes what its clients want and offer.
    """

    def __init__(
        self,
        name: NodeId,
        router: Router,
        sweep: float = FOREVER,
        stored: Iterable[Append] = (),
        first_seq: int = 1,
        announces: bool = False,
    ) -> None:
        self.name = name
        self.router = router
        self.clients: dict[NodeId, Client] = {}
        self.surroundings = Surroundings(name)
        self._questions = Questions(name, self.surroundings)
        self._sweep = sweep
        self._next_sweep = 0.0
        self._next_report = FOREVER
        self._reported: dict[NodeId, Reach] = {}
        self._arrivals = Arrivals()
        self._places = count()
        self._intake = Intake(name, router, first_seq, stored)
        self._announcements = Announcements(name, self._intake.stamped) if announces else None
        self._catch_up = CatchUp(name, self.clients, self.surroundings, router, self._places, first_seq)
        self._handlers: dict[type[Message], Handler] = {
            Forward: self._forward,
            AdminS: self._admin,
            AdminA: self._admin,
            Addressed: self._addressed,
            Reach: self._reach,
            Publish: self._publish,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Advertise: self._advertise,
            Unadvertise: self._unadvertise,
            Fetch: self._fetch,
            Malformed: self._malformed,
            Ask: self._ask,
            Question: self._question,
            Consulted: self._consulted,
            LinkUp: self._link_up,
            LinkDown: self._link_down,
            Gone: self._gone,
            Full: self._full,
            Drained: self._drained,
            Tick: self._tick,
            Past: self._past,
            Appended: self._appended,
            NotAppended: self._not_appended,
        }

    def handle(self, message: Message, sender: NodeId, now: float) -> list[Effect]:
        """What is to be done about a message from a neighbour, a local client, or the world, whose name is its own."""
        return self._handlers[type(message)](message, sender, now)

    # --- events ---

    def _publish(self, message: Publish, client: NodeId, now: float) -> list[Effect]:
        self._client(client)
        return self._intake.publish(message, client, now)

    def _appended(self, message: Appended, sender: NodeId, now: float) -> list[Effect]:
        going, effects = self._intake.appended(message)
        if going:
            effects = [*self._route(Forward(going), message.what.client, now), *effects]
            effects += self._report_soon(now)
        return effects

    def _not_appended(self, message: NotAppended, sender: NodeId, now: float) -> list[Effect]:
        return self._intake.not_appended(message)

    def _forward(self, message: Forward, sender: NodeId, now: float) -> list[Effect]:
        events = message.events
        new = tuple([event for event in events if self._arrivals.is_new(event)])
        return self._route(message if len(new) == len(events) else Forward(new), sender, now)

    def _route(self, message: Forward, sender: NodeId, now: float) -> list[Effect]:
        """Send events on to where they are wanted: a batch as one."""
        effects: list[Effect] = []
        onward: dict[NodeId, list[Event]] = {}
        local: dict[NodeId, list[Delivery]] = {}
        for event in _by_priority(message.events):
            if has_expired(event, now):
                effects.append(Note(event, sender, "expired"))
                continue
            neighbours, subscriptions = self.router.targets(event, sender)
            for neighbour in neighbours:
                onward.setdefault(neighbour, []).append(event)
            if subscriptions:
                self._number(event, subscriptions, local)
        for neighbour, events in onward.items():
            whole = len(events) == len(message.events)
            effects.append(Send(neighbour, message if whole else Forward(tuple(events))))
        effects += [Send(client, Notify(tuple(deliveries))) for client, deliveries in local.items()]
        return effects

    def _number(self, event: Event, subscriptions: list[Source], local: dict[NodeId, list[Delivery]]) -> None:
        """One copy for each client, with a number for each of its subscriptions that wants the event."""
        numbers: dict[NodeId, list[tuple[int, int]]] = {}
        waiting: dict[NodeId, list[int]] = {}
        place = next(self._places)
        for name, wanted_as in subscriptions:
            client = self.clients.get(name)
            subscription = client and client.subscriptions.get(wanted_as)
            if not client or not subscription:
                continue
            if client.making_up is not None:
                waiting.setdefault(name, []).append(subscription.epoch)
            elif subscription.replaying is not None:
                subscription.replaying.live.append((event, False))
            else:
                numbers.setdefault(name, []).append((subscription.epoch, subscription.number(event, place)))
        for name, epochs in waiting.items():
            self.clients[name].await_missed(event, epochs)
        for name, pairs in numbers.items():
            if self.clients[name].takes:
                local.setdefault(name, []).append(Delivery(event, tuple(pairs)))

    # --- what clients want and offer ---

    def _subscribe(self, message: Subscribe, client: NodeId, now: float) -> list[Effect]:
        unfit = self._unfit(client, message.name, message.lease, message.keep)
        if unfit:
            return _answer(client, message, Refused(message.request, unfit))
        if self._announcements is not None:
            message = admitted(message)
        known, name = self._client(client), message.name
        source, lease = Source(client, name), self._granted(message.lease)
        self.router.subscribe(source, message.filter, now + lease)
        before = known.subscriptions.get(name)
        if before is None or before.filter != message.filter or before.epoch not in (message.epoch, message.afresh):
            self._announce(SUBSCRIPTION, source, before.filter if before else None, message)
        if before is not None and before.filter != message.filter:
            self.router.unsubscribe(source, before.filter)
        if before is None or before.epoch not in (message.epoch, message.afresh):
            known.subscriptions[name] = Subscription(message)
        else:
            before.change(message)
        after = known.subscriptions[name]
        effects = self._tell(now)
        if after is not before:
            effects += self._catch_up.begin(source, message.replay)
        seen = () if after.replaying or known.making_up else tuple((self.surroundings.positions | after.lacks).items())
        accepted = Accepted(message.request, lease, after.epoch, after.last, seen)
        if message.settled and message.request:
            return effects + self._catch_up.settle(client, accepted)
        return effects + _answer(client, message, accepted)

    def _unsubscribe(self, message: Unsubscribe, client: NodeId, now: float) -> list[Effect]:
        self._drop_subscription(client, message.name)
        return [*self._tell(now), *_answer(client, message, Accepted(message.request))]

    def _drop_subscription(self, client: NodeId, name: str) -> None:
        subscription = self._client(client).subscriptions.pop(name, None)
        if subscription is not None:
            self.router.unsubscribe(Source(client, name), subscription.filter)
            self._announce(SUBSCRIPTION, Source(client, name), subscription.filter)

    def _advertise(self, message: Advertise, client: NodeId, now: float) -> list[Effect]:
        unfit = self._unfit(client, message.name, message.lease)
        if unfit:
            return _answer(client, message, Refused(message.request, unfit))
        source, lease = Source(client, message.name), self._granted(message.lease)
        before = self.router.advertised.get(source)
        self._client(client).advertisements[message.name] = message.lease < FOREVER
        self.router.advertise(source, message.filter, now + lease)
        if before != message.filter:
            self._announce(ADVERTISEMENT, source, before, message)
        return [*self._tell(now), *_answer(client, message, Accepted(message.request, lease))]

    def _unadvertise(self, message: Unadvertise, client: NodeId, now: float) -> list[Effect]:
        self._drop_advertisement(client, message.name)
        return [*self._tell(now), *_answer(client, message, Accepted(message.request))]

    def _drop_advertisement(self, client: NodeId, name: str) -> None:
        self._client(client).advertisements.pop(name, None)
        self._announce(ADVERTISEMENT, Source(client, name), self.router.advertised.get(Source(client, name)))
        self.router.unadvertise(Source(client, name))

    def _granted(self, lease: float) -> float:
        """For how long something of a client lasts unless renewed."""
        return min(lease, self.router.leases.length)

    def _unfit(self, client: NodeId, name: str, lease: float, keep: int = 0) -> str:
        """Why a client cannot have something of this name on these terms; empty where it can."""
        if client in self.router.neighbours:
            return f"{client} is the name of a neighbouring broker"
        if not lease > 0:
            return f"a lease is longer than nothing, not {lease}"
        if not 0 <= keep <= MOST_KEPT:
            return f"from 0 to {MOST_KEPT:,} notifications are kept, not {keep:,}"
        return "" if name else "it has no name"

    def _fetch(self, message: Fetch, client: NodeId, now: float) -> list[Effect]:
        return self._catch_up.fetch(client, message)

    def _malformed(self, message: Malformed, client: NodeId, now: float) -> list[Effect]:
        return _answer(client, message, Refused(message.request, message.reason))

    def _ask(self, message: Ask, client: NodeId, now: float) -> list[Effect]:
        return [Send(client, answer) for answer in self._client(client).answer(message.positions, now)]

    def _question(self, message: Question, client: NodeId, now: float) -> list[Effect]:
        return self._questions.asked(message, client)

    def _consulted(self, message: Consulted, sender: NodeId, now: float) -> list[Effect]:
        return self._questions.consulted(message)

    def _gone(self, message: Gone, sender: NodeId, now: float) -> list[Effect]:
        """What has a lease lasts as long as it; all else ends with the connection."""
        client = self._client(message.client)
        for name in [name for name, subscription in client.subscriptions.items() if not subscription.leased]:
            self._drop_subscription(message.client, name)
        for name in [name for name, leased in client.advertisements.items() if not leased]:
            self._drop_advertisement(message.client, name)
        client.connected = client.is_full = False
        if client.is_forgotten:
            del self.clients[message.client]
        return self._tell(now)

    def _full(self, message: Full, sender: NodeId, now: float) -> list[Effect]:
        """From now on its notifications are kept, and not sent."""
        self._client(message.client).is_full = True
        return []

    def _drained(self, message: Drained, sender: NodeId, now: float) -> list[Effect]:
        """It is told how far the numbers have come meanwhile, and asks for what it wants."""
        client = self._client(message.client)
        client.is_full = False
        last = [(subscription.epoch, subscription.last) for subscription in client.subscriptions.values()]
        return [Send(message.client, Last(tuple(last)))]

    def _client(self, name: NodeId) -> Client:
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = Client()
        client.connected = True
        return client

    # --- neighbours ---

    def _admin(self, message: AdminS | AdminA, sender: NodeId, now: float) -> list[Effect]:
        self.router.take(sender, message, now)
        return self._tell(now)

    def _link_up(self, message: LinkUp, sender: NodeId, now: float) -> list[Effect]:
        """What is wanted and offered is told first, and who is there then: they may be asked for what was missed."""
        self.router.connect(message.neighbour)
        self.surroundings.joined(message.neighbour)
        self._reported.pop(message.neighbour, None)
        return [*self._tell(now), *self._report([message.neighbour])]

    def _link_down(self, message: LinkDown, sender: NodeId, now: float) -> list[Effect]:
        before = self.surroundings.positions
        self.router.disconnect(message.neighbour)
        self.surroundings.parted(message.neighbour)
        return [*self._tell(now), *self._report(self.surroundings.neighbours()), *self._compare(before, now)]

    def _reach(self, message: Reach, sender: NodeId, now: float) -> list[Effect]:
        before = self.surroundings.positions
        twice = self.surroundings.told(sender, message.brokers)
        if twice:
            return [Part(sender, f"it closes a cycle: {', '.join(sorted(twice))} can be reached without it")]
        compared = self._compare(before, now)
        if self.surroundings.positions.keys() == before.keys():
            return self._report_soon(now)
        return [*self._report(self.surroundings.neighbours(but=sender)), *compared]

    def _compare(self, before: dict[NodeId, int], now: float) -> list[Effect]:
        """Who has come within reach is asked for what was missed."""
        after = self.surroundings.positions
        gone = {broker: position for broker, position in before.items() if broker not in after}
        effects = self._met(before.keys(), after.keys(), now)
        effects += self._catch_up.vanished(gone, now) if gone else []
        return effects + self._catch_up.appeared(after.keys() - before.keys())

    def _met(self, before: Set[NodeId], after: Set[NodeId], now: float) -> list[Effect]:
        """Local clients may want to know who came within reach and who is not any more; others see it themselves."""
        if self._announcements is None or not self.router.is_heard:
            return []
        events = self._announcements.changes(before, after, now)
        routed = self._route(Forward(tuple(events)), self.name, now) if events else []
        return [effect for effect in routed if isinstance(effect, Send) and isinstance(effect.message, Notify)]

    def _report(self, neighbours: list[NodeId]) -> list[Effect]:
        """Tell neighbours who is on this side, unless they know."""
        reports = {neighbour: self.surroundings.report(neighbour) for neighbour in neighbours}
        news = {neighbour: report for neighbour, report in reports.items() if self._reported.get(neighbour) != report}
        self._reported |= news
        return [Send(neighbour, report) for neighbour, report in news.items()]

    def _report_soon(self, now: float) -> list[Effect]:
        """Positions have changed; there may be more of that."""
        if self._next_report < FOREVER or not self.surroundings.neighbours():
            return []
        self._next_report = now + REPORT_AFTER
        return [Wake(self._next_report)]

    def _addressed(self, message: Addressed, sender: NodeId, now: float) -> list[Effect]:
        """What is for nobody that is known goes no further."""
        if message.to != self.name:
            way = self.surroundings.way(message.to)
            return [] if way is None else [Send(way, message)]
        match message.body:
            case Inquiry() as inquiry:
                return self._questions.inquired(inquiry, message.origin)
            case Finding() as finding:
                return self._questions.found(finding)
            case Recall() as recall:
                return [Read(message.origin, recall)]
            case Recalled() as recalled:
                return self._catch_up.recalled(message.origin, recalled, now)
            case Forward() as forward:
                return self._forward(forward, sender, now)

    def _past(self, message: Past, sender: NodeId, now: float) -> list[Effect]:
        """What was found here goes to the broker that recalls it; behind it, what is announced and open."""
        broker, found = message.what.broker, message.found
        if self._announcements is not None and found.after >= found.upto:
            wished = wishes(self.clients, self.router.advertised)
            opened = self._announcements.open(message.what.recall.filters, wished, now)
            taken = [Taken(found.upto, event.time or 0, event) for event in opened]
            found = structs.replace(found, taken=(*found.taken, *taken))
        if broker == self.name:
            return self._catch_up.recalled(broker, found, now)
        way = self.surroundings.way(broker)
        return [] if way is None else [Send(way, Addressed(broker, self.name, found))]

    def _tell(self, now: float) -> list[Effect]:
        """What neighbours have to know, and then what is announced of it: who hears of it can be answered."""
        effects: list[Effect] = [Send(neighbour, message) for neighbour, message in self.router.flush(now)]
        if self._announcements is not None:
            news = self._announcements.news(now, heard=self.router.is_heard)
            effects += self._route(Forward(tuple(news)), self.name, now) if news else []
        return effects

    def _announce(
        self, type: str, source: Source, before: Filter | None, after: Subscribe | Advertise | None = None
    ) -> None:
        """What a client wants or offers under a name is something else now, or nothing."""
        if self._announcements is None:
            return
        if before is not None and (after is None or before != after.filter):
            self._announcements.ended(Wish(type, *source, before))
        if after is not None:
            replay = after.replay if isinstance(after, Subscribe) else None
            self._announcements.made(Wish(type, *source, after.filter, replay))

    # --- time ---

    def _tick(self, message: Tick, sender: NodeId, now: float) -> list[Effect]:
        self.surroundings.position = max(self.surroundings.position, message.position)
        effects = self._intake.tick(now)
        if now >= self._next_report:
            self._next_report = FOREVER
            effects += self._report(self.surroundings.neighbours())
        if self._sweep < FOREVER and now >= self._next_sweep:
            self._next_sweep = now + self._sweep
            offered = self.router.advertised.copy()
            self._reported.clear()
            effects += self._report(self.surroundings.neighbours())
            for source, wanted in self.router.expire(now):
                self._forget(source, wanted)
                effects.append(Lapsed(source.node, source.name, wanted))
            for source in sorted(offered.keys() - self.router.advertised.keys()):
                self._forget_offer(source, offered[source])
            effects += (*self._tell(now), Wake(self._next_sweep))
        return effects

    def _forget(self, source: Source, wanted: Filter) -> None:
        """A subscription has expired; a client that has none left and is not there is forgotten."""
        client = self.clients.get(source.node)
        subscription = client and client.subscriptions.get(source.name)
        if client and subscription and subscription.filter == wanted:
            del client.subscriptions[source.name]
            self._announce(SUBSCRIPTION, source, wanted)
            if client.is_forgotten:
                del self.clients[source.node]

    def _forget_offer(self, source: Source, offered: Filter) -> None:
        """An advertisement has expired."""
        client = self.clients.get(source.node)
        self._announce(ADVERTISEMENT, source, offered)
        if client and client.advertisements.pop(source.name, None) is not None and client.is_forgotten:
            del self.clients[source.node]


def _answer(client: NodeId, request: Request, answer: Accepted | Refused) -> list[Effect]:
    """What a client is told, if it wants to know."""
    return [Send(client, answer)] if request.request or isinstance(answer, Refused) else []


def _by_priority(events: tuple[Event, ...]) -> Iterable[Event]:
    """The more urgent events first, equally urgent ones in their order; none before what it names as its cause.

    None overtakes so many that these would be taken for duplicates.
    """
    if len(events) == 1 or any(event.causes for event in events):
        return events
    pieces = (events[start : start + WINDOW // 2] for start in range(0, len(events), WINDOW // 2))
    return chain.from_iterable(sorted(piece, key=lambda event: -event.priority) for piece in pieces)
