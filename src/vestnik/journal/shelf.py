"""The segments of a journal, in order of position."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from threading import Lock

from vestnik.journal.directory import Directory
from vestnik.journal.index import sum_up, write_index
from vestnik.journal.segments import Segment


class Shelf:
    """Closed segments, and behind them the one that grows.

    Files change together with what is known of them, under `lock`. Who reads a file without it asks afterwards whether
    the shelf still `holds` the segment by which it was read.
    """

    def __init__(self, directory: Directory, segments: Iterable[Segment]) -> None:
        self.directory = directory
        self.lock = Lock()
        self.segments = tuple(segments)

    @property
    def closed(self) -> tuple[Segment, ...]:
        return self.segments[:-1]

    @property
    def growing(self) -> Segment:
        return self.segments[-1]

    def after(self, position: int) -> Segment:
        """The first segment that stands for a position above `position`, or the one that grows."""
        segments = self.segments
        found = bisect_left(segments, position + 1, key=lambda segment: segment.last)
        return segments[min(found, len(segments) - 1)]

    def holds(self, segment: Segment) -> bool:
        """Whether `segment` still is what the file of its name holds."""
        with self.lock:
            return segment in self.segments

    def replace(self, segments: Sequence[Segment], rewritten: Segment) -> bool:
        """Give the place and the name of `segments`, which are neighbours, to a rewritten one; False if one is gone."""
        sum_up(self.directory, rewritten)
        with self.lock:
            if not set(segments) <= set(self.segments):
                return False
            rewritten.path = rewritten.path.rename(segments[0].path)
            at = self.segments.index(segments[0])
            self.segments = (*self.segments[:at], rewritten, *self.segments[at + len(segments) :])
            write_index(self.directory, rewritten, is_durable=True)
            return True

    def index(self, segments: Iterable[Segment], *, is_durable: bool) -> None:
        """Write the indexes of closed segments, unless they were dropped or rewritten meanwhile."""
        for segment in segments:
            sum_up(self.directory, segment)
            with self.lock:
                if segment in self.segments:
                    write_index(self.directory, segment, is_durable=is_durable)

    def add(self, segment: Segment) -> None:
        """From now on, this is the one that grows. The caller has the lock."""
        self.segments = (*self.segments, segment)

    def put(self, first: int, count: int, segments: Iterable[Segment]) -> None:
        """Replace `count` segments, from the one with the number `first` on, by others. The caller has the lock."""
        self.segments = (*self.segments[:first], *segments, *self.segments[first + count :])

    def take(self, number: int) -> tuple[Segment, ...]:
        """The oldest segments, so many, which are on the shelf no more. The caller has the lock."""
        taken, self.segments = self.segments[:number], self.segments[number:]
        return taken
