"""Numbers in a small file of their own, under a checksum."""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

from vestnik.journal.directory import descriptors

ATTEMPTS: Final = 3
"""How often a file is read that another process may be writing."""


def seal(data: bytes) -> bytes:
    """Return `data` with its checksum."""
    return data + crc32(data).to_bytes(4, "little")


def unseal(data: bytes) -> bytes | None:
    """Return what was sealed; None if the checksum does not fit."""
    return data[:-4] if crc32(data[:-4]).to_bytes(4, "little") == data[-4:] else None


class Format:
    """The layout of a file: a magic, a version, some numbers and a checksum.

    The file is rewritten in place: one write, into a sector of its own.
    """

    def __init__(self, magic: bytes, version: int, fields: str) -> None:
        self._head = (magic, version)
        self._layout = Struct(f"<8sI{fields}")
        self._size = self._layout.size + 4

    def encode(self, *numbers: int) -> bytes:
        return seal(self._layout.pack(*self._head, *numbers))

    def read(self, path: Path) -> tuple[int, ...] | None:
        """Return the numbers in the file at `path`; None if it is damaged or of another version.

        FileNotFoundError if there is no file.
        """
        for _ in range(ATTEMPTS):
            with descriptors(path):
                data = unseal(path.read_bytes()[: self._size])
            if data is not None and len(data) == self._layout.size:
                magic, version, *numbers = self._layout.unpack(data)
                return tuple(numbers) if (magic, version) == self._head else None
        return None
