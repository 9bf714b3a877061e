"""One process at a time."""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from vestnik.errors import JournalLocked

NAME = "lock"


class Lock:
    """A directory that is ours until `release` or the end of the process; JournalLocked where it is another's."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            flock(self._file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 100, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise JournalLocked(directory, holder or "another process") from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
