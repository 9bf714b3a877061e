"""The end of a broker's own log, in memory.

Events are here from the moment in which they are routed, so a page that is read here ends at the very edge of the log.
A broker with a disk reads older pages there. For a broker without one this is the whole log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from vestnik.recovery.pages import LogEntry, LogView, read_page
from vestnik.wire.origins import ReadTerms, Slice, Span

SPARE: Final = 1_000
"""Dropped entries that may stay in the list until it is cut."""


class Tail(LogView):
    """The last entries of a log, as many as have `room` bytes together. Offsets below `routed` were routed.

    `next` is the offset of the next event that is accepted. Nothing leaves the log before it is routed.
    """

    def __init__(self, room: int, start: int = 0, *, is_whole: bool = True) -> None:
        self.next = start
        self.routed = start
        self._is_whole = is_whole
        self._start = start
        self._room = room
        self._size = 0
        self._entries: list[LogEntry] = []
        self._sizes: list[int] = []
        self._head = 0  # entries before it were dropped
        self._dropped_until = -1  # the latest time of what was dropped

    @property
    def start(self) -> int:
        return self._start

    @property
    def holes(self) -> tuple[Span, ...]:
        return ()

    def accept(self, count: int) -> range:
        """Return the offsets of the next events. They are not given again, whatever becomes of these events."""
        offsets = range(self.next, self.next + count)
        self.next += count
        return offsets

    def extend(self, entry: LogEntry, size: int) -> None:
        """Note that an event of `size` bytes is stored and about to be routed."""
        assert entry.offset >= self.routed, f"offset {entry.offset} was routed before"
        self._entries.append(entry)
        self._sizes.append(size)
        self._size += size
        self.routed = entry.offset + 1
        self._drop()

    def _drop(self) -> None:
        """Drop the oldest entries for which there is no room. The latest always stays."""
        while self._size > self._room and self._head < len(self._entries) - 1:
            dropped = self._entries[self._head]
            self._size -= self._sizes[self._head]
            self._start, self._dropped_until = dropped.offset + 1, dropped.time
            self._head += 1
        if self._head > max(SPARE, len(self._entries) // 2):
            del self._entries[: self._head], self._sizes[: self._head]
            self._head = 0

    def read(self, terms: ReadTerms) -> Slice | None:
        """Read a page; None if some of it may be on disk only."""
        if not self._is_whole and (terms.start < self._start or terms.last or terms.since is not None):
            return None
        return read_page(self, terms, self.routed)

    def entries(self, span: Span) -> Iterator[LogEntry]:
        first = bisect_left(self._entries, span.first, lo=self._head, key=lambda entry: entry.offset)
        end = bisect_left(self._entries, span.end, lo=first, key=lambda entry: entry.offset)
        return iter(self._entries[first:end])

    def offset_since(self, time: int) -> int:
        if self._dropped_until >= time:
            return 0
        place = bisect_left(self._entries, time, lo=self._head, key=lambda entry: entry.time)
        return self._entries[place - 1].offset + 1 if place > self._head else self._start
