"""What workers do with a batch of the event table: read the paths in use, ask every shard, make rows of the answers.

A row that is no event is left out, and only that one: a batch that cannot be read is halved until the row is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.arrow import WithData, arrow_columns
from vestnik.matching.batch.columns import Columns
from vestnik.matching.batch.compiled import Pairs
from vestnik.matching.batch.documents import DocumentReader
from vestnik.matching.batch.lines import Line
from vestnik.model.spaces import DATA, Path
from vestnik.model.strict_json import read_json
from vestnik.spark.shards import Shard, ShardFile

KEYS: Final = ("source", "id")
ROW: Final = "row_"
"""The number of a row, where answers of several workers about it are put together."""
ROWS_AT_ONCE: Final = 1 << 18
"""Rows of an answer that go back to Spark together."""
ANY_VALUE: Final = Line((), (), True)
_NAMES: Final = [pa.field("event_source", pa.string()), pa.field("event_id", pa.string())]

PAIRS: Final = pa.schema([*_NAMES, pa.field("subscription_id", pa.string())])
LISTS: Final = pa.schema([*_NAMES, pa.field("subscriptions", pa.list_(pa.string()))])
COUNTS: Final = pa.schema([*_NAMES, pa.field("matches", pa.int64())])
UNREADABLE: Final = pa.schema([*_NAMES, pa.field("reason", pa.string()), pa.field("data", pa.string())])


class Reader:
    """Reads batches of the event table by the given paths."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = list(paths)
        self._documents = DocumentReader(self.paths, "flat")

    def read(self, batch: pa.RecordBatch) -> Columns:
        """The columns; InvalidEvent where a row is no event as far as it is looked at."""
        for name in KEYS:
            if batch.column(name).null_count:
                raise InvalidEvent("must be a string, not null", name)
        envelope = arrow_columns(batch, "event")
        if not self._documents.reads_data:
            return envelope
        data = batch.column(DATA)
        if batch.num_rows == 1:
            _check_object(data[0].as_py())
        read = self._documents.read_column(data, _place)
        if read is not None:
            return WithData(envelope, read)
        if batch.num_rows > 1:
            raise InvalidEvent("some row is no JSON object in one line", DATA)
        return envelope


def _place(row: int) -> str:
    return f"row {row}"


def _check_object(text: str | None) -> None:
    if text is None:
        raise InvalidEvent("must be a JSON object, not null", DATA)
    if not isinstance(read_json(text), dict):
        raise InvalidEvent("must be a JSON object", DATA)


@dataclass(frozen=True)
class Work:
    """One pass over events: `answer` gives rows for a batch that can be read."""

    shards: Sequence[ShardFile]
    paths: Sequence[Path]
    answer: Callable[[pa.RecordBatch, Columns, Sequence[Shard]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader(self.paths)
        shards = [shard.open() for shard in self.shards]
        for batch in batches:
            yield from self._answers(batch, reader, shards)

    def _answers(self, batch: pa.RecordBatch, reader: Reader, shards: Sequence[Shard]) -> Iterator[pa.RecordBatch]:
        if not batch.num_rows:
            return
        try:
            answers = list(self.answer(batch, reader.read(batch), shards))
        except InvalidEvent:
            half = batch.num_rows // 2
            if half:
                yield from self._answers(batch.slice(0, half), reader, shards)
                yield from self._answers(batch.slice(half), reader, shards)
            return
        yield from answers


def pairs(batch: pa.RecordBatch, columns: Columns, shards: Sequence[Shard]) -> Iterator[pa.RecordBatch]:
    """A row for each event and subscription that match."""
    for shard in shards:
        found = shard.compiled.match_columns(columns)
        for at in range(0, len(found), ROWS_AT_ONCE):
            events = pa.array(found.events[at : at + ROWS_AT_ONCE])
            filters = pa.array(found.filters[at : at + ROWS_AT_ONCE])
            yield _answer(PAIRS, batch, shard.ids.take(filters), events)


def lists(batch: pa.RecordBatch, columns: Columns, shards: Sequence[Shard]) -> Iterator[pa.RecordBatch]:
    """A row for each event, with its subscriptions."""
    none = np.zeros(0, np.int32)
    found = [shard.compiled.match_columns(columns) for shard in shards]
    events = np.concatenate([none, *(one.events for one in found)])
    ids = pa.concat_arrays([pa.array([], pa.string()), *(_ids(s, one) for s, one in zip(shards, found, strict=True))])
    order = np.argsort(events, kind="stable")
    ends = np.cumsum([0, *np.bincount(events, minlength=batch.num_rows)]).astype(np.int32)
    wanted = pa.ListArray.from_arrays(pa.array(ends), ids.take(pa.array(order)))
    yield _answer(LISTS, batch, wanted)


def counts(batch: pa.RecordBatch, columns: Columns, shards: Sequence[Shard]) -> Iterator[pa.RecordBatch]:
    """A row for each event, with the number of its subscriptions."""
    found = sum((shard.compiled.count_columns(columns) for shard in shards), np.zeros(batch.num_rows, np.int64))
    yield _answer(COUNTS, batch, pa.array(found))


@dataclass(frozen=True)
class Check:
    """The rows that are no events, as far as the paths look at them, and why."""

    paths: Sequence[Path]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader(self.paths)
        for batch in batches:
            yield from self._bad(batch, reader)

    def _bad(self, batch: pa.RecordBatch, reader: Reader) -> Iterator[pa.RecordBatch]:
        try:
            columns = reader.read(batch)
            for path in reader.paths:
                columns.ranks(path, ANY_VALUE, 0, len(columns))
        except InvalidEvent as error:
            half = batch.num_rows // 2
            if half:
                yield from self._bad(batch.slice(0, half), reader)
                yield from self._bad(batch.slice(half), reader)
            else:
                data = batch.column(DATA) if DATA in batch.schema.names else pa.nulls(1, pa.string())
                columns_out = [*(batch.column(name) for name in KEYS), pa.array([str(error)]), data]
                yield pa.record_batch(columns_out, schema=UNREADABLE)


@dataclass(frozen=True)
class Ranking:
    """The ranks of events at the paths of a shard's boxes, in columns r0, r1, ..."""

    shard: ShardFile
    paths: Sequence[Path]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return Work([self.shard], self.paths, _ranks)(batches)


def _ranks(batch: pa.RecordBatch, columns: Columns, shards: Sequence[Shard]) -> Iterator[pa.RecordBatch]:
    boxes = shards[0].boxes
    assert boxes is not None, "the plan is chosen where there are boxes"
    ranks = [columns.ranks(path, line, 0, len(columns)) for path, line in zip(boxes.paths, boxes.lines, strict=True)]
    names = [f"r{number}" for number in range(len(ranks))]
    columns_out = [batch.column("source"), batch.column("id"), *map(pa.array, ranks)]
    yield pa.record_batch(columns_out, names=["event_source", "event_id", *names])


def _ids(shard: Shard, found: Pairs) -> pa.Array:
    return shard.ids.take(pa.array(found.filters))


def _answer(
    schema: pa.Schema, batch: pa.RecordBatch, values: pa.Array, events: pa.Array | None = None
) -> pa.RecordBatch:
    """Rows of `values`, each with the name of its event, and the number of its row where there is one."""
    source, id, *row = (
        batch.column(name) if events is None else pc.take(batch.column(name), events)
        for name in (*KEYS, ROW)
        if name in batch.schema.names
    )
    return pa.record_batch([source, id, values, *row], names=[*schema.names, *(ROW for _ in row)])
