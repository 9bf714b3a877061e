"""The reader: a subscription as its feeds see it.

A reader numbers what it is given, without gaps, so that a client sees a loss as a loss. It bounds what is in flight
between broker and client, never what can be had: what does not fit stays in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.streams import Recent
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Origin, Span

REPEAT_WINDOW: Final = 100_000
"""Events of a subscription among which a repeat at another broker is recognised, at least."""

ReaderKey: TypeAlias = tuple[NodeId, str]
"""The client and the name of a subscription."""


class Given(NamedTuple):
    """An event for a reader, or the gap of events that the log of an origin has no more."""

    reader: ReaderKey
    number: int
    origin: Origin
    what: Event | Span


class InFlight(NamedTuple):
    """What a reader was given and has not taken: before it is taken, `offset` is where the reader has come to."""

    number: int
    origin: Origin
    offset: int


class Reader:
    """One subscription. New origins are read from what they accepted since it was `made`, a time in microseconds.

    `last` is the last number that the client knows; `recent` are (source, id) pairs that it was given elsewhere.
    """

    def __init__(
        self,
        key: ReaderKey,
        wanted: Filter,
        made: int,
        window: int,
        *,
        last: int = 0,
        recent: Iterable[tuple[Pair, Origin]] = (),
    ) -> None:
        self.key = key
        self.filter = wanted
        self.made = made
        self.is_here = True
        self.number = last
        self.unsaid: list[tuple[Origin, Span]] = []  # gaps that came while the client was away
        self.in_flight: deque[InFlight] = deque()
        self._window = window
        self._origins: Recent[Pair, Origin] = Recent(REPEAT_WINDOW)  # at which each event was given
        for pair, origin in recent:
            self._origins.put(pair, origin)

    @property
    def room(self) -> int:
        """How many events can be given now."""
        return self._window - len(self.in_flight) if self.is_here else 0

    def repeats(self, origin: Origin, event: Event) -> bool:
        """Return whether the event was given as that of another origin, where its publisher published it too."""
        known = self._origins.get((event.source, event.id))
        return known is not None and known != origin

    def give(self, origin: Origin, event: Event) -> Given:
        self._origins.put((event.source, event.id), origin)
        return self._numbered(origin, event, event.seq or 0)

    def tell(self, origin: Origin, gap: Span) -> Given:
        return self._numbered(origin, gap, gap.first)

    def _numbered(self, origin: Origin, what: Event | Span, offset: int) -> Given:
        self.number += 1
        self.in_flight.append(InFlight(self.number, origin, offset))
        return Given(self.key, self.number, origin, what)

    def take(self, number: int) -> None:
        """Note that the client has taken everything up to a number."""
        while self.in_flight and self.in_flight[0].number <= number:
            self.in_flight.popleft()
