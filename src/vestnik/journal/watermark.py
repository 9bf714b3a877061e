"""How far a journal has come, told by something other than its segments, so that a missing end is noticed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from vestnik.journal.directory import Directory
from vestnik.journal.disk import write_all
from vestnik.journal.records import NEVER
from vestnik.journal.sealed import Format

FILE: Final = "watermark"
FORMAT: Final = Format(b"VESTNIKW", 2, "QQqQ")


class Watermark(NamedTuple):
    """All records up to position `last` were durable; those before `first` had been dropped.

    No record had a time after `latest`. `reserved` repeats the reserved end, in case its own file is lost.
    """

    first: int = 1
    last: int = 0
    latest: int = NEVER
    reserved: int = 0


NOTHING: Final = Watermark()
"""The watermark of a journal that has none, or a damaged one."""


def watermark_in(directory: Path) -> Watermark:
    """Return the watermark of the journal in `directory`."""
    try:
        found = FORMAT.read(directory / FILE)
    except FileNotFoundError:
        return NOTHING
    return NOTHING if found is None else Watermark(*found)


class WatermarkFile:
    """The file of a watermark.

    It is written after each sync of the journal, and synced now and then. So it is never ahead of what is durable. A
    killed process leaves it exact; after a crash of the machine it may be behind, and says less.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._mark = watermark_in(directory.path)
        self._lock = Lock()
        self._file = directory.open(directory.path / FILE, os.O_RDWR | os.O_CREAT)

    def advance(self, first: int, last: int, latest: int, *, sync: bool) -> None:
        """Write down how far the journal has come."""
        with self._lock:
            self._write(Watermark(first, last, latest, self._mark.reserved), sync=sync)

    def reserve(self, end: int) -> None:
        """Repeat the reserved end."""
        with self._lock:
            self._write(self._mark._replace(reserved=end), sync=False)

    def _write(self, mark: Watermark, *, sync: bool) -> None:
        """Write a mark. If the disk refuses, the mark before is still true."""
        self._mark = mark
        with suppress(OSError):
            write_all(self._file, FORMAT.encode(*mark), 0)
            if sync:
                os.fdatasync(self._file)

    def close(self) -> None:
        self._directory.close(self._file)
