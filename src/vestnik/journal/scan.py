"""Finding the records in a segment, past whatever is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vestnik.journal.disk import Source
from vestnik.journal.records import MARK, Record, claimed_size, decode

CHUNK = 1 << 17
"""How many bytes are read at a time, where no record is longer."""


class Piece(NamedTuple):
    """Records that lie together from byte `at` to `end`, after `skipped` bytes that hold no whole record."""

    skipped: int
    at: int
    end: int
    records: list[Record]


def pieces(source: Source, mark: int, at: int, end: int) -> Iterator[Piece]:
    """All whole records of the segment with this `mark` from byte `at` to `end`, in pieces of about a chunk.

    What is skipped at the end comes as a piece without records.
    """
    good, size, after = at, CHUNK, 0
    while at < end:
        data = source.read(min(size, end - at), at)
        records, used = decode(data, mark, after)
        if records:
            yield Piece(at - good, at, at + used, records)
            good = at = at + used
            size, after = CHUNK, records[-1].position
        elif len(data) < claimed_size(data, mark) <= end - at and len(data) == min(size, end - at):
            size = claimed_size(data, mark)
        else:
            at, size = _next_mark(source, mark, at + 1, end), CHUNK
    if good < end:
        yield Piece(end - good, end, end, [])


def used(source: Source, at: int, end: int) -> int:
    """How many bytes there are from byte `at` on, without the zeros at the end."""
    last = start = at
    while at < end and (data := source.read(CHUNK, at)):
        if written := len(data.rstrip(b"\0")):
            last = at + written
        at += len(data)
    return last - start


def _next_mark(source: Source, mark: int, at: int, end: int) -> int:
    """The first byte from `at` on where the mark stands; `end` where there is none."""
    wanted = MARK.pack(mark)
    while at < end and (data := source.read(CHUNK, at)):
        found = data.find(wanted)
        if found >= 0:
            return min(at + found, end)
        at += max(1, len(data) - MARK.size + 1)
    return end
