"""Tables that a command writes down before Spark reads them, and those that it leaves beside the results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from vestnik.lake.journals import open_journal
from vestnik.lake.rows import batch_of, batch_of_taken
from vestnik.lake.schema import EVENTS
from vestnik.model.events import Event
from vestnik.wire.leaves import opened
from vestnik.wire.messages import Taken
from vestnik.wire.messages import Unread as Missing

ROWS_TOGETHER: Final = 50_000
"""Rows of a row group, which is what a task reads at least."""
SUBSCRIPTIONS: Final = pa.schema([pa.field("id", pa.string()), pa.field("filter", pa.string())])
QUARANTINE: Final = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("payload", pa.binary()),
        pa.field("entries", pa.int64(), nullable=False),
    ]
)
"""What could not be read: whether it was to be a subscription or an event, where, why, what was there, and how many."""


class Unread(NamedTuple):
    """A row of the quarantine, for one line or `entries` positions of a journal that follow each other."""

    kind: str
    place: str
    reason: str
    payload: bytes | None
    entries: int = 1


class Stage:
    """A Parquet file that is written batch by batch, for `with`."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def put(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= ROWS_TOGETHER:
            self._flush()

    def put_events(self, events: list[Event]) -> None:
        self.put(batch_of(events))

    def put_taken(self, taken: list[Taken], taken_by: str) -> None:
        self.put(batch_of_taken(taken, taken_by))

    def put_subscriptions(self, ids: list[str], filters: list[str]) -> None:
        self.put(pa.record_batch([pa.array(ids, pa.string()), pa.array(filters, pa.string())], schema=SUBSCRIPTIONS))

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting, self._rows = [], 0


def event_stage(path: Path) -> Stage:
    return Stage(path, EVENTS)


class JournalPart(NamedTuple):
    """What a broker took behind one position and up to another, by its data folder, and the folder that it is for."""

    at: str
    broker: str
    after: int
    upto: int
    folder: Path


def stage_journal(part: JournalPart) -> tuple[str, list[Unread]]:
    """Write down a part of a journal, in a file that no other task has; the file, and what could not be read."""
    path = part.folder / f"{part.after}-{uuid4().hex}.parquet"
    unread: list[Unread] = []
    with open_journal(part.at) as journal, event_stage(path) as stage:
        for page in journal.pages(part.after, part.upto):
            taken, missing = opened(page)
            stage.put_taken(taken, part.broker)
            unread += [_unread(part, one) for one in missing]
    return str(path), unread


def _unread(part: JournalPart, one: Missing) -> Unread:
    several = f" to {one.last}" if one.last > one.first else ""
    place = f"{part.at}, position {one.first}{several}"
    return Unread("event", place, one.reason, one.payload, one.last - one.first + 1)


def subscription_stage(path: Path) -> Stage:
    return Stage(path, SUBSCRIPTIONS)


def write_quarantine(folder: Path, unread: Iterable[Unread]) -> None:
    """Write the table to `folder`, which readers of the results beside it pass over where its name begins with _."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [one._asdict() for one in unread]
    pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), folder / "unread.parquet")


def why_unreadable(path: Path) -> str | None:
    """What is wrong with a Parquet file, as far as its end tells; None where it is whole."""
    try:
        pq.read_metadata(path)
    except (OSError, ValueError) as error:
        return str(error)
    return None


def rows_in(folder: Path) -> int:
    """How many rows the Parquet files in `folder` hold."""
    return int(pyarrow.dataset.dataset(folder, format="parquet").count_rows())
