"""Derives, and puts what was derived where it belongs: to a broker, or into Parquet files; and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from vestnik.errors import NotAccepted, NotDerived
from vestnik.lake.journals import open_journal
from vestnik.lake.schema import EVENTS
from vestnik.model.filters import Filter
from vestnik.spark.temporary import temporary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation
    from pyspark.sql.streaming.query import StreamingQuery

READ, DERIVED, NEW, LATE = "read", "derived", "new", "late"
LOOK_EVERY: Final = 1
"""Seconds between looks at what a stream has done."""
PAUSE_WITHIN: Final = 30.0
"""Seconds that a query which is to stop has for the batch that it is at."""
PAUSE_LOOK: Final = 0.02
"""Seconds between looks at that."""
EVERY: Final = "1 second"
"""How often a stream that goes on looks for new events."""


class Derivation(Protocol):
    """Events -> derived events, with what was read counted under a name."""

    def __call__(self, events: DataFrame, *, observed: str | Observation) -> DataFrame: ...


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where derived events go: to the broker at `url`, or into files in `folder`."""

    url: str | None = None
    folder: Path | None = None


def derive_table(events: DataFrame, how: Derivation, target: Target, source: str) -> Counter[str]:
    """Derive from a table; what was counted. What the broker has already is not published again."""
    from pyspark.sql import Observation

    observed = [Observation(READ), Observation(DERIVED)]
    rows = _counted(how(events, observed=observed[0]), observed[1], DERIVED)
    with _said():
        if target.url is None:
            rows.write.mode("append").parquet(str(target.folder))
        else:
            observed.append(Observation(NEW))
            fresh = _counted(unpublished(rows, target.url, source), observed[2], NEW)
            with temporary("vestnik-derive-") as staging:
                publishing = fresh.write.format("vestnik").mode("append").option("url", target.url)
                publishing.option("stagingLocation", str(staging)).save()
    return sum((Counter(one.get) for one in observed), Counter())


def unpublished(rows: DataFrame, url: str, source: str) -> DataFrame:
    """The rows, all of one source, that the journal of a broker does not have, as far as it may be read."""
    quoted = source.replace("'", "''")
    try:
        with open_journal(url) as journal:
            ids = [taken.event.id for taken in journal.read(filter=Filter.parse(f"source = '{quoted}'"))]
    except NotAccepted:
        return rows
    there = rows.sparkSession.createDataFrame(pa.table({"id": pa.array(ids, pa.string())}))
    return rows.join(there, "id", "left_anti").select(*EVENTS.names)


def derive_stream(
    events: DataFrame, how: Derivation, target: Target, checkpoint: Path, stopping: Event, *, follow: bool
) -> Counter[str]:
    """Derive from a stream, going on from `checkpoint`, to the end of what is there now; with `follow`, on and on.

    It ends before that once `stopping` is set. What was counted: LATE are rows that came when the watermark was past
    them; of windows, rows that a task has added up by key and window.
    """
    rows = _counted(how(events, observed=READ), DERIVED, DERIVED)
    writing = rows.writeStream.option("checkpointLocation", str(checkpoint))
    if target.url is None:
        writing = writing.format("parquet").option("path", str(target.folder))
    else:
        writing = writing.format("vestnik").option("url", target.url)
    writing = writing.trigger(processingTime=EVERY) if follow else writing.trigger(availableNow=True)
    totals: Counter[str] = Counter()
    seen: set[tuple[int, str]] = set()
    with _said():
        query = writing.start()
        try:
            while not stopping.is_set() and not query.awaitTermination(LOOK_EVERY):
                _add(totals, query.recentProgress, seen)
            _await_pause(query)
        finally:
            query.stop()
        if (failure := query.exception()) is not None:  # also of the batch that it was at when it was to stop
            raise failure
        _add(totals, query.recentProgress, seen)
    return totals


def _await_pause(query: StreamingQuery) -> None:
    """Wait while a batch is under way: what is stopped then is done again by the next run."""
    end = monotonic() + PAUSE_WITHIN
    while query.isActive and query.status["isTriggerActive"] and monotonic() < end:
        sleep(PAUSE_LOOK)


def _counted(rows: DataFrame, observed: Any, name: str) -> DataFrame:
    from pyspark.sql import functions as sql

    return rows.observe(observed, sql.count("*").alias(name))


def _add(totals: Counter[str], batches: Iterable[Any], seen: set[tuple[int, str]]) -> None:
    for batch in batches:
        if (place := (batch.batchId, batch.timestamp)) in seen:
            continue
        seen.add(place)
        for counted in batch.observedMetrics.values():
            totals.update(counted.asDict())
        totals[LATE] += sum(state.numRowsDroppedByWatermark for state in batch.stateOperators)


@contextmanager
def _said() -> Iterator[None]:
    """NotDerived, with what Spark or a worker has to say, where a query fails."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        own = [line.partition(": ")[2] for line in lines if line.startswith("vestnik.errors.")]
        raise NotDerived([*own, *lines, "Spark does not say why"][0]) from error
