"""How far a journal has come, told by something other than its segments, so that a missing end is noticed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from vestnik.journal.directory import Directory, descriptors
from vestnik.journal.disk import write_all

FILE: Final = "watermark"
MAGIC: Final = b"VESTNIKW"
VERSION: Final = 1
LAYOUT: Final = Struct("<8sIQQ")
SIZE: Final = LAYOUT.size + 4
ATTEMPTS: Final = 3
"""How often a watermark is read that another process may be writing."""


class Watermark(NamedTuple):
    """All positions up to `last` were durable; those before `first` had been dropped."""

    first: int = 1
    last: int = 0

    def encode(self) -> bytes:
        data = LAYOUT.pack(MAGIC, VERSION, *self)
        return data + crc32(data).to_bytes(4, "little")


NOTHING: Final = Watermark()
"""The watermark of a journal that has none, or a damaged one."""


def watermark_in(directory: Path) -> Watermark:
    """Return the watermark of the journal in `directory`."""
    path = directory / FILE
    for _ in range(ATTEMPTS):
        try:
            with descriptors(path):
                data = path.read_bytes()
        except FileNotFoundError:
            return NOTHING
        if len(data) >= SIZE and crc32(data[: LAYOUT.size]).to_bytes(4, "little") == data[LAYOUT.size : SIZE]:
            magic, version, first, last = LAYOUT.unpack_from(data)
            return Watermark(first, last) if (magic, version) == (MAGIC, VERSION) else NOTHING
    return NOTHING


class WatermarkFile:
    """The file of a watermark, which is rewritten in place: one write, into a sector of its own.

    It is written after each sync of the journal, and synced now and then. So it is never ahead of what is durable. A
    killed process leaves it exact; after a crash of the machine it may be behind, and says less.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._file = directory.open(directory.path / FILE, os.O_RDWR | os.O_CREAT)

    def write(self, mark: Watermark, *, sync: bool) -> None:
        """Write down how far the journal has come. If the disk refuses, the mark before is still true."""
        with suppress(OSError):
            write_all(self._file, mark.encode(), 0)
            if sync:
                os.fdatasync(self._file)

    def close(self) -> None:
        self._directory.close(self._file)
