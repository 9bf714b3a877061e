"""Reading a range of a journal into files of a lake that are not in it yet: what one task does."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from vestnik.errors import InvalidJournal
from vestnik.journal.disk import make_directory, sync_directory
from vestnik.lake.declared import extended
from vestnik.lake.journals import Journal, open_journal
from vestnik.lake.keys import COPY, DIGEST, STAGED, Keys, digests, in_order, save
from vestnik.lake.layout import DAY, KEYS, date_of, partition_of, reading
from vestnik.lake.losses import Kind, Loss, summed
from vestnik.lake.manifest import Column, DataFile, PlainFile
from vestnik.lake.rows import Unreadable, batch_of_page, quarantine_of
from vestnik.lake.schema import EVENTS
from vestnik.lake.shown import FILES, QUARANTINE, SUFFIX

ORDER: Final = [("taken_at", "ascending"), ("taken_by", "ascending"), ("position", "ascending")]
"""Of rows in a file."""

FEW_VALUES: Final = ("source", "type", "subject", "priority", "broker", "taken_by")
"""Columns in which values come again and again."""


BYTES: Final = 256 << 20
"""Of events, packed, that a task has in memory, about."""


REPLACED: Final = "another journal took the place of this one: what was taken from here on and not yet read is lost"


class Part(Struct, frozen=True):
    """What the broker at `at` took behind one position and up to another, and the lake that it is for.

    Its journal took the place of another, that was read up to `replaced`, where there is one.
    """

    lake: Path
    name: str
    at: str
    broker: str
    journal: str
    after: int
    upto: int
    declared: dict[str, dict[str, Column]]
    replaced: int | None = None


class Staged(Struct, frozen=True):
    """Files that were written for a part, a file of the keys of what is in them, and what could not be read."""

    events: tuple[DataFile, ...]
    quarantine: tuple[PlainFile, ...]
    keys: PlainFile
    losses: tuple[Loss, ...] = ()


def stage(part: Part) -> Staged:
    """Write the files of a part, each under a name that no other task has."""
    name = f"{part.name}-{os.getpid()}-{os.urandom(4).hex()}"
    files: list[DataFile] = []
    found: list[Keys] = [np.empty(0, STAGED)]
    bad: list[Unreadable] = []
    if part.replaced is not None:
        bad.append(Unreadable(part.replaced + 1, None, REPLACED, None, Kind.REPLACED, None))
    with _no_collecting(), open_journal(part.at) as journal:
        for batches in _some(part, journal, bad):
            table = pa.Table.from_batches(batches, EVENTS)
            keys = np.empty(len(table), STAGED)
            keys["digest"] = np.frombuffer(b"".join(map(digests, batches)), DIGEST)
            keys["rank"] = _micros(table, "taken_at") + np.where(_is_own(table), 0, COPY)
            files += _write(part, name, len(files), table, keys)
            found.append(keys)
    keys = np.concatenate(found)
    keys = keys[in_order(keys["digest"])]
    at = f"{KEYS}/{name}.staged.npy"
    save(part.lake / at, keys)
    losses = summed(one.loss(part.broker) for one in bad)
    return Staged(tuple(files), tuple(_set_aside(part, name, bad)), PlainFile(at, len(keys)), losses)


def _some(part: Part, journal: Journal, bad: list[Unreadable]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of a part, about BYTES of them together; what cannot be read goes to `bad`."""
    batches: list[pa.RecordBatch] = []
    size, reached = 0, part.after
    for page in journal.pages(part.after, part.upto):
        batch, unread = batch_of_page(page, part.broker)
        batches.append(batch)
        bad += unread
        size, reached = size + len(page.packed), page.after
        if size >= BYTES:
            yield batches
            batches, size = [], 0
    if part.journal and journal.identity not in ("", part.journal):
        raise InvalidJournal(part.at, "was begun anew while it was read; run it again")
    if reached < part.upto:
        raise InvalidJournal(part.at, f"ends at position {reached:,}; it went to {part.upto:,} before")
    yield batches


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Very many objects are made, and none in a circle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _micros(table: pa.Table, name: str) -> Any:
    return table.column(name).cast(pa.int64()).to_numpy()


def _is_own(table: pa.Table) -> Any:
    return pc.fill_null(pc.equal(table.column("broker"), table.column("taken_by")), False).to_numpy()


def _write(part: Part, name: str, before: int, table: pa.Table, keys: Keys) -> Iterator[DataFile]:
    """A file for each type and date, behind so many. Keys are told in which file, and row of it, their events are."""
    if not len(table):
        return
    codes = table.column("type").combine_chunks().dictionary_encode()
    kinds, taken_at = codes.indices.to_numpy(), _micros(table, "taken_at")
    days = taken_at // DAY
    order = np.lexsort((_micros(table, "position"), taken_at, days, kinds))
    table = table.combine_chunks().take(pa.array(order))
    starts = np.flatnonzero(np.diff(kinds[order], prepend=-1) | np.diff(days[order], prepend=-1))
    for number, (first, end) in enumerate(zip(starts, [*starts[1:], len(order)], strict=True), start=before):
        type = codes.dictionary[int(kinds[order[first]])].as_py()
        rows = extended(table.slice(first, end - first), part.declared.get(type, {}))
        keys["file"][order[first:end]] = number
        keys["row"][order[first:end]] = np.arange(end - first)
        yield write_events(part.lake, f"{name}-{number}", type, date_of(int(days[order[first]])), rows)


def read_events(path: Path) -> pa.Table:
    """The event table of a file, without declared columns."""
    with reading(path), pq.ParquetFile(path) as file:
        return file.read(EVENTS.names)


def write_events(lake: Path, name: str, type: str, date: str, rows: pa.Table) -> DataFile:
    """A file of rows, of which there are some, that are in order."""
    folder = partition_of(type, date)
    make_directory(lake / folder)
    path = f"{folder}/{name}{SUFFIX}"
    happened = pc.min_max(pc.coalesce(rows.column("time"), rows.column("taken_at")).cast(pa.int64())).as_py()
    size = write_table(lake / path, rows)
    return DataFile(path, type, date, len(rows), size, happened["min"], happened["max"])


def write_table(path: Path, rows: pa.Table) -> int:
    """A Parquet file that is on the disk; its size."""
    with path.open("xb") as file:
        repeated = [name for name in FEW_VALUES if name in rows.schema.names]
        pq.write_table(rows, file, compression="zstd", use_dictionary=repeated)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    sync_directory(path.parent)
    return size


def _set_aside(part: Part, name: str, bad: Sequence[Unreadable]) -> Iterator[PlainFile]:
    if bad:
        path = f"{FILES}/{QUARANTINE}/{name}{SUFFIX}"
        rows = quarantine_of(bad, part.broker)
        write_table(part.lake / path, pa.Table.from_batches([rows]))
        yield PlainFile(path, len(bad))
