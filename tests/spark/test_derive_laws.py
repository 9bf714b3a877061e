"""Triggers that look at one reading after the other fire where the definition says; and what that is."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event
from vestnik.errors import WrongValue
from vestnik.lake.schema import EVENTS
from vestnik.spark.derive import Above, Below, Fall, Rise
from vestnik.spark.derive.definition import candles, firings, rates, watermark
from vestnik.spark.derive.durations import millis
from vestnik.spark.derive.made import Naming, candle_event, firing_event, rate_event
from vestnik.spark.derive.readings import READINGS, Readings, path_of
from vestnik.spark.derive.series import Candle, Firing, Rate, Reading
from vestnik.spark.derive.triggered import FIELDS, Waiting
from vestnik.spark.derive.triggers import Trigger

SECOND = 1_000_000
TRIGGERS = (Above(10), Below(10), Rise(20, "3s"), Rise(5, "500ms"), Fall(20, "3s"), Fall(100, "10s"))


def series(*values: float, key: str = "A", every: int = SECOND) -> list[Reading]:
    return [Reading(key, at * every, "b", at, "s", f"{key}{at}", value) for at, value in enumerate(values)]


def fired(trigger: Trigger, readings: list[Reading]) -> list[tuple[float, float]]:
    return [(found.base.value, found.reading.value) for found in firings(trigger, readings, None)]


def looked(trigger: Trigger, readings: list[Reading]) -> list[Firing]:
    found = []
    for key in sorted({reading.key for reading in readings}):
        kept: deque[Reading] = deque()
        for reading in sorted(one for one in readings if one.key == key):
            if reading.time > trigger.matters_until(kept):
                kept.clear()
            base = trigger.look(kept, reading)
            if base is not None:
                found.append(Firing(reading, base))
    return found


@st.composite
def histories(draw: st.DrawFn) -> list[Reading]:
    values = st.sampled_from([-1.0, 0.0, 1.0, 8.0, 9.0, 10.0, 10.5, 12.0, 15.0, 1e308, 5e-324])
    row = st.tuples(st.sampled_from("AB"), st.integers(0, 40), values)
    rows = draw(st.lists(row, max_size=40))
    return [Reading(key, time * 250_000, "b", 0, "s", str(at), value) for at, (key, time, value) in enumerate(rows)]


@given(histories(), st.sampled_from(TRIGGERS))
def test_looking_at_one_after_the_other_finds_what_is_defined(readings: list[Reading], trigger: Trigger) -> None:
    assert looked(trigger, readings) == firings(trigger, readings, None)


@given(histories(), st.sampled_from(TRIGGERS), st.integers(0, 5_000))
def test_what_the_watermark_has_reached_is_part_of_all_there_is(
    readings: list[Reading], trigger: Trigger, delay: int
) -> None:
    last = watermark(readings, delay)
    assert firings(trigger, readings, delay) == [
        found for found in firings(trigger, readings, None) if found.reading.time <= last
    ]
    assert candles(readings, 700, delay) == [one for one in candles(readings, 700, None) if one.end <= last]
    assert sum(rate.count for rate in rates(readings, 700, None)) == len(readings)


def test_a_threshold_is_crossed_from_the_other_side() -> None:
    values = series(12, 9, 10, 11, 12, 10, 11)
    assert fired(Above(10), values) == [(10, 11), (10, 11)]
    assert fired(Below(10), values) == [(12, 9)]


def test_a_rise_is_from_the_lowest_within_the_interval_and_then_anew() -> None:
    assert fired(Rise(20, "3s"), series(10, 11, 12, 13, 14.4, 15)) == [(10, 12), (12, 14.4)]
    assert fired(Rise(20, "2s"), series(10, 10.5, 11, 12)) == []
    assert fired(Rise(20, "3s"), series(10, 10.5, 11, 12)) == [(10, 12)], "the interval is closed"
    assert fired(Rise(20, "3s"), series(-1, 0, 5, 6)) == [(5, 6)], "nothing is a percentage of what is not above 0"
    latest = firings(Rise(20, "9s"), series(10, 11, 10, 12), None)
    assert [found.base.id for found in latest] == ["A2"], "of equals, the latest"


def test_a_fall_is_from_the_highest() -> None:
    assert fired(Fall(50, "9s"), series(10, 12, 7, 6, 5, 3)) == [(12, 6), (6, 3)]
    assert fired(Fall(100, "9s"), series(10, 0, 5)) == [(10, 0)]


def test_candles_are_in_order_of_time_and_then_of_broker_and_seq() -> None:
    readings = [
        Reading("A", 500_000, "b", 2, "s", "1", 3.0, 4.0),
        Reading("A", 500_000, "b", 1, "s", "2", 2.0),
        Reading("A", 500_000, "a", 9, "s", "3", 1.0, 1.0),
        Reading("A", 1_000_000, "a", 10, "s", "4", 9.0),
        Reading("A", 2_000_999, "a", 10, "s", "4", 9.0),
    ]
    first = Candle("A", 0, SECOND, 1.0, 3.0, 1.0, 3.0, 3, 5.0)
    assert candles(readings, 1_000, 0) == [first, Candle("A", SECOND, 2 * SECOND, 9.0, 9.0, 9.0, 9.0, 1, None)]
    assert candles(readings, 1_000, 1) == [first], "a watermark is in whole milliseconds"
    assert rates(readings, 1_000, 1) == [Rate("A", 0, SECOND, 3)]


def test_events_tell_what_they_were_made_of() -> None:
    naming = Naming("candle", "derive", ("candle", "symbol", "price"))
    candle = Candle("A", 0, SECOND, 1.0, 3.0, 1.0, 3.0, 3, float("inf"))
    event = candle_event(candle, naming)
    assert event.data == {
        "key": "A", "start": "1970-01-01T00:00:00Z", "end": "1970-01-01T00:00:01Z",
        "open": 1.0, "high": 3.0, "low": 1.0, "close": 3.0, "count": 3,
    }  # fmt: skip
    assert (event.subject, event.time, event.source) == ("A", SECOND, "derive")
    assert candle_event(candle, naming) == event
    others = [
        candle_event(candle, Naming("candle", "derive", ("candle", "symbol", "bid"))),
        candle_event(Candle("A", SECOND, 2 * SECOND, 1.0, 3.0, 1.0, 3.0, 3, None), naming),
        candle_event(Candle("B", 0, SECOND, 1.0, 3.0, 1.0, 3.0, 3, None), naming),
    ]
    assert len({one.id for one in (event, *others)}) == 4
    assert rate_event(Rate("", 0, 2 * SECOND, 3), naming).data["per_second"] == 1.5


def test_the_causes_of_a_trigger_are_the_two_events_that_it_compares() -> None:
    (found,) = firings(Rise(20, "3s"), series(10, 12), None)
    event: Event = firing_event(Rise(20, "3s"), found, Naming("rise", "derive", ()))
    assert event.causes == (("s", "A0"), ("s", "A1")) and event.time == SECOND
    assert event.data == {
        "key": "A", "value": 12.0, "base": 10.0, "base_time": "1970-01-01T00:00:00Z",
        "change": 20.0, "rise": 20, "within": 3.0,
    }  # fmt: skip
    (vast,) = firings(Rise(20, "3s"), series(5e-324, 1e308), None)
    assert "change" not in firing_event(Rise(20, "3s"), vast, Naming("rise", "derive", ())).data


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("1m", 60_000), ("10 seconds", 10_000), ("250ms", 250), ("2 Hours", 7_200_000), (timedelta(seconds=1.5), 1_500)],
    ids=str,
)
def test_durations(text: str | timedelta, wanted: int) -> None:
    assert millis(text) == wanted


@pytest.mark.parametrize("text", ["", "10", "m", "-1s", "1 fortnight", "1.5s", "367d", "0s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(WrongValue, match="duration"):
        millis(text, 1)


@pytest.mark.parametrize(
    "make", [lambda: Above(float("nan")), lambda: Rise(0, "1s"), lambda: Fall(101, "1s"), lambda: Rise(5, "0s")]
)
def test_triggers_that_mean_nothing_are_refused(make: object) -> None:
    with pytest.raises(WrongValue):
        make()  # type: ignore[operator]


def test_paths_are_those_of_filters() -> None:
    assert path_of("symbol") == ("data", "symbol")
    assert path_of("data.order.price") == ("data", "order", "price")
    assert path_of("type") == ("type",)
    for text in ("", "a b", "price > 3", "a OR b"):
        with pytest.raises(WrongValue, match="path"):
            path_of(text)


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ({"data": '{"symbol":"A","price":9}'}, ("A", 9.0, None, None)),
        ({"data": '{"symbol":7,"price":9.5,"size":2}'}, ("7", 9.5, 2.0, None)),
        ({"data": '{"symbol":"","price":0,"size":"2"}'}, ("", 0.0, None, None)),
        ({"data": '{"symbol":"A","price":9}', "time": None, "taken_at": SECOND}, ("A", 9.0, None, None)),
        ({"data": '{"symbol":"A","price":9}', "time": None}, ("A", 9.0, None, "time")),
        ({"data": '{"symbol":"A","price":9}', "time": 253_402_300_799 * SECOND}, ("A", 9.0, None, "time")),
        ({"data": '{"symbol":"A","price":"9"}'}, ("A", None, None, "value")),
        ({"data": '{"symbol":"A","price":true}'}, ("A", None, None, "value")),
        ({"data": '{"symbol":"A","price":1' + "0" * 400 + "}"}, ("A", None, None, "value")),
        ({"data": '{"symbol":null,"price":9}'}, (None, 9.0, None, "key")),
        ({"data": '{"symbol":1.5,"price":9}'}, (None, 9.0, None, "key")),
        ({"data": "[]"}, (None, None, None, "event")),
        ({"data": '{"symbol":'}, (None, None, None, "event")),
        ({"data": "[" * 100_000}, (None, None, None, "event")),
        ({"data": None}, (None, None, None, "event")),
        ({"data": '{"symbol":"A","price":9}', "id": None}, ("A", 9.0, None, "event")),
    ],
    ids=range(16),
)
def test_a_reading_or_why_there_is_none(row: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    schema = pa.schema(
        [EVENTS.field(name).with_nullable(True) for name in ("source", "id", "time", "data", "taken_at")]
    )
    full = {"source": "s", "id": "1", "time": SECOND, **row}
    look = Readings(path_of("symbol"), path_of("price"), path_of("size"))
    empty, found = look(iter([pa.RecordBatch.from_pylist([], schema), pa.RecordBatch.from_pylist([full], schema)]))
    assert empty.num_rows == 0 and found.schema == READINGS
    (read,) = found.to_pylist()
    assert (read["key"], read["value"], read["volume"], read["reason"]) == wanted
    assert (read["broker"], read["seq"]) == ("", 0)


class State:
    """What Spark keeps for a key."""

    def __init__(self) -> None:
        self.kept: tuple[bytes] | None = None
        self.calls_at: int | None = None
        self.watermark = 0

    @property
    def exists(self) -> bool:
        return self.kept is not None

    @property
    def get(self) -> tuple[bytes]:
        assert self.kept is not None
        return self.kept

    def getCurrentWatermarkMs(self) -> int:  # Spark's name
        return self.watermark

    def update(self, kept: tuple[bytes]) -> None:
        self.kept, self.calls_at = kept, None

    def remove(self) -> None:
        self.kept = self.calls_at = None

    def setTimeoutTimestamp(self, millis: int) -> None:  # Spark's name
        assert millis > self.watermark
        self.calls_at = millis


def test_what_is_kept_of_a_key_that_falls_silent_is_let_go() -> None:
    state: Any = State()
    waiting = Waiting((Rise(5, "1s"),))
    rows = pa.Table.from_pylist([dict(zip(FIELDS, reading, strict=False)) for reading in series(1.0)]).to_pandas()
    list(waiting(("A",), iter([rows]), state))
    calls = 0
    while state.exists:
        assert state.calls_at is not None and calls < 5
        state.watermark, calls = state.calls_at + 1, calls + 1
        list(waiting(("A",), iter([]), state))
    assert calls and state.watermark <= 1_100, "not long after it can matter"


def test_what_is_derived_of_other_events_has_other_ids() -> None:
    candle = Candle("A", 0, 60_000_000, 1.0, 2.0, 1.0, 2.0, 3, None)
    namings = [Naming.derived("candle", "derive", "candle", "symbol", of=of) for of in ("", "x = 1", "x = 2")]
    assert len({candle_event(candle, naming).id for naming in namings}) == 3
    assert namings[0] == Naming("candle", "derive", ("candle", "symbol"))


@pytest.mark.parametrize("text", ["NOT symbol", "TRUE AND symbol", "x = 'x' AND x", "ANY tags", "@", "a b", "", "(x)"])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(WrongValue):
        path_of(text)
