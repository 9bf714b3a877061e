"""Where rows wait until they are published, and how far that is.

    STAGING/QUERY/committed          the last batch that is published
    STAGING/QUERY/BATCH/P-X.arrow    rows that an attempt at partition P staged
    STAGING/QUERY/BATCH/decision     which attempts count: once it is there, no other will
    STAGING/QUERY/BATCH/progress     how many of their events are surely published
    STAGING/QUERY/quarantine/BATCH   rows that are no events, and events that the broker refused

Files appear whole, by renaming; `progress` is appended to.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct, json

from vestnik.errors import NotStaged
from vestnik.lake.events import events_of
from vestnik.lake.schema import EVENTS
from vestnik.model.events import Event

SHARED: Final = (
    "rows that were staged are not there; on a cluster, stagingLocation must be a folder that the driver and all "
    "executors share"
)

DAMAGED: Final = (
    "the file is damaged, so what of the batch is published is not known; put the folder back from a copy, or begin "
    "with new folders for the checkpoint and for staging"
)


class Part(NamedTuple):
    """What one attempt staged: the file, the number of its events, and the rows that are none."""

    partition: int
    file: str
    events: int
    bad: tuple[dict[str, Any], ...] = ()


class Decision(Struct, frozen=True):
    """What a batch is, and the broker that gets it; what it gets is behind `position` of its journal, where it says."""

    parts: tuple[Part, ...]
    broker: str | None = None
    position: int | None = None


class Staging:
    """Of one query."""

    def __init__(self, folder: Path, query: str) -> None:
        self.folder = folder / query

    def stage(self, batch: int, partition: int, rows: Iterable[pa.RecordBatch]) -> tuple[str, int]:
        """Keep rows of the event table; the name of the file, and how many there are."""
        file = f"{partition}-{uuid4().hex}.arrow"
        path = self._batch(batch) / file
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        count = 0
        with path.open("wb") as sink:
            with pa.ipc.new_stream(sink, EVENTS) as writer:
                for some in rows:
                    writer.write_batch(some)
                    count += len(some)
            sink.flush()
            os.fsync(sink.fileno())
        return file, count

    def events(self, batch: int, decision: Decision) -> Iterator[Event]:
        """All events of a batch, in order."""
        for part in decision.parts:
            left = part.events
            if left:
                with self._opened(batch, part) as reader:
                    for some in reader:
                        yield from events_of(some)
                        left -= len(some)
            if left:
                raise _damaged(self._batch(batch) / part.file, f"{part.events:,} events were staged, {left:,} are gone")

    @contextmanager
    def _opened(self, batch: int, part: Part) -> Iterator[pa.ipc.RecordBatchStreamReader]:
        path = self._batch(batch) / part.file
        try:
            source = path.open("rb")
        except FileNotFoundError:
            raise NotStaged(path, SHARED) from None
        try:
            with source, pa.ipc.open_stream(source) as reader:
                yield reader
        except (pa.ArrowInvalid, OSError) as error:
            raise _damaged(path, error) from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other process publishes for this query."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            flock(file, LOCK_EX)
            yield
        finally:
            os.close(file)

    def committed(self) -> int:
        """The last batch that is published; -1 where there is none."""
        path = self.folder / "committed"
        return _number(path, path.read_text(encoding="ascii", errors="replace")) if path.exists() else -1

    def decision(self, batch: int) -> Decision | None:
        path = self._batch(batch) / "decision"
        try:
            return json.decode(path.read_bytes(), type=Decision) if path.exists() else None
        except ValueError as error:
            raise _damaged(path, error) from None

    def decide(self, batch: int, decision: Decision) -> None:
        _write(self._batch(batch) / "decision", json.encode(decision))

    def progress(self, batch: int) -> int:
        path = self._batch(batch) / "progress"
        whole = path.read_text(encoding="ascii", errors="replace").split("\n")[:-1] if path.exists() else []
        return _number(path, whole[-1]) if whole else 0

    def advance(self, batch: int, count: int) -> None:
        with (self._batch(batch) / "progress").open("a", encoding="ascii") as file:
            file.write(f"{count}\n")
            file.flush()
            os.fsync(file.fileno())

    def quarantine(self, batch: int, bad: list[dict[str, Any]]) -> Path:
        path = self.folder / "quarantine" / f"{batch}.jsonl"
        _write(path, json.Encoder().encode_lines(bad))
        return path

    def finish(self, batch: int) -> None:
        """All of the batch is published: what was staged for it may go."""
        if batch > self.committed():
            _write(self.folder / "committed", str(batch).encode())
        self.drop(batch)

    def drop(self, batch: int) -> None:
        shutil.rmtree(self._batch(batch), ignore_errors=True)

    def forget(self) -> None:
        """Nobody will come back to this query. What is in quarantine stays."""
        for batch in self.folder.glob("[0-9]*"):
            shutil.rmtree(batch, ignore_errors=True)
        for name in ("committed", "lock"):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _batch(self, batch: int) -> Path:
        return self.folder / str(batch)


def _number(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, why: object) -> NotStaged:
    return NotStaged(path, f"{DAMAGED} ({why})")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}-{uuid4().hex}.new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
