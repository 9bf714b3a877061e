"""Publishing rows as events: tasks stage them, and the driver publishes what the tasks that count have staged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import json
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from vestnik.errors import InvalidEvent, WrongValue
from vestnik.lake.events import events_of
from vestnik.lake.rows import batch_of
from vestnik.lake.schema import EVENTS
from vestnik.model.nearest import meant
from vestnik.spark.source.options import Writing
from vestnik.spark.source.publishing import LENIENT, publish
from vestnik.spark.source.staging import Part, Staging

OF_TAKEN: Final = ("broker", "seq", "position", "taken_by", "taken_at")
"""Columns of what was taken before: who takes it now says it anew."""
COLUMNS: Final = tuple([name for name in EVENTS.names if name not in OF_TAKEN])
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


def check_columns(names: Sequence[str], overwrite: bool) -> None:
    """What can be said of rows before there are any."""
    if overwrite:
        raise WrongValue("events are published, and never taken back: the mode is append", "overwrite")
    for name in names:
        if name not in EVENTS.names:
            raise WrongValue(
                "the columns are those of the event table",
                name,
                f"what events are about goes into data{meant(name, COLUMNS)}",
            )
    for needed in ("type", "data"):
        if needed not in names:
            raise WrongValue(
                "rows to publish have the columns type and data, a JSON object",
                ", ".join(names),
                "to_json(struct(...)) makes one of columns",
            )


class Staged(WriterCommitMessage):
    """What one attempt at a task staged."""

    def __init__(self, query: str, part: Part) -> None:
        self.query = query
        self.part = part


class StreamWriter(DataSourceStreamArrowWriter):
    """Of a streaming query: its batches are numbered, and tried again under their number."""

    def __init__(self, options: Writing) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = _context()
        query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
        if query is None or batch is None:
            raise WrongValue("a streaming query says its id and its batch", (query, batch))
        return stage(iterator, self._options, query, int(batch), context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        settle(messages, self._options, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        forsake(messages, self._options, batchId)


class BatchWriter(DataSourceArrowWriter):
    """Of one job. Under its own name, `job`, it is done once, and who runs it again finishes it."""

    def __init__(self, options: Writing) -> None:
        self._options = options
        self._query = options.job or uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return stage(iterator, self._options, self._query, 0, _context().partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        settle(messages, self._options, 0)
        self._end()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        forsake(messages, self._options, 0)
        self._end()

    def _end(self) -> None:
        if self._options.job is None:
            Staging(self._options.staging, self._query).forget()


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None  # rows are written by tasks
    return context


def settle(messages: Iterable[WriterCommitMessage | None], options: Writing, batch: int) -> None:
    """Publish what was staged."""
    staged = [message for message in messages if isinstance(message, Staged)]
    for query in {message.query for message in staged}:
        parts = [message.part for message in staged if message.query == query]
        publish(Staging(options.staging, query), batch, parts, options)


def forsake(messages: Iterable[WriterCommitMessage | None], options: Writing, batch: int) -> None:
    """Drop what was staged, unless it was decided to publish it: who comes next goes on with that."""
    for query in {message.query for message in messages if isinstance(message, Staged)}:
        staging = Staging(options.staging, query)
        with staging.alone():
            if staging.decision(batch) is None:
                staging.drop(batch)


def stage(rows: Iterable[pa.RecordBatch], options: Writing, query: str, batch: int, partition: int) -> Staged:
    """Check rows, and keep them until it is decided which attempt counts."""
    bad: list[dict[str, Any]] = []
    named = _named(rows, options.source, f"{query}-{batch}-{partition}")
    checked = _checked(named, partition, bad if options.is_lenient else None)
    file, count = Staging(options.staging, query).stage(batch, partition, checked)
    return Staged(query, Part(partition, file, count, tuple(bad)))


def _named(rows: Iterable[pa.RecordBatch], source: str, prefix: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows with a source and an id, which tell the place of those that have none; and the number of the first."""
    first = 0
    for some in rows:
        names = [name for name in some.schema.names if name in COLUMNS and name not in ("source", "id")]
        columns = {name: some.column(name) for name in names}
        own = pa.array([f"{prefix}-{number}" for number in range(first, first + len(some))], pa.string())
        columns["source"] = _filled(some, "source", pa.repeat(pa.scalar(source), len(some)))
        columns["id"] = _filled(some, "id", own)
        yield first, pa.RecordBatch.from_pydict(columns)
        first += len(some)


def _filled(rows: pa.RecordBatch, name: str, default: pa.Array) -> pa.Array:
    if name not in rows.schema.names:
        return default
    given = rows.column(name)
    return pc.coalesce(given.cast(pa.string()), default) if given.null_count else given


def _checked(
    rows: Iterable[tuple[int, pa.RecordBatch]], partition: int, bad: list[dict[str, Any]] | None
) -> Iterator[pa.RecordBatch]:
    """The rows as the event table has them. Those that are no events go to `bad`; without it, InvalidEvent."""
    for first, some in rows:
        try:
            yield batch_of(events_of(some))
            continue
        except InvalidEvent as error:
            if bad is None:
                reason = f"a row of partition {partition}, whose rows from {first} on were read, is no event: {error}"
                raise InvalidEvent(f"{reason}; {LENIENT}") from None
        for number in range(len(some)):
            row = some.slice(number, 1)
            try:
                yield batch_of(events_of(row))
            except InvalidEvent as error:
                bad.append({"reason": str(error), "row": json.encode(row.to_pylist()[0]).decode()})
