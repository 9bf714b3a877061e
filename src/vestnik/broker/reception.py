"""What local clients want and offer: subscriptions and advertisements, as long as they last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from vestnik.broker.announcements import Announcements, OpenFetch, Wish, admitted, wishes
from vestnik.broker.clients import MOST_KEPT, Client, Subscription
from vestnik.broker.effects import (
    Drained,
    Effect,
    Full,
    Gone,
    OfferEnded,
    OfferMade,
    Part,
    Send,
    SubscriptionChanged,
    SubscriptionEnded,
    SubscriptionMade,
    Wake,
)
from vestnik.broker.neighbourhood import Tell
from vestnik.broker.offers import Offers
from vestnik.broker.outlet import Outlet, fetch_key
from vestnik.model.filters import Filter
from vestnik.model.reserved import ADVERTISEMENT, SUBSCRIPTION, asks, ordinary
from vestnik.model.times import FOREVER, MICROS
from vestnik.recovery.feeds import Start
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import FUTURE
from vestnik.recovery.recovery import Recovery
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import (
    NO_PAST,
    Accepted,
    Advertise,
    Ask,
    Fetch,
    FetchMore,
    Gap,
    Malformed,
    NodeId,
    Position,
    Refused,
    Request,
    Subscribe,
    Took,
    Unadvertise,
    Unsubscribe,
)
from vestnik.wire.origins import Origin
from vestnik.wire.replays import Replay

UNSUBSCRIBED: Final = "unsubscribed"
DISCONNECTED: Final = "its client disconnected, and it had no lease"
LAPSED: Final = "its lease ended: it was not renewed"
BEGUN_AGAIN: Final = "its client has begun it again"
FORGOTTEN: Final = "the broker had forgotten the subscription, and its client has no cursors"
SILENT: Final = "it has not renewed its subscriptions for a lease"
SKEW: Final = 0.25
"""Seconds by which the clocks of brokers may differ, for events of brokers that cannot be asked."""
FETCHED: Final = 500
"""Events of a page of past events."""


class Reception:
    """Where clients are heard. What they want enters the routing table, and neighbours are told of it at once."""

    def __init__(
        self,
        clients: dict[NodeId, Client],
        router: Router,
        recovery: Recovery,
        outlet: Outlet,
        announcements: Announcements | None,
        offers: Offers,
        tell: Tell,
        skew: float = SKEW,
    ) -> None:
        self._clients = clients
        self._router = router
        self._recovery = recovery
        self._outlet = outlet
        self._announcements = announcements
        self._offers = offers
        self._tell = tell
        self._skew = skew
        self.late: list[Effect] = []  # what is due since an answer came that was waited for
        self.has_returned = False  # whether a client came back with the message that is handled

    def take_late(self) -> list[Effect]:
        late, self.late = self.late, []
        return late

    def go_on(self) -> list[Effect]:
        """Send a client that came back what it missed, whatever it came with."""
        self.has_returned = False
        return self._outlet.perform(self._recovery.moved())

    # --- subscriptions ---

    def subscribe(self, message: Subscribe, client: NodeId, now: float) -> list[Effect]:
        unfit = self._unfit(client, message.name, message.lease, message.window)
        cursors = {} if unfit else cursors_of(message.seen)
        if unfit or cursors is None:
            return _answer(client, message, Refused(message.request, unfit or "seen is not of the form broker/log"))
        if self._announcements is not None:
            message = admitted(message)
        known, source = self.client(client), Source(client, message.name)
        lease = self._granted(message.lease)
        before = known.subscriptions.get(message.name)
        old = None if before is None else before.filter
        goes_on = before is not None and before.goes_on_with(message)
        self._router.subscribe(source, message.filter, now + lease)
        if old is not None and old != message.filter:
            self._router.unsubscribe(source, old)
        if old != message.filter or not goes_on:
            self._announce(SUBSCRIPTION, source, old, message)
        effects = self._tell(now)
        if before is not None and goes_on:
            effects += self._renewed(source, before, message, now)
        else:
            effects += [] if before is None else [self._ended(source, BEGUN_AGAIN)]
            effects += self._begin(source, message, cursors, now)
        if self._announcements is not None and asks(message.filter) and not (goes_on and old == message.filter):
            effects += self._ask_what_is_open(source, message.filter, now)
        return effects + self._accept(source, message, lease, now)

    def _begin(self, source: Source, message: Subscribe, cursors: dict[Origin, int], now: float) -> list[Effect]:
        """Begin a subscription that is new here: at the cursors of its client, with a replay, or now."""
        replay, known = message.replay, self._clients[source.node]
        made = self._start_of(replay, now) if message.made in (0, NO_PAST) else message.made
        is_past = replay is not None and not replay.picks
        reader = Reader(
            source,
            message.filter,
            made,
            message.window,
            replays=is_past,
            past_since=replay.since if replay is not None and is_past else None,
        )
        reader.takes = known.takes
        known.subscriptions[source.name] = Subscription(message, reader)
        at, until = int(now * MICROS), int((now + self._skew) * MICROS)
        if cursors:
            start = Start(at, cursors)
        elif message.made and replay is not None and replay.picks:
            start = Start(message.made, None, replay, message.made, is_again=True)
        else:
            start = Start(at, None, replay, until)
        if message.epoch and not cursors and replay is None:
            self._recovery.feeds.giving.tell(reader, Gap("", 0, 0, FORGOTTEN), force=True)
        self._recovery.feeds.begin(reader, start)
        resumed, seen = bool(message.epoch), message.seen
        begun = SubscriptionMade(*source, message.filter, message.afresh, resumed, replay, made, seen)
        effects = [begun, *self._outlet.perform(self._recovery.moved())]
        if replay is not None and replay.picks:
            effects += self._when_met(lambda: self._pick(reader), now)
        return effects

    def _pick(self, reader: Reader) -> list[Effect]:
        """Begin to pick what is replayed, unless the subscription has ended."""
        if self._recovery.feeds.readers.get(reader.key) is reader:
            self._recovery.feeds.replaying.pick(reader.key)
        return self._outlet.perform(self._recovery.moved())

    def _start_of(self, replay: Replay | None, now: float) -> int:
        """Return from when on logs are read that are not known yet."""
        if replay is None or replay.picks:
            return int((now - self._skew) * MICROS)
        return 1 if replay.since is None else max(1, replay.since - FUTURE)

    def _renewed(self, source: Source, before: Subscription, message: Subscribe, now: float) -> list[Effect]:
        """Go on with a subscription, maybe with another filter.

        A client that has no right to the past gets nothing by the new filter that was accepted before: its cursors may
        be far in the past.
        """
        before.renew(message)
        changed: list[Effect] = []
        if before.filter != message.filter:
            since = int(now * MICROS) if message.made == NO_PAST else None
            self._recovery.feeds.change(source, message.filter, since)
            changed = [SubscriptionChanged(*source, message.filter)]
        self._recovery.feeds.made_room(source)
        return [*changed, *self._outlet.perform(self._recovery.moved())]

    def _ask_what_is_open(self, source: Source, wanted: Filter, now: float) -> list[Effect]:
        """Let a subscription know what is open at the clients of all brokers."""
        assert self._announcements is not None
        opened = self._announcements.open([wanted], wishes(self._clients, self._router.advertised), now)
        effects = self._outlet.tell([(source, event) for event in opened], is_past=True)
        return effects + self._announcements.ask(source, wanted, self._recovery.topology, now)

    def _accept(self, source: Source, message: Subscribe, lease: float, now: float) -> list[Effect]:
        """Answer a subscription with how far it has come; if it is to be settled, when all brokers know of it."""

        def accept(missing: Iterable[str] = ()) -> list[Effect]:
            client = self._clients.get(source.node)
            if client is None or source.name not in client.subscriptions:
                return []
            return [Send(source.node, self._outlet.accepted(source, message.request, lease, tuple(missing)))]

        if not message.request:
            return []
        return self._when_settled(accept, now) if message.settled else accept()

    def _when_settled(self, then: Callable[[list[str]], list[Effect]], now: float) -> list[Effect]:
        """Do something when all brokers know of what was told before, with those that do not, in words."""

        def ask() -> list[Effect]:
            return self._outlet.perform(self._recovery.ask_all(lambda missing: self.late.extend(then(missing))))

        return self._when_met(ask, now, joins=True)

    def _when_met(self, then: Callable[[], list[Effect]], now: float, *, joins: bool = False) -> list[Effect]:
        """Do something when all neighbours have said which logs they have, and with `joins` all are linked."""
        done: list[Effect] = []
        is_now = True

        def met() -> None:
            (done if is_now else self.late).extend(then())

        until = self._recovery.meeting.when_met(met, now, joins=joins)
        is_now = False
        return done if until is None else [Wake(until)]

    def unsubscribe(self, message: Unsubscribe, client: NodeId, now: float) -> list[Effect]:
        ended = self._drop_subscription(client, message.name, UNSUBSCRIBED)
        return [*ended, *self._tell(now), *_answer(client, message, Accepted(message.request))]

    def _drop_subscription(self, client: NodeId, name: str, reason: str) -> list[Effect]:
        subscription = self.client(client).subscriptions.pop(name, None)
        if subscription is None:
            return []
        self._router.unsubscribe(Source(client, name), subscription.filter)
        self._announce(SUBSCRIPTION, Source(client, name), subscription.filter)
        ended = self._ended((client, name), reason)
        self._recovery.feeds.end((client, name))
        return [ended]

    def _ended(self, key: ReaderKey, reason: str) -> Effect:
        cursors = self._recovery.feeds.cursors(key)
        return SubscriptionEnded(*key, reason, tuple([(str(origin), offset) for origin, offset in cursors.items()]))

    # --- advertisements ---

    def advertise(self, message: Advertise, client: NodeId, now: float) -> list[Effect]:
        unfit = self._unfit(client, message.name, message.lease)
        if unfit:
            return _answer(client, message, Refused(message.request, unfit))
        source, lease = Source(client, message.name), self._granted(message.lease)
        before = self._router.advertised.get(source)
        self.client(client).advertisements[message.name] = message.lease < FOREVER
        self._offers.advertise(source, message.filter, now + lease, replays=message.replays)
        effects: list[Effect] = []
        if before != message.filter:
            self._announce(ADVERTISEMENT, source, before, message)
            effects.append(OfferMade(*source, message.filter))
        effects += [*self._tell(now), *self._outlet.perform(self._offers.told())]
        if not (message.settled and message.request):
            return effects + _answer(client, message, Accepted(message.request, lease))

        def accept(missing: Iterable[str]) -> list[Effect]:
            return [Send(client, Accepted(message.request, lease, missing=tuple(missing)))]

        return effects + self._when_settled(accept, now)

    def unadvertise(self, message: Unadvertise, client: NodeId, now: float) -> list[Effect]:
        ended = self._drop_advertisement(client, message.name)
        effects = [*ended, *self._tell(now), *self._outlet.perform(self._offers.told())]
        return effects + _answer(client, message, Accepted(message.request))

    def _drop_advertisement(self, client: NodeId, name: str) -> list[Effect]:
        known = self.client(client).advertisements.pop(name, None)
        self._announce(ADVERTISEMENT, Source(client, name), self._router.advertised.get(Source(client, name)))
        self._offers.withdraw(Source(client, name))
        return [] if known is None else [OfferEnded(client, name)]

    def _granted(self, lease: float) -> float:
        """For how long something of a client lasts unless renewed."""
        return min(lease, self._router.leases.length)

    def _unfit(self, client: NodeId, name: str, lease: float, window: int = 1) -> str:
        """Why a client cannot have something of this name on these terms; empty where it can."""
        if client in self._router.neighbours:
            return f"{client} is the name of a neighbouring broker"
        if not lease > 0:
            return f"a lease is longer than nothing, not {lease}"
        if not 1 <= window <= MOST_KEPT:
            return f"from 1 to {MOST_KEPT:,} notifications may be in flight, not {window:,}"
        return "" if name else "it has no name"

    def malformed(self, message: Malformed, client: NodeId, now: float) -> list[Effect]:
        return _answer(client, message, Refused(message.request, message.reason))

    # --- notifications ---

    def ask(self, message: Ask, client: NodeId, now: float) -> list[Effect]:
        answers = [Send(client, answer) for answer in self.client(client).answer(message.positions, now)]
        return [*answers, *self._took(client, [(position, position.taken) for position in message.positions])]

    def took(self, message: Took, client: NodeId, now: float) -> list[Effect]:
        return self._took(client, [(position, position.after) for position in message.positions])

    def _took(self, client: NodeId, taken: Iterable[tuple[Position, int]]) -> list[Effect]:
        """Give a client more of the subscriptions of which its application has taken everything up to a number."""
        subscriptions = self.client(client).subscriptions
        for position, number in taken:
            known = subscriptions.get(position.name)
            if known is not None and known.epoch == position.epoch:
                self._recovery.feeds.took(known.reader, number)
        return self._outlet.perform(self._recovery.moved())

    def gone(self, message: Gone, sender: NodeId, now: float) -> list[Effect]:
        """End what has no lease with the connection; the rest lasts as long as its lease."""
        client = self.client(message.client)
        ended: list[Effect] = []
        for name in [name for name, subscription in client.subscriptions.items() if not subscription.leased]:
            ended += self._drop_subscription(message.client, name, DISCONNECTED)
        for name in [name for name, leased in client.advertisements.items() if not leased]:
            ended += self._drop_advertisement(message.client, name)
        self._offers.left(message.client)
        for reader in client.fetches.values():
            self._recovery.feeds.end(reader.key)
        client.fetches.clear()
        client.connected = client.is_full = False
        self._set_takes(client)
        if client.is_forgotten:
            del self._clients[message.client]
        return [*ended, *self._tell(now), *self._outlet.perform(self._offers.told())]

    def full(self, message: Full, sender: NodeId, now: float) -> list[Effect]:
        """Send a client nothing for now: what it wants stays in the logs."""
        client = self.client(message.client)
        client.is_full = True
        self._set_takes(client)
        return []

    def drained(self, message: Drained, sender: NodeId, now: float) -> list[Effect]:
        """Go on with a client that has taken what it was sent."""
        client = self.client(message.client)
        client.is_full = False
        self._set_takes(client)
        return self._outlet.perform(self._recovery.moved())

    def _set_takes(self, client: Client) -> None:
        for reader in client.readers:
            reader.takes = client.takes
            if reader.takes:
                self._recovery.feeds.made_room(reader.key)

    # --- past events ---

    def under_way(self, client: NodeId) -> set[int]:
        """Return the requests of a client that wait for the past."""
        return set(self._clients[client].fetches) if client in self._clients else set()

    def fetch(self, message: Fetch, client: NodeId, now: float) -> list[Effect]:
        """Begin to send past events; a client may ask again before it is answered."""
        known, request = self.client(client), message.request
        if request in known.fetches:
            return []
        since = None if message.replay.picks else message.replay.since
        wanted, key = ordinary(message.filter), fetch_key(client, request)
        asked = self._announcements if asks(wanted) else None
        made, is_asked = int(now * MICROS), asked is not None
        reader = Reader(key, wanted, made, FETCHED, past_since=since, ends=True, waits_for_open=is_asked)
        known.fetches[request] = reader

        def begin() -> list[Effect]:
            if known.fetches.get(request) is not reader:
                return []  # the client has gone
            feeds = self._recovery.feeds
            feeds.begin(reader, Start(replay=message.replay))
            feeds.replaying.pick(key)
            effects = self._outlet.perform(self._recovery.moved())
            if asked is not None:
                effects += self._fetch_open(key, wanted, message.replay, asked, feeds.giving.now)
            return effects

        return self._when_met(begin, now)

    def _fetch_open(
        self, key: ReaderKey, wanted: Filter, replay: Replay, announcements: Announcements, now: float
    ) -> list[Effect]:
        """Find out for a fetch what is open at the clients of all brokers."""
        fetch = OpenFetch(key, wanted, replay)
        opened = announcements.open([wanted], wishes(self._clients, self._router.advertised), now)
        effects = announcements.fetch(fetch, opened, self._recovery.topology, now)
        return effects if fetch.asked else self._outlet.tell_opened([fetch])

    def fetch_more(self, message: FetchMore, client: NodeId, now: float) -> list[Effect]:
        reader = self.client(client).fetches.get(message.request)
        if reader is None:
            return []
        self._recovery.feeds.took(reader, reader.number)
        return self._outlet.perform(self._recovery.moved())

    def client(self, name: NodeId) -> Client:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = Client()
        elif not client.connected:
            client.connected = self.has_returned = True
            self._set_takes(client)
        return client

    def expire(self, now: float) -> list[Effect]:
        """End what was not renewed. A link whose neighbour did not renew something is ended, too.

        Neighbours are told of it before any link ends: its end is handled at once, and what is told then comes later.
        """
        self._offers.prolong(now)
        offered = self._router.advertised.copy()
        lapsed, silent = self._router.expire(now)
        found: list[Effect] = []
        for source, wanted in lapsed:
            found += self._forget(source, wanted)
        for source in sorted(offered.keys() - self._router.advertised.keys()):
            found += self._forget_offer(source, offered[source])
        found += [*self._tell(now), *self._outlet.perform(self._offers.told())]
        return found + [Part(neighbour, SILENT, "silent") for neighbour in sorted(silent)]

    def _forget(self, source: Source, wanted: Filter) -> list[Effect]:
        """End a subscription that has expired; a client that has none left and is not there is forgotten."""
        client = self._clients.get(source.node)
        subscription = client and client.subscriptions.get(source.name)
        if not client or not subscription or subscription.filter != wanted:
            return []
        del client.subscriptions[source.name]
        ended = self._ended(source, LAPSED)
        self._recovery.feeds.end(source)
        self._announce(SUBSCRIPTION, source, wanted)
        if client.is_forgotten:
            del self._clients[source.node]
        return [ended]

    def _forget_offer(self, source: Source, offered: Filter) -> list[Effect]:
        """End an advertisement that has expired."""
        client = self._clients.get(source.node)
        self._offers.lapsed(source)
        self._announce(ADVERTISEMENT, source, offered)
        if client and client.advertisements.pop(source.name, None) is not None and client.is_forgotten:
            del self._clients[source.node]
        return [OfferEnded(*source)]

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


def cursors_of(seen: Iterable[tuple[str, int]]) -> dict[Origin, int] | None:
    """Return the cursors of a client; None if they are not of the form broker/log."""
    try:
        return {Origin.parse(text): offset for text, offset in seen}
    except ValueError:
        return None


def _answer(client: NodeId, request: Request, answer: Accepted | Refused) -> list[Effect]:
    """What a client is told, if it wants to know."""
    return [Send(client, answer)] if request.request or isinstance(answer, Refused) else []
