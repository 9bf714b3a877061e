"""Rewriting a segment without the records that nobody needs any more."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from vestnik.journal.disk import Source, create, write_all
from vestnik.journal.records import Record, encode_again
from vestnik.journal.recovery import UNFINISHED
from vestnik.journal.scan import pieces
from vestnik.journal.segments import HEADER_SIZE, Header, Run, Segment, new_mark

Key: TypeAlias = Callable[[Record], Hashable | None]
Keep: TypeAlias = Callable[[Record], bool]


@dataclass(frozen=True)
class Compacted:
    """How many `records` and bytes less there are, in how many `segments` that were rewritten."""

    segments: int
    records: int
    size: int

    def __add__(self, other: Compacted) -> Compacted:
        return Compacted(self.segments + other.segments, self.records + other.records, self.size + other.size)

    def __str__(self) -> str:
        return f"{self.segments:,} segments have {self.records:,} records and {self.size:,} bytes less"


def newest(records: Iterable[Record], key: Key) -> dict[Hashable, int]:
    """The last position of each key."""
    return {name: record.position for record in records if (name := key(record)) is not None}


def rewrite(segment: Segment, keep: Keep) -> Segment | None:
    """A file beside that of `segment` with what `keep` is true of: durable, and to be renamed to the other.

    None where the segment was dropped meanwhile, and where it turns out to be damaged: rewritten, it would not show
    that anything is missing.
    """
    path = segment.path.with_name(segment.path.name + UNFINISHED)
    rewritten = Segment(path, new_mark(), segment.first, segment.first - 1, is_sparse=True)
    is_whole = False
    try:
        is_whole = _copy(segment, rewritten, keep) == segment.count
        segment.is_damaged = not is_whole
    except FileNotFoundError:
        return None
    finally:
        if not is_whole:
            path.unlink(missing_ok=True)
    return rewritten if is_whole else None


def _copy(segment: Segment, to: Segment, keep: Keep) -> int:
    """Write what is kept; how many records there were."""
    file, number = create(to.path, bytes(HEADER_SIZE)), 0
    try:
        with Source(segment.path) as source:
            for piece in pieces(source, segment.mark, HEADER_SIZE, segment.size):
                number += len(piece.records)
                _append(file, to, [record for record in piece.records if keep(record)])
        to.last = segment.last
        _write_header(to.path, Header(to.mark, to.first, to.last, to.count))
        os.fsync(file)
        return number
    finally:
        os.close(file)


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
