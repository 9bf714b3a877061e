"""The end of a broker's own log, in memory.

Events are here from the moment in which they are routed, so a page that is read here ends at the very edge of the log.
A broker with a disk reads older pages there. For a broker without one this is the whole log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence, Set
from typing import Final, NamedTuple

from vestnik.model.times import MICROS
from vestnik.recovery.blocks import OVERHEAD, Block, Wanting
from vestnik.recovery.pages import PAGE_SIZE, LogEntry, LogView, read_page
from vestnik.recovery.reader import Reader
from vestnik.wire.origins import ENDLESS, PackedSlice, ReadTerms, Slice, Span
from vestnik.wire.packing import unpack

BLOCK: Final = 64 * 1024
"""Bytes of a block, or up to twice as many, or one event more. Whole blocks are dropped."""
BLOCKS: Final = 64
"""The least number of blocks that fill a tail."""


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
        self._blocks: list[Block] = []
        self._firsts: list[int] = []  # the first offset of each block
        self._wanting = Wanting()
        self._packed_size = 0
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
    def _size(self) -> int:
        """The bytes of memory that it takes."""
        return self._packed_size + self._wanting.size

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
        self, offsets: Sequence[int], time: int, packed: Sequence[bytes], wanting: Sequence[Collection[Reader]]
    ) -> None:
        """Note that events that were accepted at a time are stored and routed, and which readers want each."""
        if not offsets:
            return
        assert offsets[0] >= self.routed, f"offset {offsets[0]} was routed before"
        self._dropped_until = min(self._dropped_until, time)
        largest = min(BLOCK, self.room // BLOCKS)
        many = max(1, largest // (OVERHEAD + max(map(len, packed))))  # that fit into a block, whichever they are
        for start in range(0, len(offsets), many):
            if not self._blocks or self._blocks[-1].size >= largest:
                self._blocks.append(Block(self._wanting))
                self._firsts.append(offsets[start])
            block, end = self._blocks[-1], start + many
            self._packed_size -= block.size
            block.extend(offsets[start:end], time, packed[start:end], wanting[start:end])
            self._packed_size += block.size
        self.routed = offsets[-1] + 1
        self._drop()

    def pass_over(self, offset: int) -> None:
        """Note that nothing will be routed at the offsets below `offset` that were not routed yet."""
        self.routed = max(self.routed, offset)

    def _drop(self) -> None:
        """Drop the oldest blocks for which there is no room. The latest always stays."""
        count = 0
        while self._size > self.room and count < len(self._blocks) - 1:
            oldest = self._blocks[count]
            oldest.drop()
            self._packed_size -= oldest.size
            self._start, self._dropped_until = oldest.offsets[-1] + 1, oldest.times[-1]
            count += 1
        if count:
            del self._blocks[:count], self._firsts[:count]

    def far_before(self, share: float) -> int:
        """Return the offset before which a reader lags by more than a share of the room; 0 if none can."""
        far = share * self.room
        if self._size <= far:
            return 0
        near = int(len(self._blocks) * far / self._size)  # blocks, which are about as large as each other
        return self._firsts[-near] if near else self.routed

    def read(self, terms: ReadTerms) -> Slice | None:
        """Read a page; None if some of it may be on disk only."""
        if self.is_history or (not self.is_whole and self._may_lack(terms)):
            return None
        return read_page(self, terms, self.routed)

    def read_wanted(self, start: int, limit: int, readers: Set[Reader]) -> PackedSlice | None:
        """Read what any of some readers wanted when it was routed; None if some of it is not here.

        The router knew what they want now when the event at `start` was routed.
        """
        if start < self._start or start > self.routed:
            return None
        packed: list[bytes] = []
        times: list[int] = []
        upto, size = self.routed, 0
        for block, place in self._places(Span(start, self.routed)):
            if readers.isdisjoint(block.wanting[place]):
                continue
            one = block.packed[place]
            if len(packed) == limit or (packed and size + len(one) > PAGE_SIZE):
                upto = block.offsets[place]
                break
            packed.append(one)
            times.append(block.times[place])
            size += len(one)
        events = tuple(map(unpack, packed))
        return PackedSlice(start, events, upto, times=tuple(times), size=size, packed=packed)

    def wants(self, reader: Reader, offset: int) -> bool | None:
        """Return whether a reader wanted an event when it was routed; None if that is not known of its filter."""
        if offset < max(self._start, reader.known_from) or offset >= self.routed:
            return None
        block, place = next(self._places(Span(offset, offset + 1)), (None, 0))
        return None if block is None else reader in block.wanting[place]

    def _may_lack(self, terms: ReadTerms) -> bool:
        return terms.pick is not None or not self._has(terms.start, terms.since)

    def _has(self, start: int, since: int | None) -> bool:
        """Return whether everything is here that is read from an offset on, or since a time."""
        return start >= self._start or (since is not None and since > self._dropped_until)

    def entries(self, span: Span) -> Iterator[LogEntry]:
        for block, place in self._places(span):
            yield LogEntry(block.offsets[place], block.times[place], block.packed[place])

    def offset_since(self, time: int) -> int:
        if self._dropped_until >= time:
            return 0
        after = bisect_left(self._blocks, time, key=_first_time) - 1  # the last block that began before
        if after < 0:
            return self._start
        block = self._blocks[after]
        return block.offsets[bisect_left(block.times, time) - 1] + 1

    def _places(self, span: Span) -> Iterator[tuple[Block, int]]:
        """Yield the block and the place of each event of a span, in order."""
        at = max(0, bisect_right(self._firsts, span.first) - 1)
        for block in self._blocks[at:]:
            first, end = block.place(span.first), block.place(span.end)
            for place in range(first, end):
                yield block, place
            if end < len(block):
                return


def _first_time(block: Block) -> int:
    return block.times[0]
