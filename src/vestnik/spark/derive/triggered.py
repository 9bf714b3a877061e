"""Triggers over tables and streams.

A table is sorted by key and time, and gone through. Of a stream, readings wait in Spark's state, by key, until the
watermark has reached them, and are then looked at in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from warnings import filterwarnings

import pyarrow as pa
from msgspec import msgpack

from vestnik.lake.schema import EVENTS
from vestnik.model.events import Event
from vestnik.spark.derive.durations import millis
from vestnik.spark.derive.made import Naming, firing_event
from vestnik.spark.derive.readings import readings
from vestnik.spark.derive.series import Firing, Reading
from vestnik.spark.derive.settled import LATEST, check_early, settled
from vestnik.spark.derive.triggers import MICROS_IN_MILLI, Trigger
from vestnik.spark.derive.windowed import SOURCE, Made
from vestnik.spark.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation
    from pyspark.sql.streaming.state import GroupState

Wanted: TypeAlias = tuple[Trigger, ...]
Kept: TypeAlias = list[deque[Reading]]
"""What each trigger has kept of the readings of a key."""

FIELDS: Final = ("key", "time", "broker", "seq", "source", "id", "value")
"""Of a reading, in the order by which tables are sorted; times in microseconds."""
FIRED: Final = pa.schema([("fired", pa.binary()), ("time", pa.int64()), (LATEST, pa.int64())])
"""A firing, packed with the number of its trigger, and its time; or the latest time of a part of a table."""
STATE: Final = "kept binary"
OF_PANDAS: Final = "The behavior of DataFrame concatenation"
"""What pandas says of how PySpark puts together what it sends."""


def triggers(
    events: DataFrame,
    wanted: Trigger | Sequence[Trigger],
    key: str,
    value: str,
    watermark: str | timedelta = "10 seconds",
    *,
    early: bool = False,
    type: str | None = None,
    source: str = SOURCE,
    of: str = "",
    observed: str | Observation | None = None,
) -> DataFrame:
    """An event each time that one of the triggers fires: key, value, base, base_time, and what the trigger says.

    It is of the type `type`, or what the trigger is called. `early`, `source`, `of` and `observed` are as for
    `candles`.
    """
    delay = millis(watermark)
    check_early(events, early)
    each = (wanted,) if isinstance(wanted, Trigger) else tuple(wanted)
    how = [Naming.derived(type or one.name, source, one.name, key, value, one.said(), of=of) for one in each]
    rows = readings(events, key, value, without=source, observed=observed).drop("volume")
    fired = _of_stream(rows, each, delay) if rows.isStreaming else _of_table(rows, each, delay, early)
    made = Made(_fired, partial(_event, list(zip(each, how, strict=True))))
    return fired.select("fired").mapInArrow(made, spark_schema(EVENTS))


def _of_table(rows: DataFrame, wanted: Wanted, delay: int, early: bool) -> DataFrame:
    in_order = rows.repartition("key").sortWithinPartitions(*FIELDS).selectExpr(*_in_micros())
    fired = in_order.mapInArrow(InOrder(wanted), spark_schema(FIRED))
    return (fired if early else settled(fired, "time", delay)).where("fired IS NOT NULL")


def _of_stream(rows: DataFrame, wanted: Wanted, delay: int) -> DataFrame:
    marked = rows.withWatermark("time", f"{delay} milliseconds").selectExpr("time AS instant", *_in_micros())
    by_key = marked.groupBy("key")
    waiting: Any = Waiting(wanted)
    return by_key.applyInPandasWithState(waiting, "fired binary", STATE, "append", "EventTimeTimeout")


def _in_micros() -> list[str]:
    return [f"unix_micros({name}) AS {name}" if name == "time" else name for name in FIELDS]


@dataclass(frozen=True)
class InOrder:
    """Goes through the readings of a part of a table, key by key, and at the end says what the latest time was."""

    wanted: Wanted

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept = _nothing(self.wanted)
        key, latest = None, None
        for batch in batches:
            fired: list[bytes] = []
            times: list[int] = []
            for row in zip(*(batch.column(name).to_pylist() for name in FIELDS), strict=True):
                reading = Reading(*row)
                if reading.key != key:
                    key, kept = reading.key, _nothing(self.wanted)
                latest = reading.time if latest is None else max(latest, reading.time)
                found = _looked(self.wanted, kept, reading)
                fired += found
                times += [reading.time] * len(found)
            yield pa.record_batch([pa.array(fired, pa.binary()), times, times], schema=FIRED)
        yield pa.RecordBatch.from_pylist([{LATEST: latest}], FIRED)


@dataclass(frozen=True)
class Waiting:
    """Keeps the readings of a key of a stream until the watermark has reached them, and looks at them in order."""

    wanted: Wanted

    def __call__(self, _: tuple[str], frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
        filterwarnings("ignore", OF_PANDAS, FutureWarning)
        waiting, kept = _unpacked(state.get[0]) if state.exists else ([], _nothing(self.wanted))
        for frame in frames:
            rows = zip(*(frame[name].tolist() for name in FIELDS), strict=True)
            waiting += [Reading(*row) for row in rows]
        waiting.sort()
        reached = state.getCurrentWatermarkMs() * MICROS_IN_MILLI
        ready = sum(1 for reading in waiting if reading.time <= reached)
        found = [one for reading in waiting[:ready] for one in _looked(self.wanted, kept, reading)]
        self._keep(state, waiting[ready:], kept, reached)
        if found:
            yield pa.table({"fired": found}).to_pandas()

    def _keep(self, state: GroupState, waiting: list[Reading], kept: Kept, reached: int) -> None:
        until = max(trigger.matters_until(some) for trigger, some in zip(self.wanted, kept, strict=True))
        if not waiting and reached > until:
            state.remove()
            return
        state.update((msgpack.encode((waiting, [list(some) for some in kept])),))
        if waiting:  # Spark calls again once the watermark is beyond the time that is set
            state.setTimeoutTimestamp(-(-waiting[0].time // MICROS_IN_MILLI) - 1)
        elif isfinite(until):  # also if this key has no other reading
            state.setTimeoutTimestamp(int(until) // MICROS_IN_MILLI + 1)


def _nothing(wanted: Wanted) -> Kept:
    return [deque() for _ in wanted]


def _unpacked(state: bytes) -> tuple[list[Reading], Kept]:
    waiting, kept = _state.decode(state)
    return waiting, [deque(some) for some in kept]


def _looked(wanted: Wanted, kept: Kept, reading: Reading) -> list[bytes]:
    """The firings at `reading`, each with the number of its trigger."""
    bases = [trigger.look(some, reading) for trigger, some in zip(wanted, kept, strict=True)]
    return [msgpack.encode((number, reading, base)) for number, base in enumerate(bases) if base is not None]


def _fired(packed: bytes) -> tuple[int, Firing]:
    number, reading, base = _firing.decode(packed)
    return number, Firing(reading, base)


def _event(how: Sequence[tuple[Trigger, Naming]], found: tuple[int, Firing]) -> Event:
    number, firing = found
    trigger, naming = how[number]
    return firing_event(trigger, firing, naming)


_state = msgpack.Decoder(tuple[list[Reading], list[list[Reading]]])
_firing = msgpack.Decoder(tuple[int, Reading, Reading])
