"""The end of a broker's own log, in memory.

Events are here from the moment in which they are routed, so a page that is read here ends at the very edge of the log.
A broker with a disk reads older pages there. For a broker without one this is the whole log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from vestnik.model.events import Event
from vestnik.model.times import MICROS
from vestnik.recovery.pages import PAGE_SIZE, LogEntry, LogView, read_page
from vestnik.recovery.reader import Reader
from vestnik.wire.origins import ENDLESS, ReadTerms, Slice, Span
from vestnik.wire.packing import unpack

SPARE: Final = 1_000
"""Dropped entries that may stay in the list until it is cut."""
OVERHEAD: Final = 200
"""Bytes that an entry takes beside its event, roughly."""
UNPACKED: Final = 8_000
"""The latest events that are kept unpacked, too: readers that lag a little read them."""
SMALL: Final = 256
"""Bytes of an event that is kept unpacked. It may take sixty times as many then, if it has many values."""


class Stamp(NamedTuple):
    """The first of some consecutive offsets, and the time in microseconds at which their events were accepted."""

    first: int
    time: int


class Tail(LogView):
    """The last entries of a log, as many as have `room` bytes together. Offsets below `routed` were routed.

    `next` is the offset of the next event that is accepted. Nothing leaves the log before it is routed. `latest` is the
    time of the last event that was accepted. The tail of a history is always empty: what it keeps is read elsewhere.
    """

    def __init__(
        self, room: int, start: int = 1, *, is_whole: bool = True, latest: int = 0, is_history: bool = False
    ) -> None:
        self.is_history = is_history
        self._begin = start if is_whole else 1
        self.next = start
        self.routed = start
        self.room = room
        self.is_whole = is_whole
        self._latest = latest
        self._start = start
        self._size = 0
        # Columns: the offset of each event, when it was accepted, its bytes, and the readers that wanted it.
        self._offsets: list[int] = []
        self._times: list[int] = []
        self._packed: list[bytes] = []
        self._wanting: list[Collection[Reader]] = []
        self._events: list[Event | None] = []  # the latest, unpacked
        self._head = 0  # what is before it was dropped
        # The latest time of what is not here. A damaged log has lost its end, so nobody knows before the next event.
        self._dropped_until = -1 if is_whole else ENDLESS

    @property
    def begin(self) -> int:
        return self._begin

    @property
    def start(self) -> int:
        return self._start

    @property
    def latest(self) -> int:
        """The time of the last event that was accepted."""
        return self._latest

    @property
    def holes(self) -> tuple[Span, ...]:
        return ()

    def why(self, gap: Span) -> str:
        return f"the broker has no data folder, and keeps {self.room // (1024 * 1024):,} MiB of events in memory"

    def accept(self, count: int, now: float) -> Stamp:
        """Return the offsets of the next events. They are not given again, whatever becomes of these events."""
        first, self.next = self.next, self.next + count
        self._latest = max(self._latest, int(now * MICROS))
        return Stamp(first, self._latest)

    def extend(
        self,
        offsets: Sequence[int],
        time: int,
        packed: Sequence[bytes],
        events: Sequence[Event],
        wanting: Iterable[Collection[Reader]],
    ) -> list[int]:
        """Note that events that were accepted at a time are stored and routed, and which readers want each.

        Return the bytes of each.
        """
        sizes = list(map(len, packed))
        if not sizes:
            return sizes
        assert offsets[0] >= self.routed, f"offset {offsets[0]} was routed before"
        self._dropped_until = min(self._dropped_until, time)
        self._offsets += offsets
        self._times += [time] * len(offsets)
        self._packed += packed
        self._wanting += wanting
        are_small = max(sizes) <= SMALL
        self._events += events if are_small else map(_if_small, events, sizes)
        if len(self._events) > 2 * UNPACKED:
            del self._events[:-UNPACKED]
        self._size += sum(sizes) + OVERHEAD * len(sizes)
        self.routed = offsets[-1] + 1
        self._drop()
        return sizes

    def pass_over(self, offset: int) -> None:
        """Note that nothing will be routed at the offsets below `offset` that were not routed yet."""
        self.routed = max(self.routed, offset)

    def _drop(self) -> None:
        """Drop the oldest events for which there is no room. The latest always stays."""
        while self._size > self.room and self._head < len(self._offsets) - 1:
            self._size -= len(self._packed[self._head]) + OVERHEAD
            self._start, self._dropped_until = self._offsets[self._head] + 1, self._times[self._head]
            self._head += 1
        if self._head > max(SPARE, len(self._offsets) // 2):
            for column in (self._offsets, self._times, self._packed, self._wanting):
                del column[: self._head]
            self._head = 0

    def far_before(self, share: float) -> int:
        """Return the offset before which a reader lags by more than a share of the room; 0 if none can."""
        count = len(self._offsets) - self._head
        near = int(count * share * self.room / self._size) if self._size else count
        return self._offsets[-near] if 0 < near < count else 0

    def read(self, terms: ReadTerms) -> Slice | None:
        """Read a page; None if some of it may be on disk only."""
        if self.is_history or (not self.is_whole and self._may_lack(terms)):
            return None
        return read_page(self, terms, self.routed)

    def read_wanted(self, start: int, limit: int, readers: Set[Reader]) -> Slice | None:
        """Read what any of some readers wanted when it was routed; None if some of it is not here.

        The router knew what they want now when the event at `start` was routed.
        """
        if start < self._start or start > self.routed:
            return None
        first, before = self._place(start), len(self._offsets) - len(self._events)
        events: list[Event] = []
        times: list[int] = []
        upto, size = self.routed, 0
        for place in range(first, len(self._offsets)):
            if readers.isdisjoint(self._wanting[place]):
                continue
            packed = self._packed[place]
            if len(events) == limit or (events and size + len(packed) > PAGE_SIZE):
                upto = self._offsets[place]
                break
            event = self._events[place - before] if place >= before else None
            events.append(event or unpack(packed))
            times.append(self._times[place])
            size += len(packed)
        return Slice(start, tuple(events), upto, times=tuple(times), size=size)

    def wants(self, reader: Reader, offset: int) -> bool | None:
        """Return whether a reader wanted an event when it was routed; None if that is not known of its filter."""
        if offset < max(self._start, reader.known_from) or offset >= self.routed:
            return None
        place = self._place(offset)
        if place == len(self._offsets) or self._offsets[place] != offset:
            return None
        return reader in self._wanting[place]

    def _may_lack(self, terms: ReadTerms) -> bool:
        return terms.pick is not None or not self._has(terms.start, terms.since)

    def _has(self, start: int, since: int | None) -> bool:
        """Return whether everything is here that is read from an offset on, or since a time."""
        return start >= self._start or (since is not None and since > self._dropped_until)

    def entries(self, span: Span) -> Iterator[LogEntry]:
        first = self._place(span.first)
        end = bisect_left(self._offsets, span.end, lo=first)
        before = len(self._offsets) - len(self._events)
        for place in range(first, end):
            event = self._events[place - before] if place >= before else None
            yield LogEntry(self._offsets[place], self._times[place], self._packed[place], event)

    def offset_since(self, time: int) -> int:
        if self._dropped_until >= time:
            return 0
        place = bisect_left(self._times, time, lo=self._head)
        return self._offsets[place - 1] + 1 if place > self._head else self._start

    def _place(self, offset: int) -> int:
        return bisect_left(self._offsets, offset, lo=self._head)


def _if_small(event: Event, size: int) -> Event | None:
    return event if size <= SMALL else None
