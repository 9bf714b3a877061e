"""What the data source decides without Spark: options, offsets, conditions as filters."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark.sql.datasource import Filter as Condition

from lake.lakes import quote
from lake.lakes import write as written
from vestnik import Event, Filter
from vestnik.errors import FilterSyntaxError, InvalidSetting, MissingEvents, NotStaged, WrongValue
from vestnik.lake.journals import open_journal
from vestnik.model.times import to_micros
from vestnik.spark.launch import PUSHES
from vestnik.spark.source.offsets import admitted, read_offsets, stretches, unmarked
from vestnik.spark.source.options import Reading, Writing
from vestnik.spark.source.pushdown import pushed
from vestnik.spark.source.reading import Stretch
from vestnik.spark.source.source import VestnikSource
from vestnik.spark.source.streaming import StreamReader
from vestnik.spark.source.writing import check_columns


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "url: say where"),
        ({"url": "d", "maxEventPerTriger": "5"}, "did you mean maxEventsPerTrigger"),
        ({"url": "d", "maxEventsPerTrigger": "0"}, "a number from 1, not '0'"),
        ({"url": "d", "startingOffsets": "first"}, "earliest, latest or positions"),
        ({"url": "d", "startingOffsets": '{"b": -3}'}, "earliest, latest or positions"),
        ({"url": "d", "failOnDataLoss": "maybe"}, "true or false, not 'maybe'"),
        ({"url": "d", "timeout": "nan"}, "a number of seconds"),
    ],
)
def test_options_that_mean_nothing_are_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        Reading.of(options)


def test_options_are_read_in_any_case() -> None:
    found = Reading.of({"URL": " a , b", "maxeventspertrigger": "7", "FILTER": "n > 1", "failOnDataLoss": "FALSE"})
    assert (found.per_trigger, str(found.filter), found.is_strict) == (7, "n > 1", False)
    assert found.urls == (str(Path.cwd() / "a"), str(Path.cwd() / "b")), "tasks run in other folders"
    assert Reading.of({"path": "data/b1"}).urls == (str(Path.cwd() / "data/b1"),)
    with pytest.raises(FilterSyntaxError):
        Reading.of({"url": "a", "filter": "n >"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "data/b1"}, "published to one broker"),
        ({"url": "h:1,h:2"}, "published to one broker"),
        ({"url": "h:1", "job": "../x"}, "job"),
        ({"url": "h:1", "checkpointLocation": "s3://b/c"}, "a file system that they share"),
        ({"url": "h:1", "filter": "n > 1"}, "no such option"),
        ({"url": "h:1", "onBadRow": "ignore"}, "fail or quarantine"),
    ],
)
def test_options_of_the_sink_are_checked(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        Writing.of(options)


def test_only_a_session_that_lets_sources_filter_is_given_a_reader_that_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark refuses one that would, where it is not set so, as it is not in plain PySpark."""
    source = VestnikSource({"url": str(tmp_path)})
    monkeypatch.delenv(PUSHES, raising=False)
    assert type(source.reader(source.schema())).pushFilters is DataSourceReader.pushFilters
    monkeypatch.setenv(PUSHES, "1")
    assert type(source.reader(source.schema())).pushFilters is not DataSourceReader.pushFilters


def test_rows_are_staged_where_it_is_said_or_in_the_checkpoint() -> None:
    assert Writing.of({"url": "h:1", "checkpointLocation": "file:///a%20b"}).staging == Path("/a b/vestnik-staging")
    assert Writing.of({"url": "h:1", "checkpointLocation": "/c", "stagingLocation": "/s"}).staging == Path("/s")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["type", "data", "price"], "price.*goes into data"),
        (["type", "data", "subjct"], "did you mean subject"),
        (["type"], "type and data"),
    ],
)
def test_columns_of_the_sink_are_checked(names: list[str], said: str) -> None:
    with pytest.raises(WrongValue, match=said):
        check_columns(names, overwrite=False)
    with pytest.raises(WrongValue, match="append"):
        check_columns(["type", "data"], overwrite=True)


def test_positions_are_shared_fairly_and_all_are_used() -> None:
    start = {"a": 0, "b": 10, "c": 0}
    assert admitted(start, {"a": 1, "b": 100, "c": 100}, 11) == {"a": 1, "b": 15, "c": 5}
    assert admitted(start, {"a": 1, "b": 12, "c": 0}, 100) == {"a": 1, "b": 12, "c": 0}
    assert admitted(start, {"a": 9, "b": 19, "c": 9}, 1) == {"a": 0, "b": 10, "c": 1}  # never nothing


def test_stretches_hold_every_position_once() -> None:
    assert list(stretches(3, 10, 3)) == [(3, 6), (6, 9), (9, 10)]
    assert list(stretches(3, 3, 3)) == list(stretches(4, 3, 3)) == []
    assert list(stretches(0, 10, 3, 6)) == [(0, 8), (8, 10)], "what was dropped takes no tasks"
    assert list(stretches(0, 10, 3, 11)) == list(stretches(0, 10, 3, 99)) == [(0, 10)]
    assert list(stretches(7, 10, 3, 6)) == [(7, 10)]


def test_offsets_are_words_or_positions() -> None:
    assert read_offsets("o", "Latest") == "latest"
    assert read_offsets("o", '{"b": 3, "c": "earliest"}') == {"b": 3, "c": "earliest"}


def test_offsets_of_an_older_checkpoint_say_nothing_of_the_journal() -> None:
    assert unmarked({"a": 30, "b": (4, "j")}) == ({"a": 30, "b": 4}, {"a": "", "b": "j"})


@pytest.mark.parametrize("error", [MissingEvents("b", 1, None, "gone"), NotStaged("/a", "gone")])
def test_errors_survive_pickling(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_brokers_take_for_too_complex_is_left_to_spark() -> None:
    long, short = EqualTo(("id",), "x" * 10_000), EqualTo(("type",), "a")
    filter, left = pushed([long, short])
    assert left == [long] and str(filter) == "type = 'a'"
    many = [In((column,), tuple(f"{n:060}" for n in range(100))) for column in ("source", "id", "subject")]
    filter, left = pushed(many)
    assert left and Filter.parse(str(filter)) == filter, "a broker takes what is put to it"


def test_what_was_dropped_is_part_of_the_first_task(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", "b", [quote(n, "b") for n in range(90)], segment_size=2_000, retain_size=4_000)
    with open_journal(folder) as journal:
        first, last = journal.first(), journal.last()
    start, end = {"b": [3, ""]}, {"b": [last, ""]}
    for is_strict in (True, False):
        reader = StreamReader(Reading(urls=(str(folder),), is_strict=is_strict, per_trigger=5, per_partition=50))
        (part,) = reader.partitions(start, end)
        assert isinstance(part, Stretch) and first > 55 and (part.after, part.upto) == (3, last), "one task for all"
        assert reader.latestOffset(start, reader.getDefaultReadLimit())["b"][0] == first + 4


def test_positions_that_were_skipped_do_not_fill_a_batch(tmp_path: Path) -> None:
    folder = written(tmp_path / "b", "b", [quote(n, "b") for n in range(3)])
    written(folder, "b", [quote(n, "b") for n in range(3, 9)], skip=65_536)
    reader = StreamReader(Reading(urls=(str(folder),), is_strict=True, per_trigger=2))
    ends, place = list[int](), 0
    while not ends or place < 65_545:
        place = reader.latestOffset({"b": [place, ""]}, reader.getDefaultReadLimit())["b"][0]
        ends.append(place)
    assert ends == [2, 4, 65_541, 65_543, 65_545]


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TEXTS = ["a", "a'b", "a%", "ab", "a_c", "", "a\nb", "é", "\U0001f600", "\uffff", "!"]
EVENTS = [
    Event(type=type, source=source, id="i", subject=subject, time=time, priority=priority)
    for (type, source), (subject, time, priority) in product(
        zip(TEXTS, TEXTS[::-1], strict=True),
        [(None, None, 4), ("a%c", NOON, 0), ("a", datetime(2026, 5, 1, 12, 0, 1, tzinfo=UTC), 9)],
    )
    if type and source
]
MEANING: dict[Any, Callable[[Any, Any], bool]] = {
    EqualTo: lambda found, value: found == value,
    GreaterThan: lambda found, value: found > value,
    GreaterThanOrEqual: lambda found, value: found >= value,
    LessThan: lambda found, value: found < value,
    LessThanOrEqual: lambda found, value: found <= value,
    In: lambda found, value: found in value,
    StringStartsWith: lambda found, value: found.startswith(value),
}


def holds(condition: Any, event: Event) -> bool:
    """As Spark means it."""
    found = getattr(event, condition.attribute[0])
    if isinstance(condition, IsNull):
        return found is None
    if found is None:
        return False
    if isinstance(condition, IsNotNull):
        return True
    value = condition.value
    return MEANING[type(condition)](found, to_micros(value) if isinstance(value, datetime) else value)


CONDITIONS: list[Any] = [
    *(kind((column,), text) for kind in MEANING if kind is not In for column in ("type", "subject") for text in TEXTS),
    *(kind(("priority",), 4) for kind in MEANING if kind not in (In, StringStartsWith)),
    *(kind(("time",), NOON) for kind in MEANING if kind not in (In, StringStartsWith)),
    *(In((column,), ("a", "a%", None)) for column in ("type", "source", "subject")),
    *(kind((column,)) for kind in (IsNull, IsNotNull) for column in ("type", "subject", "time", "priority")),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=repr)
def test_what_is_pushed_means_what_spark_means(condition: Any) -> None:
    filter, left = pushed([condition])
    assert left == []
    assert [filter.matches(event) for event in EVENTS] == [holds(condition, event) for event in EVENTS]


@pytest.mark.parametrize(
    "condition",
    [
        Not(EqualTo(("type",), "a")),
        EqualNullSafe(("type",), "a"),
        EqualTo(("data",), "{}"),
        EqualTo(("position",), 3),
        EqualTo(("causes", "id"), "x"),
        EqualTo(("time",), datetime(2026, 1, 1)),
        EqualTo(("type",), None),
        In(("type",), tuple(map(str, range(101)))),
        In(("type",), (None,)),
    ],
    ids=repr,
)
def test_the_rest_is_left_to_spark(condition: Condition) -> None:
    filter, left = pushed([condition, EqualTo(("type",), "a")])
    assert left == [condition] and str(filter) == "type = 'a'"
