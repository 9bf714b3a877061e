"""Reading what brokers take, batch by batch, for as long as the query runs.

Offsets are positions that the query has read up to, by broker. They are in the checkpoint, so a query that is started
again goes on where it was. A broker that is away is waited for: there is nothing new of it until it is back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from vestnik.errors import MissingEvents
from vestnik.spark.source.offsets import EARLIEST, LATEST, Offsets, admitted, wanted_of
from vestnik.spark.source.options import Reading
from vestnik.spark.source.reading import Source, open_all, place, planned, read

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE: Final = 2.0
"""Seconds for a broker to say how far it is: so long the end of a query may wait, too."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Its journals are opened where they are asked for, which is at the driver."""

    def __init__(self, options: Reading) -> None:
        self._options = options
        self._target: Offsets | None = None

    @cached_property
    def _held(self) -> ExitStack:
        return ExitStack()

    @cached_property
    def _sources(self) -> dict[str, Source]:
        return open_all(self._options, self._held, PATIENCE)

    def initialOffset(self) -> Offsets:
        wanted = self._options.starting
        return {
            broker: place(wanted_of(wanted, broker, EARLIEST), source.journal)
            for broker, source in self._sources.items()
        }

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {broker: self._end(broker) for broker in self._sources}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        begin = self._begin(start)
        last = {broker: max(self._latest(broker, begin[broker]), begin[broker]) for broker in self._sources}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return {**begin, **(last if most is None else admitted(begin, last, most))}

    def reportLatestOffset(self) -> Offsets | None:
        return None

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        begin = self._begin(start)
        found: list[InputPartition] = []
        for broker, upto in end.items():
            if source := self._sources.get(broker):
                found += planned(source, begin[broker], upto, self._options)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(partition, self._options, self._options.filter, None)

    def stop(self) -> None:
        self._held.close()

    def _begin(self, start: dict[str, Any]) -> Offsets:
        """Where each journal begins: of brokers that were not there before, with the first that is kept."""
        for broker, position in start.items():
            if broker not in self._sources and self._options.is_strict:
                reason = f"the checkpoint is up to {position} of it, and it is not at url"
                raise MissingEvents(broker, position + 1, None, reason)
        new = {
            broker: place(EARLIEST, self._sources[broker].journal) for broker in self._sources if broker not in start
        }
        return {**start, **new}

    def _latest(self, broker: str, begin: int) -> int:
        """How far it can be read now; no further than it was, while it does not answer."""
        if self._target is not None:
            return self._target[broker]
        try:
            return self._end(broker, begin)
        except TimeoutError:
            return begin

    def _end(self, broker: str, begin: int = 0) -> int:
        last = self._sources[broker].journal.last()
        if last < begin:
            raise MissingEvents(broker, last + 1, begin, "the journal is shorter than it was: another took its place")
        wanted = wanted_of(self._options.ending, broker, LATEST)
        return min(last, wanted) if isinstance(wanted, int) else last
