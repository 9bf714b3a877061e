"""Rewriting segments without the records that nobody needs any more."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from vestnik.journal.disk import Source, create, write_all
from vestnik.journal.records import Record, encode_again
from vestnik.journal.recovery import UNFINISHED
from vestnik.journal.scan import pieces
from vestnik.journal.segments import HEADER_SIZE, Header, Run, Segment, new_mark
from vestnik.journal.settings import Settings

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


def neighbours(segments: Sequence[Segment], settings: Settings) -> Iterator[list[Segment]]:
    """Those that lie side by side, were rewritten, and together still make no more than one segment."""
    group: list[Segment] = []
    for segment in segments:
        if not segment.is_sparse or segment.is_damaged or not _fit([*group, segment], settings):
            yield group
            group = []
        if segment.is_sparse and not segment.is_damaged:
            group.append(segment)
    yield group


def _fit(group: list[Segment], settings: Settings) -> bool:
    most, oldest = settings.segment_count, settings.segment_age
    times = [time for segment in group if segment.count for time in (segment.began, segment.latest)]
    by_size = sum(segment.size - HEADER_SIZE for segment in group) <= settings.segment_size - HEADER_SIZE
    by_count = most is None or sum(segment.count for segment in group) <= most
    by_age = oldest is None or not times or max(times) - min(times) <= oldest
    return by_size and by_count and by_age


def rewrite(segments: Sequence[Segment], keep: Keep) -> Segment | None:
    """A file with what `keep` is true of in `segments`, which are neighbours: durable, and to be renamed to the first.

    None where one of them was dropped meanwhile, and where one turns out to be damaged: rewritten, it would not show
    that anything is missing.
    """
    path = segments[0].path.with_name(segments[0].path.name + UNFINISHED)
    rewritten = Segment(path, new_mark(), segments[0].first, segments[0].first - 1, is_sparse=True)
    is_whole = False
    try:
        is_whole = _copy(segments, rewritten, keep)
    except FileNotFoundError:
        return None
    finally:
        if not is_whole:
            path.unlink(missing_ok=True)
    return rewritten if is_whole else None


def _copy(segments: Sequence[Segment], to: Segment, keep: Keep) -> bool:
    """Write what is kept; whether there was all that should be."""
    file = create(to.path, bytes(HEADER_SIZE))
    try:
        for segment in segments:
            segment.is_damaged = _copy_one(segment, file, to, keep) < segment.count
        to.last = segments[-1].last
        _write_header(to.path, Header(to.mark, to.first, to.last, to.count))
        os.fsync(file)
    finally:
        os.close(file)
    return not any(segment.is_damaged for segment in segments)


def _copy_one(segment: Segment, file: int, to: Segment, keep: Keep) -> int:
    """How many records there were."""
    number = 0
    with Source(segment.path) as source:
        for piece in pieces(source, segment.mark, HEADER_SIZE, segment.size):
            number += len(piece.records)
            _append(file, to, [record for record in piece.records if keep(record)])
    return number


def _append(file: int, to: Segment, records: list[Record]) -> None:
    if not records:
        return
    data = b"".join(encode_again(record, to.mark) for record in records)
    write_all(file, data)
    latest = max(record.time for record in records)
    first, last = records[0], records[-1]
    to.extend(Run(to.size, to.size + len(data), first.position, last.position, len(records), first.time, latest))


def _write_header(path: Path, header: Header) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, header.encode(), 0)
    finally:
        os.close(file)
