"""Events as rows, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_events import events, fewer, nested
from vestnik.errors import InvalidEvent
from vestnik.journal import Record
from vestnik.lake.events import events_of, taken_of
from vestnik.lake.losses import Kind
from vestnik.lake.rows import CHUNK, Unreadable, batch_of, batch_of_records, batch_of_taken, quarantine_of
from vestnik.lake.schema import EVENTS, QUARANTINE
from vestnik.model.events import Event
from vestnik.wire.messages import Taken
from vestnik.wire.packing import TAKEN, pack_taken

QUOTE = Event("market.quote", {"symbol": "IBM", "price": 100}, source="feed", id="q1")


def kinds(value: Any) -> Any:
    """A value with the types inside it: 1 is not 1.0 here."""
    if isinstance(value, dict):
        return {name: kinds(item) for name, item in value.items()}
    return [kinds(item) for item in value] if isinstance(value, list) else (type(value), repr(value))


def record(position: int, event: Event, kind: int = TAKEN) -> Record:
    return Record(position, kind, 1_000 + position, pack_taken("ann", event))


def row(**changes: Any) -> pa.RecordBatch:
    """The quote as a row with some columns changed."""
    values = {**batch_of([QUOTE]).to_pylist()[0], **changes}
    return pa.record_batch({name: pa.array([value]) for name, value in values.items()})


@fewer
@given(st.lists(events(), max_size=4))
def test_rows_give_the_events_back(some: list[Event]) -> None:
    batch = batch_of(some)
    batch.validate(full=True)
    assert batch.schema == EVENTS
    back = events_of(batch)
    assert back == some
    assert [kinds(event.data) for event in back] == [kinds(event.data) for event in some]
    assert [kinds(event.extensions) for event in back] == [kinds(event.extensions) for event in some]


@fewer
@given(st.lists(events(), max_size=4))
def test_what_is_a_table_in_other_types_of_arrow_is_the_same(some: list[Event]) -> None:
    wider = pa.Table.from_batches([batch_of(some), batch_of(some)])
    for name in ("source", "data", "extensions"):
        wider = wider.set_column(wider.schema.get_field_index(name), name, wider.column(name).cast(pa.large_string()))
    assert events_of(wider) == [*some, *some]


@fewer
@given(st.lists(events(), max_size=4))
def test_records_of_a_journal_are_the_same_rows_as_what_was_taken(some: list[Event]) -> None:
    records = [record(position, event) for position, event in enumerate(some, 1)]
    taken = [Taken(one.position, one.time, event) for one, event in zip(records, some, strict=True) if event.seq]
    batch, bad = batch_of_records(records, "b1")
    assert bad == []
    assert batch == batch_of_taken(taken, "b1")
    assert taken_of(batch) == taken


def test_a_row_says_where_it_was_taken() -> None:
    batch, _ = batch_of_records([record(7, QUOTE.stamped("b0", 3))], "b1")
    (found,) = batch.to_pylist()
    assert (found["broker"], found["seq"]) == ("b0", 3)
    assert (found["taken_by"], found["position"]) == ("b1", 7)
    assert batch.column("taken_at").cast(pa.int64()).to_pylist() == [1_007]


def test_what_is_held_and_what_is_no_event_are_passed_over() -> None:
    held, other, gone = record(1, QUOTE), record(2, QUOTE.stamped("b1", 1), kind=9), record(3, QUOTE.stamped("b1", 2))
    batch, bad = batch_of_records([held, other, gone], "b1")
    assert batch.column("position").to_pylist() == [3]
    assert bad == []


@pytest.mark.parametrize("payload", [b"", b"garbage", b"\x92\xa3ann\xc0", pack_taken("a", QUOTE) * 2], ids=range(4))
def test_a_bad_record_is_named_and_the_others_are_read(payload: bytes) -> None:
    good = [record(position, QUOTE.stamped("b1", position)) for position in (1, 3)]
    batch, bad = batch_of_records([good[0], Record(2, TAKEN, 5, payload), good[1]], "b1")
    assert batch.column("position").to_pylist() == [1, 3]
    (named,) = bad
    assert (named.position, named.time, named.payload) == (2, 5, payload)
    assert named.reason.startswith("it holds no event: ")


def test_what_is_nested_deep_is_read_too() -> None:
    deep = Event("a", nested(20), source="s", id="i").stamped("b1", 1)
    batch, bad = batch_of_records([record(1, deep)], "b1")
    assert bad == []
    assert events_of(batch) == [deep]


def test_many_records_keep_their_order() -> None:
    count = 2 * CHUNK + 1
    records = [record(position, QUOTE.stamped("b1", position)) for position in range(1, count + 1)]
    batch, _ = batch_of_records(records, "b1")
    assert batch.column("seq").to_pylist() == list(range(1, count + 1))


def test_the_quarantine_keeps_what_could_not_be_read() -> None:
    bad = [Unreadable(3, 5, "it holds no event", b"\xff"), Unreadable(4, None, "damaged", None, Kind.DAMAGED, 7)]
    batch = quarantine_of(bad, "b1")
    batch.validate(full=True)
    assert batch.schema == QUARANTINE
    assert [tuple(found.values())[1:] for found in batch.to_pylist()] == [
        (3, 1, "no event", datetime(1970, 1, 1, microsecond=5, tzinfo=UTC), "it holds no event", b"\xff"),
        (4, 7, "damaged", None, "damaged", None),
    ]
    assert batch.column("taken_by").to_pylist() == ["b1", "b1"]


def test_few_columns_are_enough() -> None:
    few = pa.record_batch({"source": ["feed"], "id": ["q1"], "type": ["market.quote"], "data": ['{ "price":\n 100}']})
    assert events_of(few) == [QUOTE.replace(data={"price": 100})]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "[1]"}, "row 0: data: must be a JSON object"),
        ({"data": None}, "row 0: data: must be a JSON object"),
        ({"data": '{"a": 1, "a": 2}'}, "row 0: data: the name 'a' is there twice in one JSON object"),
        ({"data": '{"a": 9223372036854775808}'}, "row 0: data.a: an integer beyond 64 bits"),
        ({"data": "{"}, "row 0: data: no JSON text"),
        ({"data": '{"a":' * 100_000}, "row 0: data: the JSON text is nested too deep"),
        ({"data": {"a": 1}}, "data: the column is struct<a: int64>, not string"),
        ({"id": None}, "row 0: id: must be a string, not null"),
        ({"type": ""}, "row 0: type: must not be empty"),
        ({"priority": 12}, "row 0: priority: a priority is an integer from 0 to 9"),
        ({"extensions": '{"A": 1}'}, "row 0: extensions: an extension's name"),
        ({"extensions": "1"}, "row 0: extensions: must be a JSON object"),
        ({"causes": [{"source": "a", "id": None}]}, "row 0: causes[0]: must be a string, not null"),
        ({"causes": [None]}, "row 0: causes: must be a pair of strings"),
        ({"seq": 0}, "row 0: seq: a sequence number is an integer from 1"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_a_row_that_is_no_event_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        events_of(row(**changes))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "texts", [['{"a":1}\n{"b":2}', ""], ['{"a":1}{"b":2}', ""], ['{"a":', "1}", '{"b":2} {"c":3}']], ids=repr
)
def test_lines_that_make_up_for_one_another_are_not_taken_for_rows(texts: list[str]) -> None:
    tricky = pa.Table.from_batches([row(data=text) for text in texts])
    with pytest.raises(InvalidEvent, match="row 0: data: no JSON text"):
        events_of(tricky)


def test_a_table_without_what_an_event_needs_is_refused() -> None:
    with pytest.raises(InvalidEvent, match="missing: id, data"):
        events_of(pa.record_batch({"source": ["a"], "type": ["b"]}))


def test_events_that_nobody_took_have_no_position() -> None:
    with pytest.raises(InvalidEvent, match="a row has none"):
        taken_of(batch_of([QUOTE]))
