"""Reading what brokers take, batch by batch, for as long as the query runs.

Offsets are positions that the query has read up to, by broker, and of which journal they are. They are in the
checkpoint, so a query that is started again goes on where it was. A broker that is away is waited for: there is nothing
new of it until it is back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
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
from vestnik.spark.source.offsets import (
    BEGINNING,
    EARLIEST,
    LATEST,
    Offsets,
    admitted,
    marked,
    stretches,
    unmarked,
    wanted_of,
)
from vestnik.spark.source.options import Reading
from vestnik.spark.source.reading import ANOTHER, Source, is_another, open_all, place, planned, read

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

    def initialOffset(self) -> dict[str, Any]:
        wanted = self._options.starting
        return self._marked(
            {
                broker: place(wanted_of(wanted, broker, BEGINNING), source.journal)
                for broker, source in self._sources.items()
            }
        )

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {broker: self._end(broker) for broker in self._sources}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        found = {broker: self._latest(broker) for broker in self._sources}
        begin = self._begin(start)
        last = {broker: self._reached(broker, begin[broker], upto) for broker, upto in found.items()}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if most is not None:
            kept = {broker: self._before_next(broker, begin[broker], upto) for broker, upto in last.items()}
            last = admitted(kept, last, most)
        end = {**begin, **last}
        return self._marked(end, unmarked(start)[1])

    def reportLatestOffset(self) -> Offsets | None:
        return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin = self._begin(start)
        found: list[InputPartition] = []
        positions, journals = unmarked(end)
        for broker, upto in positions.items():
            if source := self._sources.get(broker):
                ends = stretches(begin[broker], upto, self._options.per_partition, self._first(broker))
                found += planned(source, journals[broker], ends)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(partition, self._options, self._options.filter, None)

    def stop(self) -> None:
        self._held.close()

    def _marked(self, offsets: Offsets, known: Mapping[str, str] | None = None) -> dict[str, Any]:
        """With the journals that the brokers have now, or that are known of those that are not at url."""
        now = {broker: source.journal.identity for broker, source in self._sources.items()}
        return marked(offsets, {**(known or {}), **{broker: journal for broker, journal in now.items() if journal}})

    def _begin(self, start: dict[str, Any]) -> Offsets:
        """Return after which position each journal is read on.

        Those that were not there before are read from their beginning, unless the query began with what was kept.
        """
        positions, journals = unmarked(start)
        anew = BEGINNING if self._options.starting == BEGINNING else EARLIEST
        for broker, position in positions.items():
            source = self._sources.get(broker)
            if source is None and self._options.is_strict:
                reason = f"the checkpoint is up to {position} of it, and it is not at url"
                raise MissingEvents(broker, position + 1, None, reason)
            if source is not None and is_another(journals[broker], source.journal):
                if self._options.is_strict:
                    raise MissingEvents(broker, position + 1, None, ANOTHER)
                positions[broker] = place(anew, source.journal)
        new = {
            broker: place(anew, source.journal) for broker, source in self._sources.items() if broker not in positions
        }
        return {**positions, **new}

    def _first(self, broker: str) -> int:
        """Return the first position that is kept now; 0 while the broker does not answer."""
        with suppress(TimeoutError):
            return self._sources[broker].journal.first()
        return 0

    def _before_next(self, broker: str, after: int, upto: int) -> int:
        """Return the position before the first that is there after `after`, or `upto`; `after` if nobody answers.

        Positions that were dropped or skipped do not fill a batch.
        """
        with suppress(TimeoutError):
            for page in self._sources[broker].journal.pages(after, upto, most=1) if after < upto else ():
                if page.positions:
                    return page.positions[0] - 1
                after = page.after
        return after

    def _latest(self, broker: str) -> int | None:
        """How far it can be read now; None while it does not answer."""
        if self._target is not None:
            return self._target[broker]
        try:
            return self._end(broker)
        except TimeoutError:
            return None

    def _reached(self, broker: str, begin: int, upto: int | None) -> int:
        if upto is not None and upto < begin <= self._wanted(broker, begin):
            raise MissingEvents(broker, upto + 1, begin, "the journal is shorter than it was: another took its place")
        return begin if upto is None else max(begin, upto)

    def _end(self, broker: str) -> int:
        last = self._sources[broker].journal.last()
        return min(last, self._wanted(broker, last))

    def _wanted(self, broker: str, last: int) -> int:
        """The last that is to be read; `last` where nothing is said."""
        wanted = wanted_of(self._options.ending, broker, LATEST)
        return wanted if isinstance(wanted, int) else last
