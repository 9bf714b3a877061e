"""Finds the records in which a pattern matches, without looking at the others.

The index of a closed segment has a checksum for each stretch of it. If that fits, every record in the stretch is whole,
and it is enough to search its bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from vestnik.journal.disk import Source
from vestnik.journal.records import CHECKSUM_SIZE, HEAD, LEAST, MARK, WHOLE, Record
from vestnik.journal.segments import Segment

Patterns: TypeAlias = Sequence[re.Pattern[bytes]]
GROUP: Final = 1 << 20
"""Bytes that are read and searched at a time, or one stretch more."""


class Found(NamedTuple):
    """The records in some stretches in which a pattern matches, the byte where these end, and the last position."""

    records: list[Record]
    end: int
    last: int


def search(source: Source, segment: Segment, at: int, patterns: Patterns) -> Found | None:
    """Search the stretches of a segment from byte `at` on; None if none begins there, or if a checksum does not fit."""
    places, sums = segment.places, segment.checksums
    number = first = bisect_left(places, at, key=lambda place: place.at)
    if first == len(places) or places[first].at != at:
        return None  # it was read while it grew
    end = at
    while number < len(places) and end - at < GROUP:
        number += 1
        end = places[number].at if number < len(places) else segment.size
    data = source.read(end - at, at)
    ends = [*[place.at - at for place in places[first + 1 : number]], end - at]
    begin, view = 0, memoryview(data)
    for one, known in zip(ends, sums[first:number], strict=True):
        if one > len(data) or crc32(view[begin:one]) != known:
            return None
        begin = one
    records = find(data, segment.mark, patterns)
    last = places[number].position - 1 if number < len(places) else segment.last
    return None if records is None else Found(records, end, last)


def find(data: bytes, mark: int, patterns: Patterns) -> list[Record] | None:
    """Return the records in which a pattern matches, of bytes that are whole records; None if they are not."""
    found: dict[int, Record] = {}
    for pattern in patterns:
        at = 0
        while at < len(data) and (hit := pattern.search(data, at)) is not None:
            around = _around(data, MARK.pack(mark), hit.start())
            if around is None:
                return None
            record, at = around
            found[record.position] = record
    return [found[position] for position in sorted(found)]


def _around(data: bytes, mark: bytes, place: int) -> tuple[Record, int] | None:
    """Return the record around a byte, and where it ends. Its payload may have the mark, too."""
    at = data.rfind(mark, 0, place + MARK.size)
    while at >= 0:
        if at + LEAST <= len(data):
            _, length, position, kind, time = HEAD.unpack_from(data, at)
            end = at + LEAST + length
            if place < end <= len(data) and crc32(data[at:end]) == WHOLE:
                return Record(position, kind, time, data[at + HEAD.size : end - CHECKSUM_SIZE]), end
        at = data.rfind(mark, 0, at + MARK.size - 1)
    return None
