"""The reader: a subscription as its feeds see it.

A reader numbers what it is given, without gaps, so that a client sees a loss as a loss. It bounds what is in flight
between broker and client, never what can be had: what does not fit stays in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.streams import Recent
from vestnik.recovery.allowance import Allowance
from vestnik.recovery.fingerprints import Fingerprints
from vestnik.recovery.limits import IN_FLIGHT
from vestnik.recovery.repeats import Repeats, Twin, Until
from vestnik.wire.messages import Gap, NodeId
from vestnik.wire.origins import ENDLESS, Origin, Placed

EARLIER: Final = 8
"""Filters that a reader had before, and gaps that it was told, by which it knows what it was given."""
ANNOUNCED: Final = 10_000
"""Events of brokers that a reader is not given again."""

ReaderKey: TypeAlias = tuple[NodeId, str]
"""The client and the name of a subscription."""


class Flight(NamedTuple):
    """An event of a log with its size in bytes, or a gap, in flight. Readers that are given it at once share it.

    Events of brokers are of no log.
    """

    event: Event | None
    size: int
    origin: Origin | None
    is_replayed: bool = False
    gap: Gap | None = None


class Reader:
    """One subscription. New origins are read from what they accepted since it was `made`, a time in microseconds.

    At most `window` notifications are in flight. While the client does not take any, there is no room. A reader that
    `replays` starts in the past; what is replayed has a time from `past_since` on, if that is given. A reader that
    `ends` is done when it has read what there was when it started, and does not wait for what is open at brokers.
    `number` is the last that was given, in the numbering `epoch`; `taken` is the last that the client has taken.
    """

    def __init__(
        self,
        key: ReaderKey,
        wanted: Filter,
        made: int,
        window: int,
        *,
        replays: bool = False,
        past_since: int | None = None,
        ends: bool = False,
        waits_for_open: bool = False,
    ) -> None:
        self.key = key
        self.replays = replays
        self.past_since = past_since
        self.filter = wanted
        self.made = made
        self.window = window
        self.ends = ends
        self.waits_for_open = waits_for_open
        self.takes = True
        self.from_past = False  # it started in the past, and has not come to the present
        self.earlier: list[tuple[int, Filter]] = []  # what was accepted before a time must match this filter, too
        self.moved_at = 0.0  # when it took something last, or began to lag
        self.epoch = 0
        self.number = 0
        self.taken = 0
        self.in_flight: deque[Flight] = deque()  # the last of them has the last number
        self.known_from = ENDLESS  # offset of the own log from which on the router knows this filter
        self.is_young = False  # it has not come to the present in all logs since it started
        self.began = 0  # the serial number of the last event before that, or before it changed its filter
        # Filters, from one serial number to another, and how far the reader had come then in logs in which it lagged.
        self._had: deque[tuple[int, int, Filter, Mapping[Origin, int]]] = deque(maxlen=EARLIER)
        self._gaps: deque[Gap] = deque(maxlen=EARLIER)  # what it was told instead of events
        self.forgets = Until(0, 0.0)  # how long it has to remember what it was given
        self.remembered: Fingerprints | None = None
        self.announced: Recent[str, bool] = Recent(ANNOUNCED)  # ids of events of brokers
        self._allowance = Allowance(IN_FLIGHT)
        self._size = 0

    def join(self, allowance: Allowance) -> None:
        """Share what may be in flight with the other readers of a broker."""
        self._allowance = allowance
        allowance.join(self._size)

    def leave(self) -> None:
        """Count no longer among the readers of the broker."""
        self._allowance.leave(self._size)
        self._allowance = Allowance(IN_FLIGHT)

    @property
    def client(self) -> NodeId:
        return self.key[0]

    def is_before_past(self, placed: Placed) -> bool:
        """Return whether an event is too old to be replayed."""
        return self.past_since is not None and placed.time < self.past_since

    def may_have(self, placed: Placed) -> bool:
        """Return whether an event was wanted when it was accepted; True if the filter has not changed since."""
        return all(placed.accepted >= until or one.matches(placed.event) for until, one in self.earlier)

    @property
    def room(self) -> int:
        """How many notifications can be given now."""
        if not self.takes or self._size >= self._allowance.window:
            return 0
        return self.window - len(self.in_flight)

    def come_to_present(self, repeats: Repeats) -> None:
        """Note that the reader has come to the present in all logs, after the last event that came."""
        self.from_past = False
        self.earlier.clear()
        if self.is_young:
            self.is_young, self.began = False, repeats.serial
            self.forgets = repeats.until()

    def note_had(self, serial: int, lagging: Mapping[Origin, int]) -> None:
        """Note that the reader was given what came until now, but in `lagging` logs only up to these cursors.

        While it is young, it remembers by itself what it is given.
        """
        if not self.is_young and serial > self.began:
            self._had.append((self.began, serial, self.filter, lagging))
        self.began = serial

    def had_before(self, event: Event, twin: Twin) -> bool:
        """Return whether an event that came as a twin was given before the filter changed or the reader was young."""
        return any(
            first < twin.serial <= last and twin.offset < lagging.get(twin.origin, ENDLESS) and wanted.matches(event)
            for first, last, wanted, lagging in self._had
        )

    def missed(self, twin: Twin) -> bool:
        """Return whether an event was told as a gap."""
        log = str(twin.origin) if self._gaps else ""
        return any(gap.log == log and gap.first <= twin.offset < gap.end for gap in self._gaps)

    def remember(self, pair: Pair, repeats: Repeats) -> None:
        """Remember an event that is given, because it may come again from another log."""
        self.remembered = self.remembered or Fingerprints(repeats.window)
        self.forgets = repeats.until()
        self.remembered.add(pair)

    def give(self, flight: Flight) -> int:
        """Let something be in flight; return its number."""
        self.in_flight.append(flight)
        self._size += flight.size
        self._allowance.change(flight.size)
        self.number = number = self.number + 1
        return number

    def give_run(self, flights: Sequence[Flight], size: int) -> int:
        """Let as much be in flight as there is room for; return how much. The `size` is that of all together."""
        room = self.room
        if room < len(flights) or self._size + size >= self._allowance.window:
            for count, flight in enumerate(flights):
                if self.room <= 0:
                    return count
                self.give(flight)
            return len(flights)
        self.in_flight.extend(flights)
        self._size += size
        self._allowance.change(size)
        self.number += len(flights)
        return len(flights)

    def tell(self, gap: Gap) -> Flight:
        """Let a gap be in flight."""
        if gap.log:
            self._gaps.append(gap)
        flight = Flight(None, 0, None, gap=gap)
        self.give(flight)
        return flight

    @property
    def first_in_flight(self) -> int:
        """The number of the first that is in flight."""
        return self.number - len(self.in_flight) + 1

    def take(self, number: int) -> None:
        """Note that the client has taken everything up to a number."""
        self.taken = max(self.taken, min(number, self.number))
        in_flight, size = self.in_flight, self._size
        for _ in range(min(len(in_flight), number + 1 - self.first_in_flight)):
            size -= in_flight.popleft().size
        self._allowance.change(size - self._size)
        self._size = size

    def after(self, number: int) -> Iterator[tuple[int, Flight]]:
        """Yield what is in flight after a number."""
        first = max(number + 1, self.first_in_flight)
        return enumerate(islice(self.in_flight, first - self.first_in_flight, None), first)
