"""Flights: events that readers are given together, or a gap, until their clients have taken them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Raw, Struct

from vestnik.model.events import Event
from vestnik.wire.messages import Gap, NodeId
from vestnik.wire.origins import Origin
from vestnik.wire.packing import Carried, unpacked


class Flight(Struct, frozen=True, eq=False, gc=False):
    """Events of one log in order, with the bytes of each and of all; or one gap. Readers that are given it share it.

    Events of brokers are of no log. All events are of one broker. Live events are `carried` packed, and so are those
    that were read from the log in memory: they may be in flight for long, and are not packed again.
    """

    carried: tuple[Carried, ...]
    sizes: Sequence[int]
    size: int
    count: int
    """How many numbers a reader gives to it."""
    origin: Origin | None
    broker: NodeId | None
    """The broker that accepted the events."""
    is_replayed: bool = False
    gap: Gap | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        return unpacked(self.carried)

    @property
    def event(self) -> Event | None:
        """The first event; None for a gap."""
        return unpacked(self.carried[:1])[0] if self.carried else None

    def part(self, start: int, end: int) -> Flight:
        """Return the events from one place to another."""
        if start == 0 and end >= self.count:
            return self
        sizes = self.sizes[start:end]
        return Flight(
            self.carried[start:end], sizes, sum(sizes), len(sizes), self.origin, self.broker, self.is_replayed
        )

    def fitting(self, room: int) -> int:
        """Return how many events begin within `room` bytes."""
        return sum([before < room for before in accumulate(self.sizes[:-1], initial=0)])


def of_packed(packed: Sequence[bytes], origin: Origin) -> Flight:
    """Return a flight of some events as the log has them."""
    sizes = list(map(len, packed))
    return Flight(tuple(map(Raw, packed)), sizes, sum(sizes), len(sizes), origin, origin.broker)


def together(events: tuple[Event, ...], sizes: Sequence[int], origin: Origin) -> Flight:
    """Return a flight of some events, which have these bytes."""
    return Flight(events, sizes, sum(sizes), len(events), origin, events[0].broker)


def single(event: Event, size: int, origin: Origin | None, *, is_replayed: bool = False) -> Flight:
    """Return a flight of one event."""
    return Flight((event,), (size,), size, 1, origin, event.broker, is_replayed)


def gap_in_flight(gap: Gap) -> Flight:
    """Return a flight of one gap."""
    return Flight((), (0,), 0, 1, None, None, gap=gap)
