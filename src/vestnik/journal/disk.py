"""The few things that are done to a disk. Directories are for their owner alone, and so are files."""

from __future__ import annotations

import os
from pathlib import Path

from vestnik.errors import JournalFailed

CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND


def make_directory(path: Path) -> None:
    """Make the directory and those above it that are missing; they will be there after a crash."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def create(path: Path, content: bytes) -> int:
    """A new file that begins with `content`, open for appending."""
    file = os.open(path, CREATE, 0o600)
    try:
        write_all(file, content)
    except OSError:
        os.close(file)
        raise
    return file


def write_all(file: int, data: bytes) -> None:
    """Write all of `data`; where the disk takes only a part, the rest is asked for again and the disk says why not."""
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])


class Source:
    """A file that is read; where the disk refuses, JournalFailed says which file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDONLY)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def read(self, size: int, at: int) -> bytes:
        """Up to `size` bytes from byte `at` on."""
        try:
            return os.pread(self._file, size, at)
        except OSError as error:
            raise JournalFailed(self.path, "read", str(error)) from error

    def settle(self) -> None:
        """From now on reads tell what the disk has.

        After a sync that failed, the system may still show what it could not write; so what it remembers is dropped.
        """
        try:
            os.fdatasync(self._file)
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise JournalFailed(self.path, "sync", str(error)) from error
