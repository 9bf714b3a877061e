"""The local clients of a broker: which are connected, and what each of them has here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vestnik.broker.naming import NamedLogs
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import FOREVER, MICROS
from vestnik.recovery.flight import Flight
from vestnik.recovery.reader import Reader
from vestnik.recovery.readers import Readers
from vestnik.routing.router import Router
from vestnik.wire.messages import Answer, Delivery, NodeId, Position, Subscribe, Unknown
from vestnik.wire.pages import pages

MOST_KEPT = 1_000_000
"""Notifications in flight to a subscription."""


class Subscription:
    """A subscription of a client: its terms, and the reader that is given its events."""

    def __init__(self, message: Subscribe, reader: Reader) -> None:
        self.reader = reader
        self.renew(message)

    @property
    def epoch(self) -> int:
        """The numbering."""
        return self.reader.epoch

    @property
    def filter(self) -> Filter:
        return self.reader.filter

    @property
    def last(self) -> int:
        """The last number that was given."""
        return self.reader.number

    def goes_on_with(self, message: Subscribe) -> bool:
        """Return whether a client means this numbering: it knows it, or adopts whatever there is."""
        is_known = self.epoch in (message.epoch, message.afresh)
        return is_known or (message.adopts and self.filter == message.filter)

    def renew(self, message: Subscribe) -> None:
        """Take over the terms of a message, and note how far the client has come."""
        self.replay = message.replay
        self.leased = message.lease < FOREVER
        self.reader.bound(message.window)
        if message.epoch == self.epoch:
            self.reader.take(message.last)

    def answer(self, after: int, now: float) -> Iterator[Answer]:
        """Yield what was sent after a number and has not expired, page by page."""
        alive = [one for one in self.reader.after(after) if not _has_expired(one[1].event, now)]
        for part, logs in _with_one_log(alive):
            for page in pages(part, lambda one: one[1].event):
                upto = self.last if page[-1] is alive[-1] else page[-1][0]
                deliveries = [
                    Delivery(one.carried, ((self.epoch, number),), one.is_replayed, one.gap) for number, one in page
                ]
                yield Answer(((self.epoch, upto),), tuple(deliveries), logs.named, after)
                after = upto
        if not alive:
            yield Answer(((self.epoch, self.last),), after=after)


def _has_expired(event: Event | None, now: float) -> bool:
    return event is not None and event.expires is not None and event.expires <= now * MICROS


def _with_one_log(found: Iterable[tuple[int, Flight]]) -> Iterator[tuple[list[tuple[int, Flight]], NamedLogs]]:
    """Yield parts, in order, in which each broker has one log: a message names the log of a broker once."""
    part: list[tuple[int, Flight]] = []
    logs = NamedLogs()
    for one in found:
        _, flight = one
        if not logs.takes(flight):
            yield part, logs
            part, logs = [], NamedLogs()
            logs.takes(flight)
        part.append(one)
    if part:
        yield part, logs


class Client:
    """A local client, connected or not."""

    def __init__(self) -> None:
        self.connected = True
        self.is_full = False
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, bool] = {}  # whether each has a lease
        self.fetches: dict[int, Reader] = {}  # by the request

    @property
    def is_forgotten(self) -> bool:
        """Whether nothing is left of it."""
        return not (self.connected or self.subscriptions or self.advertisements)

    @property
    def takes(self) -> bool:
        """Whether notifications are sent to it."""
        return self.connected and not self.is_full

    @property
    def readers(self) -> list[Reader]:
        return [*[one.reader for one in self.subscriptions.values()], *self.fetches.values()]

    # --- what it has ---

    def subscribe(self, name: str, subscription: Subscription) -> None:
        """Have a subscription, in place of the one with the same name."""
        self.subscriptions[name] = subscription

    def unsubscribe(self, name: str) -> Subscription | None:
        """Have a subscription no longer; return it, if there was one."""
        return self.subscriptions.pop(name, None)

    def advertise(self, name: str, *, leased: bool) -> None:
        self.advertisements[name] = leased

    def unadvertise(self, name: str) -> bool:
        """Have an advertisement no longer; return whether there was one."""
        return self.advertisements.pop(name, None) is not None

    def begin_fetch(self, request: int, reader: Reader) -> None:
        self.fetches[request] = reader

    def end_fetch(self, request: int) -> bool:
        """Have a fetch no longer; return whether there was one."""
        return self.fetches.pop(request, None) is not None

    # --- whether it takes what it is sent ---

    def connect(self) -> None:
        self.connected = True
        self._tell_readers()

    def disconnect(self) -> None:
        self.connected = self.is_full = False
        self._tell_readers()

    def fill(self) -> None:
        """Note that the client does not take what it is sent as fast as it comes."""
        self.is_full = True
        self._tell_readers()

    def drain(self) -> None:
        self.is_full = False
        self._tell_readers()

    def _tell_readers(self) -> None:
        for reader in self.readers:
            if self.takes:
                reader.go_on()
            else:
                reader.pause()

    def answer(self, positions: tuple[Position, ...], now: float) -> Iterator[Answer | Unknown]:
        """Yield what came after these positions. What has expired is not handed out."""
        for position in {position.name: position for position in positions}.values():
            known = self.subscriptions.get(position.name)
            if known is None or known.epoch != position.epoch:
                yield Unknown(position)
            else:
                yield from known.answer(position.after, now)


class Clients:
    """All local clients of one broker, by their names, and the terms on which they have something here."""

    def __init__(self, router: Router, readers: Readers) -> None:
        self.known: dict[NodeId, Client] = {}
        self._router = router
        self._readers = readers
        self.has_returned = False
        """Whether a client came back that was gone."""

    def heard(self, name: NodeId) -> Client:
        """Return the client that sent a message. It is connected, whether it was known before or not."""
        client = self.known.get(name)
        if client is None:
            client = self.known[name] = Client()
        elif not client.connected:
            self.has_returned = True
            client.connect()
            self._go_on(client)
        return client

    def forget_returns(self) -> None:
        """Forget that clients came back: they have got what they missed."""
        self.has_returned = False

    def gone(self, name: NodeId) -> None:
        """Note that a client is not connected any more."""
        self.known[name].disconnect()
        self.forget(name)

    def forget(self, name: NodeId) -> None:
        """Forget a client of which nothing is left."""
        if name in self.known and self.known[name].is_forgotten:
            del self.known[name]

    def full(self, name: NodeId) -> None:
        """Send a client nothing for now: what it wants stays in the logs."""
        self.heard(name).fill()

    def drained(self, name: NodeId) -> None:
        """Go on with a client that has taken what it was sent."""
        client = self.heard(name)
        client.drain()
        self._go_on(client)

    def _go_on(self, client: Client) -> None:
        for reader in client.readers if client.takes else ():
            self._readers.made_room(reader.key)

    # --- terms ---

    def granted(self, lease: float) -> float:
        """Return for how long something of a client lasts unless it is renewed."""
        return min(lease, self._router.leases.length)

    def unfit(self, client: NodeId, name: str, lease: float, window: int = 1) -> str:
        """Return why a client cannot have something of this name on these terms; an empty text if it can."""
        if client in self._router.neighbours:
            return f"{client} is the name of a neighbouring broker"
        if not lease > 0:
            return f"a lease is longer than nothing, not {lease}"
        if not 1 <= window <= MOST_KEPT:
            return f"from 1 to {MOST_KEPT:,} notifications may be in flight, not {window:,}"
        return "" if name else "it has no name"
