"""Events -> readings: what each says at the paths that are looked at, or why it says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import json

from vestnik.errors import FilterError, WrongValue
from vestnik.lake.events import REQUIRED
from vestnik.lake.schema import EVENTS, INSTANT
from vestnik.model.parser import parse_path
from vestnik.model.spaces import DATA, Path, walk
from vestnik.spark.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

READINGS: Final = pa.schema(
    [
        ("key", pa.string()),
        ("time", INSTANT),
        ("broker", pa.string()),
        ("seq", pa.int64()),
        ("source", pa.string()),
        ("id", pa.string()),
        ("value", pa.float64()),
        ("volume", pa.float64()),
        ("reason", pa.string()),
    ]
)
"""`series.Reading`, and why a row is none."""
REASONS: Final = ("event", "key", "value", "time")
"""What a row lacks that is no reading: it is no event, or has no key, no number as its value, or no time."""
YEARS: Final = range(1970, 2262)
"""Of times that all parts of Spark can handle."""
KEYS: Final = ("source", "id")
ENVELOPE: Final = ("time", "taken_at", "broker", "seq")
_decode = json.Decoder(dict[str, Any]).decode


def path_of(text: str) -> Path:
    """The path that `text` names in the language of filters; WrongValue where it names none."""
    try:
        return parse_path(text)
    except FilterError:
        raise WrongValue("a path leads to a value in events, such as symbol or order.price", text) from None


def readings(
    events: DataFrame,
    key: str,
    value: str | None = None,
    volume: str | None = None,
    *,
    without: str | None = None,
    observed: str | Observation | None = None,
) -> DataFrame:
    """The readings in `events`, but for those that are from the source `without`.

    The key is a string, or an integer, as its digits. The value is a number. The time is that of the event or, where
    it has none, when it was taken. What lacks one of these is left out; under the name `observed`, Spark counts how
    many are `read`, and how many lack what of REASONS.
    """
    from pyspark.sql import functions as sql

    if missing := [name for name in REQUIRED if name not in events.columns]:
        raise WrongValue(f"a table of events has the columns {', '.join(REQUIRED)}", f"without {', '.join(missing)}")
    reader = Readings(path_of(key), *(None if path is None else path_of(path) for path in (value, volume)))
    needed = {*KEYS, *ENVELOPE, *(path[0] for path in reader.paths)}
    others = events if without is None else events.where(~sql.col("source").eqNullSafe(without))
    looked_at = others.select(*(name for name in EVENTS.names if name in needed and name in events.columns))
    rows = looked_at.mapInArrow(reader, spark_schema(READINGS))
    if observed is not None:
        lacking = [sql.count_if(sql.col("reason") == reason).alias(reason) for reason in REASONS]
        rows = rows.observe(observed, sql.count_if(sql.col("reason").isNull()).alias("read"), *lacking)
    return rows.where("reason IS NULL").drop("reason")


@dataclass(frozen=True)
class Readings:
    """What workers do with a batch of events."""

    key: Path
    value: Path | None
    volume: Path | None

    @property
    def paths(self) -> list[Path]:
        return [path for path in (self.key, self.value, self.volume) if path]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self._readings(batch)

    def _readings(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        bodies = _bodies(batch)
        nothing = [None] * batch.num_rows
        keys = [_key(value) for value in _values(batch, bodies, self.key)]
        values = map(_number, _values(batch, bodies, self.value)) if self.value else [0.0] * batch.num_rows
        volumes = map(_number, _values(batch, bodies, self.volume)) if self.volume else nothing
        times = pc.coalesce(_column(batch, "time"), _column(batch, "taken_at"))
        found = pa.RecordBatch.from_arrays(
            [
                pa.array(keys, pa.string()),
                times,
                pc.fill_null(_column(batch, "broker"), ""),
                pc.fill_null(_column(batch, "seq"), 0),
                *(_column(batch, name) for name in KEYS),
                pa.array(values, pa.float64()),
                pa.array(volumes, pa.float64()),
                pa.nulls(batch.num_rows, pa.string()),
            ],
            schema=READINGS,
        )
        return found.set_column(len(READINGS) - 1, READINGS.field("reason"), _reasons(found, bodies))


def _reasons(rows: pa.RecordBatch, bodies: list[Any]) -> pa.Array:
    """What each row lacks first, of REASONS."""
    unread = pa.array([body is None for body in bodies], pa.bool_())
    is_event = pc.and_not(pc.and_(rows.column("source").is_valid(), rows.column("id").is_valid()), unread)
    in_time = pc.fill_null(pc.is_in(pc.year(rows.column("time")), pa.array(YEARS)), False)
    has = [is_event, rows.column("key").is_valid(), rows.column("value").is_valid(), in_time]
    lacks = pa.StructArray.from_arrays([pc.invert(one) for one in has], names=REASONS)
    return pc.case_when(lacks, *(pa.scalar(reason) for reason in REASONS))


def _bodies(batch: pa.RecordBatch) -> list[Any]:
    """The data of each row, None where it is no JSON object; nothing of it where it is not looked at."""
    if DATA not in batch.schema.names:
        return [{}] * batch.num_rows
    return [_body(text) for text in batch.column(DATA).to_pylist()]


def _body(text: str | None) -> Any:
    try:
        return _decode(text or "")
    except (ValueError, RecursionError):
        return None


def _values(batch: pa.RecordBatch, bodies: list[Any], path: Path) -> Iterable[Any]:
    if path[0] == DATA:
        return [walk(body, path[1:]) for body in bodies]
    column = _column(batch, path[0])
    values: list[Any] = (column.cast(pa.int64()) if column.type == INSTANT else column).to_pylist()
    return values


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    kind = EVENTS.field(name).type
    if name in batch.schema.names:
        return batch.column(name).cast(kind)
    return pa.nulls(batch.num_rows, kind)


def _key(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None
