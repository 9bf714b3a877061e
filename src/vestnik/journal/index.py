"""Indexes: what is known of a closed segment, in a file beside it, so that opening need not read the segment."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from vestnik.errors import JournalFailed, TooManyOpenFiles
from vestnik.journal.directory import Directory, descriptors
from vestnik.journal.disk import Source, write_all
from vestnik.journal.sealed import seal, unseal
from vestnik.journal.segments import Header, Place, Segment

SUFFIX: Final = ".index"
MAGIC: Final = b"VESTNIKI"
VERSION: Final = 2
LAYOUT: Final = Struct("<8sII??QQQQQqq")
PLACE: Final = Struct("<QQqI")


class Index(NamedTuple):
    """What an index says: a segment, the size of its file, and whether the segment was synced before."""

    segment: Segment
    length: int
    is_durable: bool

    def encode(self) -> bytes:
        one = self.segment
        numbers = (one.first, one.last, one.count, one.size, self.length, one.began, one.latest)
        head = LAYOUT.pack(MAGIC, VERSION, one.mark, one.is_sparse, self.is_durable, *numbers)
        places = zip(one.places, one.checksums, strict=True)
        return seal(head + b"".join(PLACE.pack(*place, checksum) for place, checksum in places))

    def fits(self, header: Header, length: int, last: int) -> bool:
        """Whether it was written for the segment with this header and size, which stands for positions to `last`."""
        one = self.segment
        said = (one.mark, one.first, one.last, one.is_sparse, self.length)
        return said == (header.mark, header.first, last, bool(header.last), length)


def index_of(path: Path) -> Path:
    """Return where the index of the segment at `path` is."""
    return path.with_name(path.name + SUFFIX)


def read_index(path: Path) -> Index | None:
    """Return the index of the segment at `path`; None if it is missing, damaged or of another version."""
    try:
        with descriptors(path):
            data = unseal(index_of(path).read_bytes())
    except FileNotFoundError:
        return None
    if data is None or len(data) < LAYOUT.size or (len(data) - LAYOUT.size) % PLACE.size:
        return None
    magic, version, mark, is_sparse, is_durable, *numbers = LAYOUT.unpack_from(data)
    if (magic, version) != (MAGIC, VERSION):
        return None
    first, last, count, size, length, began, latest = numbers
    segment = Segment(path, mark, first, last, size, count, began, latest, is_sparse=is_sparse)
    for *place, checksum in PLACE.iter_unpack(data[LAYOUT.size :]):
        segment.places.append(Place(*place))
        segment.checksums.append(checksum)
    return Index(segment, length, is_durable)


def sum_up(directory: Directory, segment: Segment) -> None:
    """Read a closed segment, and set its checksums; if the disk refuses, it has none."""
    ends = [*[place.at for place in segment.places[1:]], segment.size]
    sums: list[int] = []
    with suppress(OSError, JournalFailed, TooManyOpenFiles), Source(segment.path, directory) as source:
        for place, end in zip(segment.places, ends, strict=False):
            data = source.read(end - place.at, place.at)
            if len(data) < end - place.at:
                return
            sums.append(crc32(data))
        segment.checksums = sums


def write_index(directory: Directory, segment: Segment, *, is_durable: bool) -> bool:
    """Write the index of a closed segment. False if the disk refuses: then the next opening reads the segment.

    It is not synced: what a crash leaves of it has a checksum.
    """
    if len(segment.checksums) < len(segment.places):
        sum_up(directory, segment)
    if len(segment.checksums) < len(segment.places):
        return False
    try:
        data = Index(segment, segment.path.stat().st_size, is_durable).encode()
        file = directory.open(index_of(segment.path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(file, data, 0)
        finally:
            directory.close(file)
    except (OSError, TooManyOpenFiles):
        return False
    return True


def remove_index(path: Path) -> None:
    """Remove the index of the segment at `path`, if it has one. One that stays is removed by the next opening."""
    with suppress(OSError):
        index_of(path).unlink(missing_ok=True)
