"""Reading the journal of another process, or of none that runs: nothing is repaired, cut off or set aside."""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from vestnik.errors import JournalFailed
from vestnik.journal.cursor import FOREVER
from vestnik.journal.disk import Source, sync_directory
from vestnik.journal.losses import end_missing, hole
from vestnik.journal.records import Record
from vestnik.journal.reports import Lost
from vestnik.journal.scan import CHUNK, Piece, pieces
from vestnik.journal.segments import HEADER_SIZE, Header, Segment, first_of, segments_in
from vestnik.journal.watermark import watermark_in

NEAR: Final = 1 << 20
"""Bytes that are read for nothing, at most, to find a position in a segment."""
READ_ONLY: Final = frozenset({errno.EROFS, errno.EINVAL})
"""What a disk says that is not written to: all that is there is durable."""


class Stretch(NamedTuple):
    """Records that follow each other, and what is lost before them; there is no more up to position `after`."""

    after: int
    records: list[Record]
    lost: list[Lost]


class Observer:
    """The journal in `directory`, as it is when it is asked. A record that is half written is not there yet.

    What it tells of is durable: where its owner has not synced it yet, this does.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._durable: set[str] = set()  # the names of segments that grow no more, and were synced

    @property
    def first(self) -> int:
        """The first position that was not dropped; the one that comes next where there is none."""
        paths = self._paths()
        return first_of(paths[0]) if paths else watermark_in(self._directory).first

    def last(self) -> int:
        """Return the last position that is durable, or that was durable and is lost; 0 if nothing was stored."""
        reached = watermark_in(self._directory).last  # before the segments, which have all of that if nothing is lost
        while paths := self._paths():
            try:
                last = _last_of(paths[-1])
                self._sync(paths)
                return max(last, reached)
            except FileNotFoundError:  # dropped or rewritten meanwhile
                continue
        return reached

    def read(self, after: int, upto: int | None = None) -> Iterator[Stretch]:
        """What is behind position `after`, and up to `upto` or to what is the last now."""
        last = self.last()
        upto = last if upto is None else min(upto, last)
        while after < upto:
            paths = self._paths()
            if not paths:
                yield Stretch(upto, [], _lost(after, upto, "their segments are missing"))
                return
            path, following = _segment_with(paths, after + 1)
            try:
                source = Source(path)
            except FileNotFoundError:
                continue
            with source:
                for stretch in _stretches(source, following, after, upto):
                    after = stretch.after
                    yield stretch

    def _paths(self) -> list[Path]:
        return segments_in(self._directory)

    def _sync(self, paths: list[Path]) -> None:
        for path in paths:
            if path.name not in self._durable:
                with Source(path) as source:
                    _sync(source)
        try:
            sync_directory(self._directory)
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise JournalFailed(self._directory, "sync", str(error)) from error
        self._durable = {path.name for path in paths[:-1]}


def _segment_with(paths: list[Path], position: int) -> tuple[Path, int | None]:
    """Return the segment that has a position, or the first after it; and the first position of the next segment."""
    at = max(bisect_right(paths, position, key=first_of) - 1, 0)
    return paths[at], first_of(paths[at + 1]) if at + 1 < len(paths) else None


def _sync(source: Source) -> None:
    try:
        source.sync()
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise JournalFailed(source.path, "sync", str(error)) from error


def _last_of(path: Path) -> int:
    """The last position in the segment that grows; where that has just been begun, the one before it."""
    with Source(path) as source:
        header = Header.decode(source.read(HEADER_SIZE, 0), path)
        last = first_of(path) - 1
        if header is not None:
            for piece in _whole(source, header.mark, FOREVER):
                last = piece.records[-1].position if piece.records else last
            last = max(last, header.last)
        return last


def _stretches(source: Source, following: int | None, after: int, upto: int) -> Iterator[Stretch]:
    """What the segment of a file has behind `after` and up to `upto`; what it should have and has not, is lost."""
    path = source.path
    header = Header.decode(source.read(HEADER_SIZE, 0), path)
    first = first_of(path)
    end = upto if following is None else min(upto, following - 1)
    lost = [Lost(after + 1, min(first - 1, upto), "they were dropped, or are missing")] if after + 1 < first else []
    seen = max(after, first - 1)
    if header is None:
        reason = f"the header of {path.name} is damaged"
        yield Stretch(max(seen, end), [], [*lost, *_lost(seen, end, reason)])
        return
    segment, is_torn, count = Segment.new(path, header), False, 0
    for piece in _whole(source, header.mark, 0 if segment.is_sparse else seen):  # all of it, to count what it kept
        if seen >= upto:
            break
        if not piece.records:
            is_torn = True
            break
        records = piece.records
        count += len(records)
        if piece.skipped:
            lost += _clipped(hole(segment, seen, piece), upto)
        if not seen < records[0].position <= records[-1].position <= upto:
            records = [record for record in records if seen < record.position <= upto]
        seen = min(max(seen, piece.records[-1].position), upto)
        if records or lost:
            yield Stretch(seen, records, lost)
            lost = []
    if not is_torn and (count >= header.kept or seen >= upto):  # what was rewritten need not have all
        seen = max(seen, min(header.last, upto))
    lost += _lost(seen, end, end_missing(path))
    yield Stretch(max(seen, end), [], lost)


def _whole(source: Source, mark: int, position: int) -> Iterator[Piece]:
    """The records of a segment from near before `position` on.

    What looks damaged may be a write that was under way, of which the end was seen and the beginning not: it is read
    again.
    """
    good, size = _near(source, mark, position), source.size
    doubted = -1
    is_over = False
    while not is_over:
        is_over = True
        for piece in pieces(source, mark, good, size):
            if piece.skipped and piece.records and good != doubted:
                doubted, is_over = good, False
                break
            yield piece
            good = piece.end


def _near(source: Source, mark: int, position: int) -> int:
    """A byte from which on all records are found whose positions are not before `position`."""
    low, high = HEADER_SIZE, source.size if position > 0 else 0
    while high - low > NEAR:
        middle = (low + high) // 2
        piece = next(pieces(source, mark, middle, min(middle + CHUNK, high)), None)
        if piece is not None and piece.records and piece.records[0].position <= position:
            low = piece.at
        else:
            high = middle
    return low


def _lost(after: int, last: int, reason: str) -> list[Lost]:
    return [Lost(after + 1, last, reason)] if after < last else []


def _clipped(lost: list[Lost], upto: int) -> list[Lost]:
    return [Lost(gap.first, min(gap.last, upto), gap.reason) for gap in lost if gap.first <= upto]
