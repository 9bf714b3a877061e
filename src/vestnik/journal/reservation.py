"""The reserved end: it is on disk before a position is used, so no crash makes a journal use a position twice."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from vestnik.journal.directory import Directory
from vestnik.journal.disk import write_all
from vestnik.journal.sealed import Format

FILE: Final = "reserved"
FORMAT: Final = Format(b"VESTNIKR", 1, "Q")
RANGE: Final = 65_536
"""How many positions are reserved at a time."""


def reserved_in(directory: Path) -> int | None:
    """Return the reserved end of the journal in `directory`; None if its file is missing or damaged."""
    try:
        found = FORMAT.read(directory / FILE)
    except FileNotFoundError:
        return None
    return None if found is None else found[0]


class Reservation:
    """The file of the reserved `end`: every position that was ever used is before it. Any thread may use it."""

    def __init__(self, directory: Directory, *, fsync: bool) -> None:
        self.path = directory.path / FILE
        self.end = 0
        self._directory = directory
        self._fsync = fsync
        self._lock = Lock()
        self._file = directory.open(self.path, os.O_RDWR | os.O_CREAT)

    def extend(self, end: int) -> None:
        """Reserve the positions before `end`; OSError if the disk refuses."""
        with self._lock:
            if end > self.end:
                self._write(end)
                self.end = end

    def release(self, end: int) -> None:
        """Give back the positions from `end` on, which were not used. If the disk refuses, they are skipped."""
        with suppress(OSError):
            self._write(end)

    def close(self) -> None:
        self._directory.close(self._file)

    def _write(self, end: int) -> None:
        write_all(self._file, FORMAT.encode(end), 0)
        if self._fsync:
            os.fsync(self._file)
