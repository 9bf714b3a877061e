"""The directory of a journal: opening its files, also when the process has no descriptor left."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from vestnik.errors import TooManyOpenFiles

RESERVED: Final = 4
"""Descriptors that a journal keeps: for the next segment, for a reader, and for the two files of a compaction."""
PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process or a system that has too many files open. The disk is well."""


@contextmanager
def descriptors(path: Path) -> Iterator[None]:
    """Raise TooManyOpenFiles if the file at `path` cannot be opened in this block for want of a descriptor."""
    try:
        yield
    except OSError as error:
        if error.errno in PASSING:
            raise TooManyOpenFiles(path, error.strerror or str(error)) from error
        raise


def names_in(path: Path, suffix: str) -> list[str]:
    """Return the sorted names in a directory that end with `suffix`; none if there is no such directory."""
    try:
        with descriptors(path):
            return sorted(one.name for one in path.iterdir() if one.name.endswith(suffix))
    except FileNotFoundError:
        return []


class Directory:
    """Opens and closes files of the directory at `path`, and syncs their names. Any thread may use it.

    It holds RESERVED descriptors that refer to nothing useful. When no other is left, `open` gives one of them up,
    and the next `close` turns its descriptor into a reserved one, so that nobody else can take it in between.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._is_released = False
        self._reserved: list[int] = []
        with descriptors(path):
            self._file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                while len(self._reserved) < RESERVED:
                    self._reserved.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY))
            except OSError:
                self.release()
                raise

    def open(self, path: Path, flags: int) -> int:
        """Return a descriptor of the file at `path`; TooManyOpenFiles if the reserve is in use, too."""
        try:
            return os.open(path, flags, 0o600)
        except OSError as error:
            if error.errno not in PASSING:
                raise
        with self._lock, descriptors(path):
            if self._reserved:
                os.close(self._reserved.pop())
            try:
                return os.open(path, flags, 0o600)
            except OSError:
                self._reserve()
                raise

    def close(self, file: int) -> None:
        """Close a file that was opened here."""
        with self._lock:
            if self._is_released or len(self._reserved) == RESERVED:
                os.close(file)
            else:
                os.dup2(self._file, file, inheritable=False)
                self._reserved.append(file)

    def _reserve(self) -> None:
        """Take back a descriptor that was given up for nothing, unless another thread has it by now."""
        with suppress(OSError):
            if not self._is_released and len(self._reserved) < RESERVED:
                self._reserved.append(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY))

    def sync(self) -> None:
        """Make the names of the files durable."""
        os.fsync(self._file)

    def release(self) -> None:
        """Close what is held. Files can still be opened and closed, without a reserve."""
        with self._lock:
            self._is_released = True
            for file in (self._file, *self._reserved):
                os.close(file)
            self._reserved.clear()
