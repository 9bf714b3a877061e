"""Sends events on: to the neighbours and the local clients that want them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Raw

from vestnik.broker.announcements import OpenFetch
from vestnik.broker.clients import Client
from vestnik.broker.effects import Append, Effect, GapTold, Note, ReadLog, Send, Wake
from vestnik.broker.naming import NamedLogs
from vestnik.model.events import Event
from vestnik.model.times import FOREVER, MICROS
from vestnik.recovery.flight import Flight
from vestnik.recovery.giving import Given
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.recovery import Act, Later, Recovery
from vestnik.recovery.topology import Say
from vestnik.routing.propagation import Source
from vestnik.routing.router import REMEMBERED, REMEMBERED_SOURCES, Router, Targets
from vestnik.wire.messages import Accepted, Announce, Delivery, Fetched, NodeId, Notify
from vestnik.wire.origins import Origin, Routed
from vestnik.wire.packing import pack
from vestnik.wire.pages import pages


def has_expired(event: Event, now: float) -> bool:
    return event.expires is not None and event.expires <= now * MICROS


MANY: Final = 8
"""Readers from which on a hash table holds them, so that looking for one takes no longer for more of them."""


class Outlet:
    """Where events leave a broker whose own log is `own`."""

    def __init__(self, own: Origin, router: Router, clients: Mapping[NodeId, Client], recovery: Recovery) -> None:
        self._own = own
        self._router = router
        self._clients = clients
        self._recovery = recovery
        self._roster = recovery.feeds.roster
        self._readers: dict[int, tuple[Targets, Collection[Reader]]] = {}  # by the number of targets
        self._readers_at = 0  # how often readers had come or gone
        self._readers_count = 0  # of all targets together

    def route_stored(self, what: Append, now: float) -> list[Effect]:
        """Route events that are stored in the own log: those that have their seq, in order."""
        events, packed = what.events, what.packed
        if [event for event in events if event.seq is None]:
            going = [(event, one) for event, one in zip(events, packed, strict=True) if event.seq is not None]
            events, packed = tuple([event for event, _ in going]), tuple([one for _, one in going])
        effects, wanting = self._forward(self._own, events, packed, what.client, now)
        effects += self.perform(self._recovery.routed(what.time, packed, events, wanting))
        if what.end > self._recovery.tail.routed:
            effects += self.perform(self._recovery.pass_over(what.end))
        return effects

    def route(self, message: Routed, sender: NodeId, now: float) -> list[Effect]:
        """Route live events of another log, if they came by its way."""
        if not self._recovery.is_next_hop(message.origin, sender):
            return []
        packed = list(map(pack, message.events))
        effects, wanting = self._forward(message.origin, message.events, packed, sender, now)
        return effects + self.perform(self._recovery.heard(message.origin, message.events, packed, wanting))

    def _forward(
        self, origin: Origin, events: tuple[Event, ...], packed: Sequence[bytes], sender: NodeId, now: float
    ) -> tuple[list[Effect], list[Collection[Reader]]]:
        """Send a batch to the neighbours that want some of it; return also who wants each event here."""
        effects: list[Effect] = []
        onward: dict[NodeId, list[int]] = {}  # the places of the events
        wanting: list[Collection[Reader]] = [()] * len(events)
        alive: Sequence[Event] = events
        places: Sequence[int] = range(len(events))  # of those that are alive
        if [event for event in events if event.seldom is not None]:
            effects += [Note(event, sender, "expired") for event in events if has_expired(event, now)]
            places = [place for place, event in enumerate(events) if not has_expired(event, now)]
            alive = [events[place] for place in places]
        for at, targets in self._router.route(alive, sender):
            place = places[at]
            for neighbour in targets.neighbours:
                onward.setdefault(neighbour, []).append(place)
            wanting[place] = self._wanting(targets)
        carried = tuple(map(Raw, packed)) if onward else ()
        for neighbour, wanted in onward.items():
            going = carried if len(wanted) == len(carried) else tuple([carried[place] for place in wanted])
            effects.append(Send(neighbour, Routed(origin, going)))
        return effects, wanting

    def _wanting(self, targets: Targets) -> Collection[Reader]:
        """Return the readers among some targets: one object for one object, unless readers come or go."""
        known = self._readers.get(id(targets))
        if known is not None and self._readers_at == self._roster.changes:
            return known[1]
        is_full = len(self._readers) >= REMEMBERED or self._readers_count >= REMEMBERED_SOURCES
        if is_full or self._readers_at != self._roster.changes:
            self._readers.clear()
            self._readers_at, self._readers_count = self._roster.changes, 0
        every = self._roster.readers
        found = [reader for source in targets.subscriptions if (reader := every.get(source)) is not None]
        readers = tuple(found) if len(found) < MANY else dict.fromkeys(found)
        self._readers[id(targets)] = targets, readers
        self._readers_count += len(readers)
        return readers

    def matching(self, event: Event) -> Iterable[ReaderKey]:
        """Return the local subscriptions that want an event."""
        return self._router.targets(event, self._own.broker).subscriptions

    # --- events of brokers ---

    def announce(self, events: Sequence[Event], sender: NodeId) -> list[Effect]:
        """Route events of brokers, which are in no log: each to everybody who asks for it."""
        onward: dict[NodeId, list[Event]] = {}
        local: list[tuple[Source, Event]] = []
        for place, targets in self._router.route(events, sender):
            for neighbour in targets.neighbours:
                onward.setdefault(neighbour, []).append(events[place])
            local += [(source, events[place]) for source in targets.subscriptions]
        effects: list[Effect] = [Send(node, Announce(tuple(going))) for node, going in onward.items()]
        return effects + self.tell(local)

    def tell(self, told: Iterable[tuple[ReaderKey, Event]], *, is_past: bool = False) -> list[Effect]:
        """Give events of brokers to local subscriptions, each once. Those that tell what was open before are past."""
        feeds = self._recovery.feeds
        for key, event in told:
            feeds.announce(key, event, is_past=is_past)
        return self.perform(self._recovery.moved())

    def tell_opened(self, fetches: Iterable[OpenFetch]) -> list[Effect]:
        """Give fetches what is open at all brokers."""
        for fetch in fetches:
            self._recovery.feeds.replaying.opened(fetch.key, fetch.picked(), fetch.missing)
        return self.perform(self._recovery.moved())

    # --- what recovery wants done ---

    def perform(self, acts: Iterable[Act]) -> list[Effect]:
        """Return effects: what readers are given as one message for each client, in order with all else."""
        effects: list[Effect] = []
        for act in acts:
            match act:
                case Say(to, message):
                    effects.append(Send(to, message))
                case Later(at):
                    effects.append(Wake(at))
                case _:
                    effects.append(ReadLog(*act))
        giving = self._recovery.feeds.giving
        if not giving.has_some:
            return effects
        effects = [*self._deliver(giving.take_given()), *effects]
        if giving.resolved or giving.finished:
            effects += (*self._resolved(), *self._finished())
        return [*effects, Wake(giving.now)] if giving.resolved else effects

    def accepted(
        self, source: ReaderKey, request: int = 0, lease: float = FOREVER, missing: tuple[str, ...] = ()
    ) -> Accepted:
        """Return what a client is told of its subscription: among others, how far it has come."""
        node, name = source
        one = self._clients[node].subscriptions[name]
        cursors = self._recovery.feeds.cursors(source)
        seen = tuple([(str(origin), offset) for origin, offset in cursors.items()])
        return Accepted(request, lease, one.epoch, one.last, seen, one.reader.taken, one.reader.made, missing)

    def _resolved(self) -> Iterator[Effect]:
        """Tell clients how far they have come in logs of which they did not know it."""
        for node, name in self._recovery.feeds.giving.take_resolved():
            client = self._clients.get(node)
            if client is not None and client.connected and name in client.subscriptions:
                yield Send(node, self.accepted((node, name)))

    def _deliver(self, given: Iterable[Given]) -> Iterator[Effect]:
        """Yield a message for each client: one copy of an event, with a number for each subscription."""
        notices: dict[NodeId, Notice] = {}
        fetched: dict[Reader, list[Event]] = {}
        for reader, first, flight in given:
            if reader.ends:
                fetched.setdefault(reader, []).extend(flight.events)
                continue
            notice = notices.get(reader.client)
            if notice is None:
                notice = notices[reader.client] = Notice()
            notice.add(reader.epoch, first, flight)
            if flight.gap is not None:
                yield GapTold(*reader.key, flight.gap)
        for node, notice in notices.items():
            for message in notice.messages():
                yield Send(node, message)
        for reader, events in fetched.items():
            for page in pages(events, lambda event: event):
                yield Send(reader.client, Fetched(request_of(reader), page, more=True))

    def _finished(self) -> Iterator[Effect]:
        """Yield the ends of fetches."""
        for reader, missing in self._recovery.feeds.giving.take_finished():
            client = self._clients.get(reader.client)
            if client is not None and client.end_fetch(request_of(reader)):
                yield Send(reader.client, Fetched(request_of(reader), (), tuple(dict.fromkeys(missing))))


class Notice:
    """The notifications for one client, in order: one message, unless that cannot name all their logs.

    An event that several subscriptions are given at once is in the message once.
    """

    __slots__ = ("_flights", "_numbers")

    def __init__(self) -> None:
        self._flights: list[Flight] = []
        self._numbers: list[list[tuple[int, int]]] = []  # of the first event, in each numbering

    def add(self, epoch: int, first: int, flight: Flight) -> None:
        if self._flights and self._flights[-1] is flight:
            self._numbers[-1].append((epoch, first))
        else:
            self._flights.append(flight)
            self._numbers.append([(epoch, first)])

    def messages(self) -> Iterator[Notify]:
        deliveries: list[Delivery] = []
        logs = NamedLogs()
        before: Flight | None = None
        for flight, numbers in zip(self._flights, self._numbers, strict=True):
            is_alike = before is not None and flight.origin is before.origin and flight.broker is before.broker
            if not is_alike and not logs.takes(flight):
                yield Notify(tuple(deliveries), logs.named)
                deliveries, logs = [], NamedLogs()
                logs.takes(flight)
            before = flight
            deliveries.append(Delivery(flight.carried, tuple(numbers), flight.is_replayed, flight.gap))
        yield Notify(tuple(deliveries), logs.named)


def request_of(fetch: Reader) -> int:
    """Return the number of the request that a reader fetches for."""
    return int(fetch.key[1].rpartition("/")[2])


def fetch_key(client: NodeId, request: int) -> ReaderKey:
    """Return the key of the reader that fetches for a request. No subscription has such a name."""
    return client, f"\0fetch/{request}"
