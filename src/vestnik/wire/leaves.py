"""Pages of what a broker took: events stay packed, with their positions and times beside them.

Whoever wants columns decodes `page.packed` at once, as an array of events; whoever wants events has them `opened`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from msgspec import Raw, msgpack

from vestnik.errors import InvalidEvent
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import Page, Taken, Unread
from vestnik.wire.packing import TAKEN, UNREADABLE, split_all, split_taken, unpack

MOST: Final = 4_096
"""Events of a page."""
PAGE_SIZE: Final = 1 << 20
"""Bytes of a page, unless it is of one event."""
NIL: Final = 0xC0
"""The last byte of an event that has no seq, and of few that have one."""

EVERYTHING: Final = Filter.all()
_decode_events: Final = msgpack.Decoder(list[Event]).decode


class Stored(Protocol):
    """A record of a journal."""

    @property
    def position(self) -> int: ...

    @property
    def kind(self) -> int: ...

    @property
    def time(self) -> int: ...

    @property
    def payload(self) -> bytes: ...


class Gap(Protocol):
    """Positions of a journal that cannot be read, and why."""

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def reason(self) -> str: ...


class Leaf:
    """A page that is being filled, with what is `wanted`, up to `most` events.

    What waits for its time has no seq, and is no event yet: it is left out. What is no event at all is said, and shown
    to whoever wants everything.
    """

    def __init__(self, wanted: Filter = EVERYTHING, most: int | None = None) -> None:
        self._matches = None if wanted == EVERYTHING else wanted.matches
        self._most = MOST if most is None else min(most, MOST)
        self._positions: list[int] = []
        self._times: list[int] = []
        self._packed: list[Raw] = []
        self._unread: list[Unread] = []
        self._size = 0

    @property
    def count(self) -> int:
        """Events that are on it."""
        return len(self._positions)

    def put_all(self, records: Sequence[Stored]) -> int:
        """As `put` of the first of them, as many as there is room for; how many.

        None, where they have to be looked at one by one.
        """
        if self._matches is not None:
            return 0
        records = records[: self._most - self.count]
        payloads = [record.payload for record in records]
        ends = list(accumulate(map(len, payloads), initial=self._size))
        if ends[-1] > PAGE_SIZE:
            fitting = max(bisect_right(ends, PAGE_SIZE) - 1, 0)
            records, payloads, ends = records[:fitting], payloads[:fitting], ends[: fitting + 1]
        try:
            packed = [split_taken(payload)[1] for payload in payloads]
            doubtful = [one for one, payload in zip(packed, payloads, strict=True) if payload[-1] == NIL]
            if {record.kind for record in records} - {TAKEN} or None in [unpack(one).seq for one in doubtful]:
                return 0
        except UNREADABLE:
            return 0
        self._packed += packed
        self._positions += [record.position for record in records]
        self._times += [record.time for record in records]
        self._size = ends[-1]
        return len(records)

    def put(self, record: Stored) -> bool:
        """Take in a client and an event, packed, if it is wanted; False where there is no room for it."""
        payload = record.payload
        size = len(payload)
        if (self._size and self._size + size > PAGE_SIZE) or len(self._positions) == self._most:
            return False
        try:
            if record.kind != TAKEN:
                raise InvalidEvent(f"a record of the kind {record.kind}, which this version does not know")
            _, packed = split_taken(payload)
            if self._matches is None:
                is_wanted = payload[-1] != NIL or unpack(packed).seq is not None
            else:
                event = unpack(packed)
                is_wanted = event.seq is not None and self._matches(event)
        except UNREADABLE as error:
            shown = payload if self._matches is None else b""
            at = record.position
            self._unread.append(Unread(at, at, _no_event(error), False, record.time, shown))
            self._size += size
            return True
        if is_wanted:
            self._positions.append(record.position)
            self._times.append(record.time)
            self._packed.append(packed)
            self._size += size
        return True

    def miss(self, gaps: Iterable[Gap], first: int, upto: int) -> None:
        """Something cannot be read, as far as position `upto`: what is before the `first` that is kept was dropped."""
        for gap in gaps:
            if gap.first <= upto:
                self._unread.append(Unread(gap.first, min(gap.last, upto), gap.reason, gap.last < first))

    def page(self, after: int) -> Page:
        """All of it; there was no more up to position `after`."""
        packed = array_of(self._packed)
        unread = sorted(self._unread, key=lambda one: one.first)
        return Page(after, tuple(self._positions), tuple(self._times), packed, tuple(unread))


def array_of(packed: list[Raw]) -> bytes:
    """What was packed one by one, packed as one array."""
    head = b"\xdd" + len(packed).to_bytes(4, "big")
    return b"".join([head, *packed])


class Columns(NamedTuple):
    """What is on a page: equally long, and in order; and what cannot be read."""

    positions: Sequence[int]
    times: Sequence[int]
    events: Sequence[Event]
    unread: Sequence[Unread]


def columns_of(page: Page) -> Columns:
    try:
        return Columns(page.positions, page.times, _decode_events(page.packed), page.unread)
    except UNREADABLE:
        return _one_by_one(page)


def _one_by_one(page: Page) -> Columns:
    taken: list[tuple[int, int, Event]] = []
    unread = list(page.unread)
    for position, time, packed in zip(page.positions, page.times, split_all(page.packed), strict=True):
        try:
            taken.append((position, time, unpack(packed)))
        except UNREADABLE as error:
            unread.append(Unread(position, position, _no_event(error), False, time, bytes(packed)))
    positions, times, events = zip(*taken, strict=True) if taken else ((), (), ())
    return Columns(positions, times, events, sorted(unread, key=lambda one: one.first))


def opened(page: Page) -> tuple[list[Taken], Sequence[Unread]]:
    """What is on a page, one by one, and what cannot be read, each in order."""
    positions, times, events, unread = columns_of(page)
    return list(map(Taken, positions, times, events)), unread


def _no_event(error: Exception) -> str:
    return f"it is no event: {error}"
