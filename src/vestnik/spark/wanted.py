"""The events that a filter matches, of tables and streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.compiled import CompiledFilters, compile_filters
from vestnik.model.filters import Filter
from vestnik.spark.answers import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def wanted(events: DataFrame, filter: str) -> DataFrame:
    """The rows of `events` that the filter matches, as they are; a row that is no event is left out.

    Brokers that are read by `format("vestnik")` do the same at its option `filter`.
    """
    Filter.parse(filter)
    return events.mapInArrow(Wanted(filter), events.schema)


@dataclass(frozen=True)
class Wanted:
    """What workers do with a batch of events."""

    filter: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compiled = compile_filters({"": Filter.parse(self.filter)})
        reader = Reader(compiled.paths)
        for batch in batches:
            yield from _matched(batch, compiled, reader)


def _matched(batch: pa.RecordBatch, compiled: CompiledFilters, reader: Reader) -> Iterator[pa.RecordBatch]:
    try:
        found = compiled.match_columns(reader.read(batch))
    except InvalidEvent:
        half = batch.num_rows // 2
        if half:
            yield from _matched(batch.slice(0, half), compiled, reader)
            yield from _matched(batch.slice(half), compiled, reader)
        return
    yield batch.take(pa.array(found.events))
