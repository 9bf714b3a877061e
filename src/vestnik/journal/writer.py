"""Writing, and stopping for good at the first failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from vestnik.errors import JournalFailed
from vestnik.journal.directory import Directory
from vestnik.journal.disk import create, reserve, write_all
from vestnik.journal.segments import Header, Segment
from vestnik.journal.settings import Settings


class Open(NamedTuple):
    """A segment, and its file, which is open for writing and may have room behind the last record."""

    segment: Segment
    file: int


class Pending(NamedTuple):
    """What is to be made durable: files, of which the last may still grow, and whether names have changed."""

    files: list[Open]
    is_renamed: bool


class Writer:
    """The file that grows, and those before it that are not durable yet.

    After a failed write or sync nobody knows what the disk has, and trying again may say that all is well when it is
    not. So every later call fails, too. Only TooManyOpenFiles passes: the disk was not asked.
    """

    def __init__(self, directory: Directory, settings: Settings) -> None:
        self.failed: JournalFailed | None = None
        self.is_closed = False
        self._directory = directory
        self._settings = settings
        self._files: list[Open] = []
        self._is_renamed = True

    def check(self) -> None:
        """JournalFailed if anything has failed before, ValueError after `close`."""
        if self.failed:
            raise JournalFailed(self.failed.path, self.failed.action, self.failed.reason)
        if self.is_closed:
            raise ValueError(f"the journal in {self._directory.path} is closed")

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
            self._grow(segment, self._directory.open(segment.path, os.O_RDWR))

    def begin(self, segment: Segment, header: Header) -> None:
        """Go on with a new file; if no descriptor is left for it, raise TooManyOpenFiles and change nothing."""
        with self.failing("create", segment.path):
            self._grow(segment, create(self._directory, segment.path, header.encode()))
        self._is_renamed = True

    def _grow(self, segment: Segment, file: int) -> None:
        reserve(file, self._settings.segment_size)
        self._files.append(Open(segment, file))

    def write(self, data: bytes) -> None:
        """Write behind the last record. If this fails, it is undone if the disk allows that; else something is left."""
        segment, file = self._files[-1]
        try:
            write_all(file, data, segment.size)
        except OSError as error:
            is_left = not self._cut_off(file, segment.size)
            self.failed = self.failed or JournalFailed(segment.path, "write", str(error), is_left=is_left)
            raise self.failed from error

    def _cut_off(self, file: int, size: int) -> bool:
        """Cut a file off at `size`, for good; False if the disk refuses that."""
        try:
            os.ftruncate(file, size)
            if self._settings.fsync:
                os.fdatasync(file)
        except OSError:
            return False
        return True

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
            for segment, file in pending.files[:-1]:
                with self.failing("truncate", segment.path):
                    os.ftruncate(file, segment.size)
            if self._settings.fsync:
                self._sync(pending)
        finally:
            for _, file in pending.files[:-1]:
                self._directory.close(file)

    def _sync(self, pending: Pending) -> None:
        for segment, file in pending.files:
            with self.failing("sync", segment.path):
                os.fdatasync(file)
        if pending.is_renamed:
            with self.failing("sync", self._directory.path):
                self._directory.sync()

    def close(self) -> None:
        self.is_closed = True
        for segment, file in self._files:
            with suppress(OSError):
                os.ftruncate(file, segment.size)
            self._directory.close(file)
        self._files = []
