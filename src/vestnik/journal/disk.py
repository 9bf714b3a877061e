"""The few things that are done to a disk. Directories are for their owner alone, and so are files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from vestnik.errors import JournalFailed
from vestnik.journal.directory import Directory, descriptors

CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL


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


def create(directory: Directory, path: Path, content: bytes) -> int:
    """A new file that begins with `content`, open for writing."""
    file = directory.open(path, CREATE)
    try:
        write_all(file, content, 0)
    except OSError:
        directory.close(file)
        raise
    return file


def private(path: str, flags: int) -> int:
    """Open a file as `open(..., opener=private)` does: one that is made is for its owner alone, whatever the umask."""
    return os.open(path, flags, 0o600)


def reserve(file: int, size: int) -> None:
    """Give a file `size` bytes, zeros where nothing was written, if the disk has them.

    A write that makes a file longer has to wait while the names and sizes of files are synced. One into a file that is
    long enough has not.
    """
    with suppress(OSError):
        os.posix_fallocate(file, 0, size)


def write_all(file: int, data: bytes, at: int) -> None:
    """Write `data` from byte `at` on. Where the disk takes only a part, it is given the rest, and says why not."""
    written = os.pwrite(file, data, at)
    while written < len(data):
        written += os.pwrite(file, memoryview(data)[written:], at + written)


class Source:
    """A file that is read; where the disk refuses, JournalFailed says which file.

    A `directory` lends its reserve of descriptors to open it. TooManyOpenFiles if no descriptor is left.
    """

    def __init__(self, path: Path, directory: Directory | None = None) -> None:
        self.path = path
        self._directory = directory
        if directory is not None:
            self._file = directory.open(path, os.O_RDONLY)
        else:
            with descriptors(path):
                self._file = os.open(path, os.O_RDONLY)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        if self._directory is not None:
            self._directory.close(self._file)
        else:
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

    def sync(self) -> None:
        """Make durable what others have written; OSError where the disk refuses."""
        os.fdatasync(self._file)

    def settle(self) -> None:
        """From now on reads tell what the disk has.

        After a sync that failed, the system may still show what it could not write; so what it remembers is dropped.
        """
        try:
            os.fdatasync(self._file)
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise JournalFailed(self.path, "sync", str(error)) from error
