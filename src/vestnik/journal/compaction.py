"""Rewriting segments without the records that nobody needs any more."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vestnik.journal.directory import Directory
from vestnik.journal.disk import Source, create, write_all
from vestnik.journal.index import remove_index
from vestnik.journal.records import Record, encode_again
from vestnik.journal.salvage import UNFINISHED
from vestnik.journal.scan import Piece, pieces
from vestnik.journal.segments import HEADER_SIZE, Header, Run, Segment, new_mark
from vestnik.journal.settings import Settings
from vestnik.journal.shelf import Shelf

Key: TypeAlias = Callable[[Record], Hashable | None]
Keep: TypeAlias = Callable[[Record], bool]


@dataclass(frozen=True)
class Compacted:
    """How many `records` and bytes less there are, after how many `segments` were rewritten."""

    segments: int
    records: int
    size: int

    def __add__(self, other: Compacted) -> Compacted:
        return Compacted(self.segments + other.segments, self.records + other.records, self.size + other.size)

    def __str__(self) -> str:
        return f"{self.records:,} records and {self.size:,} bytes less, by rewriting {self.segments:,} segments"


def newest(records: Iterable[Record], key: Key) -> dict[Hashable, int]:
    """The last position of each key."""
    return {name: record.position for record in records if (name := key(record)) is not None}


def compact(shelf: Shelf, settings: Settings, keep: Keep) -> Compacted:
    """Rewrite the closed segments that have more than `keep` is true of, and make one of small neighbours."""
    saved = Compacted(0, 0, 0)
    for segment in shelf.closed:
        saved += _rewrite(shelf, [segment], keep)
    for group in _neighbours(shelf.closed, settings):
        if len(group) > 1:
            saved += _rewrite(shelf, group, lambda record: True)
    return saved


def _neighbours(segments: Sequence[Segment], settings: Settings) -> Iterator[list[Segment]]:
    """Those that lie side by side, were rewritten, and together still make no more than one segment."""
    group: list[Segment] = []
    for segment in segments:
        may_join = segment.is_sparse and not segment.is_damaged
        if not may_join or not _fit([*group, segment], settings):
            yield group
            group = []
        if may_join:
            group.append(segment)
    yield group


def _fit(group: list[Segment], settings: Settings) -> bool:
    most, oldest = settings.segment_count, settings.segment_age
    times = [time for segment in group if segment.count for time in (segment.began, segment.latest)]
    by_size = sum(segment.size - HEADER_SIZE for segment in group) <= settings.segment_size - HEADER_SIZE
    by_count = most is None or sum(segment.count for segment in group) <= most
    by_age = oldest is None or not times or max(times) - min(times) <= oldest
    return by_size and by_count and by_age


def _rewrite(shelf: Shelf, segments: Sequence[Segment], keep: Keep) -> Compacted:
    """Put one segment with what is kept in the place of `segments`, which are neighbours.

    Nothing is done where one is damaged: rewritten, it would not show that anything is missing. Nor where that would be
    the same again, or one was dropped meanwhile. The new one is durable before it gets the name of the first, and that
    is durable before the others go: a crash may leave some that it stands for.
    """
    path = segments[0].path.with_name(segments[0].path.name + UNFINISHED)
    rewritten = Segment(path, new_mark(), segments[0].first, segments[0].first - 1, is_sparse=True)
    try:
        if (
            not _is_due(shelf.directory, segments, keep)
            or not _copy(shelf.directory, segments, rewritten, keep)
            or not shelf.replace(segments, rewritten)
        ):
            return Compacted(0, 0, 0)
    except FileNotFoundError:
        return Compacted(0, 0, 0)
    finally:
        path.unlink(missing_ok=True)
    shelf.directory.sync()
    for segment in segments[1:]:
        segment.path.unlink()
        remove_index(segment.path)
    records, size = sum(one.count for one in segments), sum(one.size for one in segments)
    return Compacted(len(segments), records - rewritten.count, size - rewritten.size)


def records_of(shelf: Shelf, segment: Segment) -> list[Record]:
    """Return all records of a segment that can be read."""
    return [record for piece in _pieces(shelf.directory, segment) for record in piece.records]


def _is_due(directory: Directory, segments: Sequence[Segment], keep: Keep) -> bool:
    if any(segment.is_damaged for segment in segments):
        return False
    if len(segments) > 1:
        return True
    return not all(keep(record) for piece in _pieces(directory, segments[0]) for record in piece.records)


def _copy(directory: Directory, segments: Sequence[Segment], to: Segment, keep: Keep) -> bool:
    """Write what is kept; whether there was all that should be."""
    file = create(directory, to.path, bytes(HEADER_SIZE))
    try:
        for segment in segments:
            segment.is_damaged = _copy_one(directory, segment, file, to, keep) < segment.count
        to.last = segments[-1].last
        write_all(file, Header(to.mark, to.first, to.last, to.count).encode(), 0)
        os.fsync(file)
    finally:
        directory.close(file)
    return not any(segment.is_damaged for segment in segments)


def _copy_one(directory: Directory, segment: Segment, file: int, to: Segment, keep: Keep) -> int:
    """How many records there were."""
    number = 0
    for piece in _pieces(directory, segment):
        number += len(piece.records)
        copy_records(file, to, [record for record in piece.records if keep(record)])
    return number


def _pieces(directory: Directory, segment: Segment) -> Iterator[Piece]:
    with Source(segment.path, directory) as source:
        yield from pieces(source, segment.mark, HEADER_SIZE, segment.size)


def copy_records(file: int, to: Segment, records: list[Record]) -> None:
    """Write records at the end of a segment that is being rewritten."""
    if not records:
        return
    data = b"".join(encode_again(record, to.mark) for record in records)
    write_all(file, data, to.size)
    latest = max(record.time for record in records)
    first, last = records[0], records[-1]
    to.extend(Run(to.size, to.size + len(data), first.position, last.position, len(records), first.time, latest))
