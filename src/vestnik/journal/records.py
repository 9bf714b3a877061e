"""Records as bytes: mark, length, position, kind, time, payload, and a checksum over all of that.

The mark is drawn for each segment and known to nobody outside it. It seeds every checksum, so that neither a payload
that imitates a record nor what an old file left on the disk passes for a record of this segment; and where a record is
damaged, the next one is found by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

Entry: TypeAlias = tuple[int, int, bytes]
"""Kind (0 to 255), time in microseconds, payload: a record before it has a position."""

HEAD: Final = Struct("<IIQBq")
MARK: Final = Struct("<I")
CHECKSUM_SIZE: Final = 4
NEVER: Final = -1 << 63
"""Before every time."""
LEAST: Final = HEAD.size + CHECKSUM_SIZE
"""The size of a record with no payload."""
WHOLE: Final = 0x2144DF1C
"""The CRC-32 of anything that is followed by its own CRC-32."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """What was appended, and its position. Positions grow from 1; they may skip, and none is used twice."""

    position: int
    kind: int
    time: int
    payload: bytes


class Encoded(NamedTuple):
    """Records as bytes; the position of the last one, the time of the first one, and the latest time of all."""

    data: bytes
    last: int
    began: int
    latest: int


def encode(entries: Sequence[Entry], mark: int, position: int, latest: int = NEVER) -> Encoded:
    """The entries, of which there are some, as records of the segment with this `mark`, from `position` on.

    No record gets a time before `latest`, or before that of the record before it. ValueError where a kind is not from 0
    to 255, or a time not of 64 bits.
    """
    parts: list[bytes] = []
    add, pack, began = parts.append, HEAD.pack, max(latest, entries[0][1])
    try:
        for position, (kind, time, payload) in enumerate(entries, position):  # noqa: B020
            if time > latest:
                latest = time
            head = pack(mark, len(payload), position, kind, latest)
            add(head)
            add(payload)
            add(crc32(payload, crc32(head)).to_bytes(CHECKSUM_SIZE, "little"))
    except error:
        raise ValueError(f"no record can hold kind {kind!r}, time {time!r} and {len(payload):,} bytes") from None
    return Encoded(b"".join(parts), position, began, latest)


def encode_again(record: Record, mark: int) -> bytes:
    """The record, at the position that it has, as bytes of the segment with this `mark`."""
    return encode([(record.kind, record.time, record.payload)], mark, record.position).data


def size_of(record: Record) -> int:
    """Return how many bytes a record takes."""
    return LEAST + len(record.payload)


def decode(data: bytes, mark: int, after: int = 0) -> tuple[list[Record], int]:
    """The records that `data` begins with, and how many bytes they take.

    They end where one is not whole, or its position is not above that of the one before it, at first `after`.
    """
    records: list[Record] = []
    add, unpack, size, at = records.append, HEAD.unpack_from, len(data), 0
    while at <= size - LEAST:
        found, length, position, kind, time = unpack(data, at)
        end = at + LEAST + length
        if found != mark or end > size or position <= after or crc32(data[at:end]) != WHOLE:
            break
        add(Record(position, kind, time, data[at + HEAD.size : end - CHECKSUM_SIZE]))
        at, after = end, position
    return records, at


def claimed_size(data: bytes, mark: int) -> int:
    """How many bytes the record that `data` begins with says it takes; 0 where none begins there."""
    if len(data) < HEAD.size:
        return 0
    found, length, *_ = HEAD.unpack_from(data)
    return LEAST + length if found == mark else 0
