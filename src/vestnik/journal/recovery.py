"""Opening what an earlier life has left: every record is read and checked, and what is missing is said."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from vestnik.journal.directory import names_in
from vestnik.journal.disk import Source
from vestnik.journal.records import LEAST
from vestnik.journal.reports import Cut, Lost, Recovery
from vestnik.journal.scan import Piece, pieces, used
from vestnik.journal.segments import (
    HEADER_SIZE,
    LOST,
    SUFFIX,
    Header,
    Run,
    Segment,
    first_of,
    name_of,
    new_mark,
    segments_in,
)
from vestnik.journal.watermark import watermark_in

UNFINISHED = ".new"
SET_ASIDE = ".damaged"


@dataclass
class Found:
    """The segments that can be read, the position that comes next, and what is missing."""

    next: int = 1
    segments: list[Segment] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    cut: Cut | None = None

    def report(self) -> Recovery:
        return Recovery(sum(segment.count for segment in self.segments), self.next - 1, self.cut, tuple(self.lost))


def recover(directory: Path, fsync: bool) -> Found:
    """Read all segments in `directory`.

    An unfinished write at the end of the last one is cut off. A segment whose header is damaged is set aside under
    another name; where other bytes are damaged, they stay, and every reader passes over them. What compaction had no
    time to remove goes: another segment stands for it. If the journal ends before its watermark, the rest is lost.
    """
    for name in names_in(directory, f"{SUFFIX}{UNFINISHED}"):
        (directory / name).unlink()
    reached = watermark_in(directory)
    paths = segments_in(directory)
    found = Found(first_of(paths[0]) if paths else reached.first)
    for number, path in enumerate(paths, 1):
        if first_of(path) < found.next:
            path.unlink()
            continue
        _expect(found, first_of(path))
        _take(found, path, first_of(paths[number]) if number < len(paths) else None, fsync)
    if found.next <= reached.last:
        _miss(found, directory, reached.last + 1, "the end of the journal is missing, by its watermark")
    return found


def _miss(found: Found, directory: Path, end: int, reason: str) -> None:
    """Report all before position `end` as lost. If no segment precedes it, write a hole that keeps its place."""
    found.lost.append(Lost(found.next, end - 1, reason))
    if not found.segments:
        found.segments.append(_hole(directory, found.next, end - 1))
    found.next = end


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


def _expect(found: Found, first: int) -> None:
    """The next segment begins with position `first`: whatever is missing before it is lost."""
    if found.next < first:
        found.lost.append(Lost(found.next, first - 1, "their segments are missing"))
    found.next = first


def _take(found: Found, path: Path, following: int | None, fsync: bool) -> None:
    with Source(path) as source:
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
        found.next = segment.last + 1
    else:
        _close(found, segment, header, header.last or (following or 1) - 1)


def _set_aside(found: Found, path: Path, size: int, following: int | None) -> None:
    """Nothing in this file can be trusted. Where it is the last one, no position that it may have had is used again."""
    most = max(0, size - HEADER_SIZE) // LEAST
    end = found.next + most if following is None else following
    if end > found.next:
        aside = path.with_name(path.name + SET_ASIDE)
        path.rename(aside)
        _miss(found, path.parent, end, f"the header was damaged; the file is now {aside.name}")
    else:
        path.unlink()
        found.cut = Cut(path.name, size, found.next - 1) if size else found.cut


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


def hole(segment: Segment, after: int, piece: Piece) -> list[Lost]:
    """What is lost in `segment` between position `after` and `piece` by the bytes that were skipped, if anything is."""
    first, last = after + 1, piece.records[0].position - 1
    some = ", which had some of them" if segment.is_sparse else ""
    where = f"{piece.skipped:,} bytes before byte {piece.at:,}"
    reason = f"{where} of {segment.path.name}{some} are damaged"
    return [Lost(first, last, reason)] if first <= last else []


def end_missing(path: Path) -> str:
    return f"the end of {path.name} is missing or damaged"


def _run(piece: Piece) -> Run:
    records = piece.records
    latest = max(record.time for record in records)
    return Run(piece.at, piece.end, records[0].position, records[-1].position, len(records), records[0].time, latest)


def _close(found: Found, segment: Segment, header: Header, last: int) -> None:
    """A segment that is followed by others must have all records up to position `last`, or as many as it says."""
    is_short = segment.count < header.kept if segment.is_sparse else segment.last < last
    if is_short and segment.last < last:
        segment.is_short = segment.is_damaged = True
        found.lost.append(Lost(segment.last + 1, last, end_missing(segment.path)))
    if header.kept == LOST:
        segment.latest = _modified(segment.path)
    segment.last = last
    found.next = last + 1
