"""Writing, and stopping for good at the first failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from vestnik.errors import JournalFailed
from vestnik.journal.disk import create, sync_directory, write_all
from vestnik.journal.segments import Header, Segment


class Open(NamedTuple):
    """A file that is open for appending."""

    path: Path
    file: int


class Pending(NamedTuple):
    """What is to be made durable: files, of which the last may still grow, and whether names have changed."""

    files: list[Open]
    is_renamed: bool


class Writer:
    """The file that grows, and those before it that are not durable yet.

    After a failed write or sync nobody knows what the disk has, and trying again may say that all is well when it is
    not. So every later call fails, too.
    """

    def __init__(self, directory: Path, fsync: bool) -> None:
        self.failed: JournalFailed | None = None
        self.is_closed = False
        self._directory = directory
        self._fsync = fsync
        self._files: list[Open] = []
        self._is_renamed = True

    def check(self) -> None:
        """JournalFailed if anything has failed before, ValueError after `close`."""
        if self.failed:
            raise JournalFailed(self.failed.path, self.failed.action, self.failed.reason)
        if self.is_closed:
            raise ValueError(f"the journal in {self._directory} is closed")

    @contextmanager
    def failing(self, action: str, path: Path) -> Iterator[None]:
        """Whatever the disk refuses in this block is the end of writing."""
        try:
            yield
        except OSError as error:
            self.failed = self.failed or JournalFailed(path, action, str(error))
            raise self.failed from error

    def resume(self, segment: Segment) -> None:
        """Go on with a file that is there."""
        with self.failing("open", segment.path):
            self._files.append(Open(segment.path, os.open(segment.path, os.O_RDWR | os.O_APPEND)))

    def begin(self, path: Path, header: Header) -> None:
        """Go on with a new file."""
        with self.failing("create", path):
            self._files.append(Open(path, create(path, header.encode())))
        self._is_renamed = True

    def write(self, data: bytes, size: int) -> None:
        """Append to the file, which has `size` bytes, and still has no more if this fails and the disk allows it."""
        path, file = self._files[-1]
        with self.failing("write", path):
            try:
                write_all(file, data)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(file, size)
                raise

    def drop(self, path: Path) -> None:
        with self.failing("drop", path):
            path.unlink(missing_ok=True)

    def take_pending(self) -> Pending:
        """What is not durable now; the caller hands it to `commit`."""
        pending = Pending(self._files, self._is_renamed)
        self._files, self._is_renamed = self._files[-1:], False
        return pending

    def commit(self, pending: Pending) -> None:
        """Make it durable, and close the files that do not grow any more. It may take long, and runs in any thread."""
        try:
            if self._fsync:
                self._sync(pending)
        finally:
            for _, file in pending.files[:-1]:
                os.close(file)

    def _sync(self, pending: Pending) -> None:
        for path, file in pending.files:
            with self.failing("sync", path):
                os.fdatasync(file)
        if pending.is_renamed:
            with self.failing("sync", self._directory):
                sync_directory(self._directory)

    def close(self) -> None:
        self.is_closed = True
        for _, file in self._files:
            os.close(file)
        self._files = []
