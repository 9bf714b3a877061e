"""Candles and rates by Spark's own windows and aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vestnik.lake.rows import batch_of
from vestnik.lake.schema import EVENTS
from vestnik.model.events import Event
from vestnik.spark.derive.durations import millis
from vestnik.spark.derive.made import Naming, candle_event, rate_event
from vestnik.spark.derive.readings import readings
from vestnik.spark.derive.series import Candle, Rate
from vestnik.spark.derive.settled import LATEST, check_early, settled
from vestnik.spark.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

SOURCE = "derive"
ORDER = ("time", "broker", "seq", "source", "id")


def candles(
    events: DataFrame,
    key: str,
    value: str,
    window: str | timedelta = "1 minute",
    watermark: str | timedelta = "10 seconds",
    *,
    volume: str | None = None,
    early: bool = False,
    type: str = "candle",
    source: str = SOURCE,
    of: str = "",
    observed: str | Observation | None = None,
) -> DataFrame:
    """An event for each key and window: key, start, end, open, high, low, close, count, and volume where there is one.

    With `early`, also for windows of a table that the watermark has not reached. Events from `source` are not read.
    `of` says in words which events these are, as a filter that has picked them: what is derived of others has other
    ids. `observed` is as for `readings`.
    """
    from pyspark.sql import functions as sql

    length, delay = millis(window, 1), millis(watermark)
    check_early(events, early)
    rows = readings(events, key, value, volume, without=source, observed=observed)
    place = sql.struct(*ORDER)
    found = {
        "open": sql.min_by("value", place),
        "high": sql.max("value"),
        "low": sql.min("value"),
        "close": sql.max_by("value", place),
        "count": sql.count("*"),
        "volume": sql.sum("volume"),
    }
    naming = Naming.derived(type, source, "candle", key, value, volume, length, of=of)
    return _by_window(rows, length, delay, early, found, Made(Candle, partial(candle_event, naming=naming)))


def rates(
    events: DataFrame,
    key: str = "type",
    window: str | timedelta = "1 minute",
    watermark: str | timedelta = "10 seconds",
    *,
    early: bool = False,
    type: str = "rate",
    source: str = SOURCE,
    of: str = "",
    observed: str | Observation | None = None,
) -> DataFrame:
    """An event for each key and window in which there are events: key, start, end, count, per_second."""
    from pyspark.sql import functions as sql

    length, delay = millis(window, 1), millis(watermark)
    check_early(events, early)
    rows = readings(events, key, without=source, observed=observed)
    naming = Naming.derived(type, source, "rate", key, length, of=of)
    return _by_window(
        rows, length, delay, early, {"count": sql.count("*")}, Made(Rate, partial(rate_event, naming=naming))
    )


@dataclass(frozen=True)
class Made:
    """Rows of what was found as rows of events."""

    kind: Callable[..., Any]
    event: Callable[[Any], Event]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield batch_of([self.event(self.kind(*row)) for row in rows])


def _by_window(
    rows: DataFrame, length: int, delay: int, early: bool, found: dict[str, Column], made: Made
) -> DataFrame:
    from pyspark.sql import functions as sql

    if rows.isStreaming:
        rows = rows.withWatermark("time", f"{delay} milliseconds")
    aggregates = [column.alias(name) for name, column in found.items()]
    groups = rows.groupBy("key", sql.window("time", f"{length} milliseconds"))
    if not rows.isStreaming:
        aggregates.append(sql.unix_micros(sql.max("time")).alias(LATEST))
    bounds = [sql.unix_micros(sql.col("window")[bound]).alias(bound) for bound in ("start", "end")]
    all_of = groups.agg(*aggregates).select("*", *bounds)
    over = all_of if rows.isStreaming or early else settled(all_of, "end", delay)
    return over.select("key", "start", "end", *found).mapInArrow(made, spark_schema(EVENTS))
