"""Segments: files of records. A file begins with a header and is named for the first position in it."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from vestnik.errors import InvalidJournal
from vestnik.journal.directory import names_in
from vestnik.journal.records import NEVER

MAGIC: Final = b"VESTNIKJ"
VERSION: Final = 2
LAYOUT: Final = Struct("<8sIIQQQ")
HEADER_SIZE: Final = LAYOUT.size + 4
SUFFIX: Final = ".segment"
NAME: Final = re.compile(rf"[0-9]{{20}}{re.escape(SUFFIX)}")
_REFUSED: Final = (
    f"is of version {{}}, and this release reads version {VERSION}; ingest or export its events with the release that "
    "wrote it, or choose another folder"
)
STRIDE: Final = 1 << 17
"""How many bytes lie between places that are remembered, at least."""


def name_of(first: int) -> str:
    """The name of the file whose records have positions from `first` on; names sort by it."""
    return f"{first:020}{SUFFIX}"


def first_of(path: Path) -> int:
    return int(path.name.removesuffix(SUFFIX))


def segments_in(directory: Path) -> list[Path]:
    """Return the segment files in a directory, in order of position."""
    names = [name for name in names_in(directory, SUFFIX) if NAME.fullmatch(name)]
    return [directory / name for name in names]


LOST: Final = (1 << 64) - 1
"""How many records a segment says it kept that has none, and stands for what was lost."""


class Header(NamedTuple):
    """What a segment says of itself: the mark of its records, and the first position.

    A segment that was rewritten also says the last position that it stands for, and how many records it kept. In others
    these are 0, and positions that are not there were never used. If it kept LOST, it is a hole: a file without
    records, which keeps the place of what was lost before anything that can be read. Magic, version and checksum are
    where they are in every version.
    """

    mark: int
    first: int
    last: int = 0
    kept: int = 0

    def encode(self) -> bytes:
        data = LAYOUT.pack(MAGIC, VERSION, *self)
        return data + crc32(data).to_bytes(4, "little")

    @classmethod
    def decode(cls, data: bytes, path: Path) -> Header | None:
        """The header of the file at `path`; None where it is damaged. InvalidJournal where its version is unknown."""
        magic, version, *rest = LAYOUT.unpack(data[: LAYOUT.size].ljust(LAYOUT.size, b"\0"))
        header = cls(*rest)
        if magic != MAGIC or crc32(data[: LAYOUT.size]).to_bytes(4, "little") != data[LAYOUT.size :]:
            return None
        if version != VERSION:
            raise InvalidJournal(path, _REFUSED.format(version))
        return header if header.first == first_of(path) else None


def new_mark() -> int:
    """A mark that nobody can guess, and that is not zero as an empty disk is."""
    return int.from_bytes(os.urandom(4), "little") or new_mark()


class Run(NamedTuple):
    """Records that lie together: from which byte to which, their first and last positions and how many they are, the
    time of the first one and the latest time of all."""

    at: int
    end: int
    first: int
    last: int
    number: int
    began: int
    latest: int


class Place(NamedTuple):
    """At byte `at` begins the record at `position`; no time before it is later than `latest`."""

    position: int
    at: int
    latest: int


@dataclass(eq=False)
class Segment:
    """What is known of a segment: its records take the bytes from `HEADER_SIZE` to `size`.

    It stands for the positions `first` to `last`. If it `is_sparse`, it was rewritten, and may lack some.
    If it `is_short`, records are missing after those that it has. If it has an index, there is a checksum for the bytes
    from each of its places to the next.
    """

    path: Path
    mark: int
    first: int
    last: int
    size: int = HEADER_SIZE
    count: int = 0
    began: int = 0
    latest: int = NEVER
    is_sparse: bool = False
    is_short: bool = False
    is_damaged: bool = False
    places: list[Place] = field(default_factory=list)
    checksums: list[int] = field(default_factory=list)

    @classmethod
    def new(cls, path: Path, header: Header) -> Segment:
        return cls(path, header.mark, header.first, header.first - 1, is_sparse=bool(header.last))

    @property
    def is_dense(self) -> bool:
        """Whether it has a record at each of its positions."""
        return self.count == self.last - self.first + 1

    def extend(self, run: Run) -> None:
        """There are more records behind those that are known."""
        if not self.places or run.at - self.places[-1].at >= STRIDE:
            self.places.append(Place(run.first, run.at, self.latest))
        if not self.count:
            self.began = run.began
        self.count += run.number
        self.latest = max(self.latest, run.latest)
        self.size = run.end
        self.last = run.last

    def byte_of(self, position: int) -> int:
        """A byte where a record begins, near before the one at `position`, or the one that follows."""
        found = bisect_right(self.places, position, key=lambda place: place.position)
        return self.places[found - 1].at if found else HEADER_SIZE

    def position_before(self, time: int) -> int:
        """A position near before the first whose time is `time` or later."""
        found = bisect_left(self.places, time, key=lambda place: place.latest)
        return self.places[found - 1].position if found else self.first
