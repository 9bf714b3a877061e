"""Taking over one segment as an earlier life has left it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from vestnik.journal.directory import Directory
from vestnik.journal.disk import Source
from vestnik.journal.index import index_of, read_index, write_index
from vestnik.journal.losses import end_missing, hole
from vestnik.journal.records import LEAST, NEVER
from vestnik.journal.reports import Cut, Lost, Recovery
from vestnik.journal.scan import Piece, pieces, used
from vestnik.journal.segments import HEADER_SIZE, LOST, Header, Run, Segment, name_of, new_mark

UNFINISHED = ".new"
SET_ASIDE = ".damaged"


@dataclass
class Found:
    """The segments that can be read, the one among them that is not closed, and what is missing.

    `end` is the position after the last that was found or is lost, `next` the one that the next record gets, and
    `latest` the latest time of a record. If the last segment was `set_aside`, that says why, and it had at most `most`
    records. If the reservation could not be used, `unreserved` is the position that was derived instead.
    """

    end: int = 1
    next: int = 1
    latest: int = NEVER
    segments: list[Segment] = field(default_factory=list)
    growing: Segment | None = None
    indexed: list[Path] = field(default_factory=list)
    rebuilt: list[Path] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    cut: Cut | None = None
    set_aside: str = ""
    most: int = 0
    unreserved: int = 0

    def report(self) -> Recovery:
        records = sum(segment.count for segment in self.segments)
        rebuilt = tuple(index_of(path).name for path in self.rebuilt)
        return Recovery(records, self.end - 1, self.cut, tuple(self.lost), rebuilt, self.unreserved)


def take(found: Found, directory: Directory, path: Path, following: int | None, fsync: bool) -> None:
    """Add the segment at `path` to what was found: from its index if that fits, else by reading all of it.

    `following` is the position with which the next segment begins.
    """
    with Source(path, directory) as source:
        if _take_indexed(found, source, following, fsync):
            return
        if fsync:
            source.settle()
        size = source.size
        header = Header.decode(source.read(HEADER_SIZE, 0), path)
        if header is None:
            _set_aside(found, path, used(source, 0, size), following)
            return
        segment = Segment.new(path, header)
        torn = _fill(segment, source, size, found.lost, None if header.last else following)
    found.segments.append(segment)
    is_last = following is None and not header.last
    if size > segment.size and (is_last or not torn):
        os.truncate(path, segment.size)
    if is_last:
        found.cut = Cut(path.name, torn, segment.last) if torn else found.cut
        found.growing, found.end = segment, segment.last + 1
    else:
        _close(found, segment, header, header.last or (following or 1) - 1)
        if not segment.is_damaged and write_index(directory, segment, is_durable=fsync):
            found.indexed.append(path)
            found.rebuilt.append(path)


def _take_indexed(found: Found, source: Source, following: int | None, fsync: bool) -> bool:
    """Add a closed segment by its index; False if it has none that fits."""
    header = Header.decode(source.read(HEADER_SIZE, 0), source.path)
    if header is None or (following is None and not header.last):
        return False
    index = read_index(source.path)
    if index is None or not index.fits(header, source.size, header.last or (following or 1) - 1):
        return False
    if fsync and not index.is_durable:
        source.settle()
    found.segments.append(index.segment)
    found.indexed.append(source.path)
    found.end = index.segment.last + 1
    return True


def miss(found: Found, directory: Path, end: int, reason: str) -> None:
    """Report all before position `end` as lost. If no segment precedes it, write a hole that keeps its place."""
    if found.end < end:
        found.lost.append(Lost(found.end, end - 1, reason))
        if not found.segments:
            found.segments.append(_hole(directory, found.end, end - 1))
        found.end = end


def _hole(directory: Path, first: int, last: int) -> Segment:
    """Write a segment that stands for positions that were lost."""
    header = Header(new_mark(), first, last, LOST)
    path = directory / name_of(first)
    unfinished = path.with_name(path.name + UNFINISHED)
    with unfinished.open("xb") as file:
        file.write(header.encode())
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    hole = Segment.new(path, header)
    hole.last, hole.latest = last, _modified(path)
    hole.is_short = hole.is_damaged = True
    return hole


def _modified(path: Path) -> int:
    """The time in microseconds from which on a hole is kept as records are."""
    return path.stat().st_mtime_ns // 1000


def _set_aside(found: Found, path: Path, size: int, following: int | None) -> None:
    """Rename or remove a file in which nothing can be trusted. If it is the last one, what it had is told later."""
    most = max(0, size - HEADER_SIZE) // LEAST
    if following == found.end or (following is None and not most):
        path.unlink()
        found.cut = Cut(path.name, size, found.end - 1) if size else found.cut
        return
    aside = path.with_name(path.name + SET_ASIDE)
    path.rename(aside)
    reason = f"the header was damaged; the file is now {aside.name}"
    if following is None:
        found.set_aside, found.most = reason, most
    else:
        miss(found, path.parent, following, reason)


def _fill(segment: Segment, source: Source, size: int, lost: list[Lost], following: int | None) -> int:
    """Enter all records into `segment`, and what is lost between them; how many bytes at the end were for others.

    Records from position `following` on are also in other segments, if a crash came while this one was split.
    """
    for piece in pieces(source, segment.mark, HEADER_SIZE, size):
        if following is not None and piece.records and piece.records[-1].position >= following:
            own = [record for record in piece.records if record.position < following]
            if own:
                segment.extend(_run(piece._replace(records=own)))
            break
        if piece.records and piece.skipped:
            segment.is_damaged = True
            lost += hole(segment, segment.last, piece)
        if piece.records:
            segment.extend(_run(piece))
    return used(source, segment.size, size)


def _run(piece: Piece) -> Run:
    records = piece.records
    latest = max(record.time for record in records)
    return Run(piece.at, piece.end, records[0].position, records[-1].position, len(records), records[0].time, latest)


def _close(found: Found, segment: Segment, header: Header, last: int) -> None:
    """Enter what a segment lacks: all up to position `last`, or if it was rewritten, as many records as it says."""
    is_short = segment.count < header.kept if segment.is_sparse else segment.last < last
    if is_short and segment.last < last:
        segment.is_short = segment.is_damaged = True
        found.lost.append(Lost(segment.last + 1, last, end_missing(segment.path)))
    if header.kept == LOST:
        segment.latest = _modified(segment.path)
    segment.last = last
    found.end = last + 1
