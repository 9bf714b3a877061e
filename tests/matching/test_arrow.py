"""Arrow batches: an Arrow null is missing, whatever the type of the column."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event, Filter, InvalidEvent
from vestnik.matching import compile_filters
from vestnik.matching.batch import arrow
from vestnik.matching.batch.arrow_values import read_document

TEXTS = [
    "n = 9007199254740993",
    "n > 9007199254740992",
    "n != 5 OR s = 'a'",
    "NOT n BETWEEN 2 AND 7",
    "x < 0.5",
    "x = 3",
    "NOT EXISTS x",
    "EXISTS m",
    "m.a = 1 AND m.b.c LIKE '%b%'",
    "NOT m.a = 1",
    "m.b.c > 'ab' OR m.b IS MAP",
    "s IN ('a', 'é', '')",
    "s LIKE 'a%' OR s MATCHES '.*[a-c]'",
    "NOT s LIKE '%a'",
    "b = TRUE",
    "b != TRUE",
    "ANY l = 2",
    "ALL l < 5",
    "NOT ANY l (@ > 1 AND @ < 4)",
    "ANY p (k = 'a' AND v > 2)",
    "ALL p (EXISTS k)",
    "x IS NUMBER AND n IS NUMBER",
    "n IS STRING OR l IS LIST AND NOT l = 3",
    "TRUE",
]
WORDS = st.sampled_from(["", "a", "ab", "abc", "é", "b", "\U0010ffff"])
WHOLE = st.sampled_from([1, 2, 5, 7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)])


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


ROWS = st.fixed_dictionaries(
    {
        "n": optional(WHOLE),
        "x": optional(st.sampled_from([0.25, 0.5, 3.0, -1e300])),
        "s": optional(WORDS),
        "b": optional(st.booleans()),
        "l": optional(st.lists(st.integers(0, 6), max_size=3)),
        "m": optional(
            st.fixed_dictionaries({"a": optional(WHOLE), "b": optional(st.fixed_dictionaries({"c": optional(WORDS)}))})
        ),
        "p": optional(st.lists(st.fixed_dictionaries({"k": optional(WORDS), "v": optional(WHOLE)}), max_size=3)),
    }
)
SCHEMA = pa.struct(
    {
        "n": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "l": pa.list_(pa.int64()),
        "m": pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.string()})}),
        "p": pa.list_(pa.struct({"k": pa.string(), "v": pa.int64()})),
    }
)
FILTERS = {text: Filter.parse(text) for text in TEXTS}
NESTED = compile_filters(FILTERS)
FLAT = compile_filters(FILTERS, layout="flat")


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def matched(compiled: Any, batch: Any) -> list[set[str]]:
    return list(map(set, compiled.ids_by_event(compiled.match_batch(batch))))


def wanted(rows: list[dict[str, Any]]) -> list[set[str]]:
    events = [Event("t", without_nulls(row)) for row in rows]
    return [{text for text, found in FILTERS.items() if found.matches(event)} for event in events]


@given(st.lists(ROWS, max_size=5), st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]), st.data())
def test_structs_and_flat_columns_agree_with_events(rows: list[dict[str, Any]], text: pa.DataType, data: Any) -> None:
    column = pa.array(rows, SCHEMA)
    start = data.draw(st.integers(0, len(rows)))
    sliced = column.slice(start)
    want = wanted(rows[start:])
    batch = pa.RecordBatch.from_pydict({"type": pa.array(["t"] * len(sliced)), "data": sliced})
    assert matched(NESTED, batch) == want
    flat = {field.name: sliced.field(field.name) for field in SCHEMA}
    flat["s"] = flat["s"].cast(text)
    assert matched(FLAT, pa.RecordBatch.from_pydict(flat)) == want
    flat["s"] = sliced.field("s").dictionary_encode()
    flat["n"] = flat["n"].dictionary_encode()
    assert matched(FLAT, pa.RecordBatch.from_pydict(flat)) == want


def test_a_missing_column_is_missing() -> None:
    batch = pa.RecordBatch.from_pydict({"n": pa.array([1, None])})
    assert matched(FLAT, batch) == wanted([{"n": 1}, {}])
    assert matched(NESTED, pa.RecordBatch.from_pydict({"type": pa.array(["t"])})) == wanted([{}])


def test_columns_that_are_not_those_of_events_are_noticed() -> None:
    with pytest.raises(InvalidEvent, match="layout='flat'"):
        NESTED.count_batch(pa.RecordBatch.from_pydict({"n": pa.array([1, None])}))
    assert counts("source = 'a'", pa.array(["a"]), "source", "event") == [1]


def test_a_null_struct_hides_what_is_below_it() -> None:
    inner = pa.array([1, 1], pa.int64())
    hidden = pa.StructArray.from_arrays([inner], ["a"], mask=pa.array([True, False]))
    batch = pa.RecordBatch.from_pydict({"m": hidden})
    assert matched(FLAT, batch) == wanted([{}, {"m": {"a": 1}}])


def counts(text: str, column: Any, name: str = "v", layout: str = "flat") -> list[int]:
    compiled = compile_filters({"f": Filter.parse(text)}, layout=layout)
    return list(compiled.count_batch(pa.RecordBatch.from_pydict({name: column})).tolist())


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint16(), pa.uint64(), pa.float32(), pa.float64()])
def test_every_width_of_number(kind: pa.DataType) -> None:
    assert counts("v > 1", pa.array([1, 2, None, 3], kind)) == [0, 1, 0, 1]


def test_nan_and_infinities_are_missing() -> None:
    column = pa.array([math.nan, math.inf, -math.inf, 1.0])
    assert counts("EXISTS v", column) == [0, 0, 0, 1]
    assert counts("NOT v = 1", column) == [1, 1, 1, 0]


def test_times_are_microseconds() -> None:
    when = datetime(2024, 5, 1, 12, tzinfo=UTC)
    text = "v = TIMESTAMP '2024-05-01T12:00:00Z'"
    for unit in ("s", "ms", "us", "ns"):
        assert counts(text, pa.array([when, None], pa.timestamp(unit, "UTC"))) == [1, 0]
    fine = pa.array([1_000, 1_999, -1, None], pa.timestamp("ns"))
    assert counts("v = 1", fine) == [1, 1, 0, 0]
    assert counts("v = -1", fine) == [0, 0, 1, 0]
    assert counts("v = TIMESTAMP '2024-05-01T00:00:00Z'", pa.array([date(2024, 5, 1)])) == [1]
    assert counts("time >= TIMESTAMP '2024-01-01T00:00:00Z'", pa.array([when, None]), "time", "event") == [1, 0]


def test_a_map_column_is_a_map() -> None:
    column = pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64()))
    assert counts("v.a = 1", column) == [1, 0, 0]
    assert counts("v IS MAP", column) == [1, 0, 1]


def test_a_json_column_keeps_null_and_missing_apart() -> None:
    column = pa.array(['{"a": null}', "{}", None, '{"a": [1, "x"]}', '"text"'])
    for kind in (column, column.cast(pa.json_(pa.string()))):
        assert counts("a IS NULL", kind, "data", "event") == [1, 0, 0, 0, 0]
        assert counts("NOT EXISTS a", kind, "data", "event") == [0, 1, 1, 0, 1]
        assert counts("ANY a = 'x'", kind, "data", "event") == [0, 0, 0, 1, 0]
    assert counts("v.a IS NULL", column.cast(pa.json_(pa.string()))) == [1, 0, 0, 0, 0]


def test_null_elements_are_null() -> None:
    column = pa.array([[1, None], [1], None], pa.list_(pa.int64()))
    assert counts("ANY v IS NULL", column) == [1, 0, 0]
    assert counts("ALL v = 1", column) == [0, 1, 0]


@pytest.mark.parametrize("neighbours", [[], [1.0], [None], [None, 1.0]])
@pytest.mark.parametrize("element", [math.nan, math.inf, -math.inf])
def test_an_element_that_is_no_number_is_null_whatever_is_beside_it(element: float, neighbours: list[Any]) -> None:
    column = pa.array([[element, *neighbours]])
    assert counts("ANY v IS NULL", column) == [1]
    assert counts("ALL v (@ IS NULL OR @ = 1)", column) == [1]
    assert counts("ANY v > 5 OR ANY v < -5", column) == [0]


@pytest.mark.parametrize("beside", [[], [None]])
def test_elements_hold_times_and_lists(beside: list[Any]) -> None:
    when = datetime(2024, 5, 1, tzinfo=UTC)
    column = pa.array([[{"at": when, "x": math.nan, "l": [[1, None], None]}, *beside]])
    assert counts("ANY v (at = TIMESTAMP '2024-05-01T00:00:00Z')", column) == [1]
    assert counts("ANY v (EXISTS x)", column) == [0]
    assert counts("ANY v (ANY l (@ IS LIST AND NOT @ IS NULL) AND ANY l IS NULL)", column) == [1]


def test_what_is_inside_a_map() -> None:
    inner = pa.struct({"at": pa.timestamp("ns"), "x": pa.float64(), "l": pa.list_(pa.float64())})
    row = {"at": 1_999, "x": math.inf, "l": [math.nan, None, 2.0]}
    column = pa.array([[("a", row), ("b", None)]], pa.map_(pa.string(), inner))
    assert counts("v.a.at = 1 AND NOT EXISTS v.a.x AND NOT EXISTS v.b", column) == [1]
    assert counts("ANY v.a.l = 2 AND ALL v.a.l (@ = 2 OR @ IS NULL)", column) == [1]


def test_a_dictionary_of_structs_or_lists() -> None:
    indices = pa.array([0, None, 1, 0])
    structs = pa.DictionaryArray.from_arrays(indices, pa.array([{"a": 1}, {"a": 2}]))
    assert counts("v.a = 1", structs) == [1, 0, 0, 1]
    lists = pa.DictionaryArray.from_arrays(indices, pa.array([[1], [2]]))
    assert counts("ANY v = 1", lists) == [1, 0, 0, 1]


def test_a_missing_priority_is_the_default() -> None:
    assert counts("priority = 4", pa.array([4, None, 5], pa.int8()), "priority", "event") == [1, 1, 0]
    assert counts("priority = 4", pa.array([4, math.nan, None, 5]), "priority", "event") == [1, 1, 1, 0]
    assert counts("priority = 4", pa.array([None]), "priority", "event") == [1]
    assert counts("priority = 4", pa.array([None, 5]).dictionary_encode(), "priority", "event") == [1, 0]
    assert counts("priority = 4", pa.array(["t"]), "type", "event") == [1]
    assert counts("priority = 4", pa.array([5])) == [1]


def test_data_may_be_a_map() -> None:
    column = pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64()))
    assert counts("a = 1", column, "data", "event") == [1, 0, 0]
    assert counts("NOT EXISTS a", pa.array([None]), "data", "event") == [1]
    assert counts("a = 1", pa.array(['{"a": 1}']).dictionary_encode(), "data", "event") == [1]


@pytest.mark.parametrize("column", [pa.array([1]), pa.array([True]), pa.array([[1]]), pa.array([1.5])])
def test_data_that_holds_no_names_is_refused(column: Any) -> None:
    with pytest.raises(InvalidEvent, match=r"^data: must be a struct, a map, JSON text or msgpack"):
        counts("a = 1", column, "data", "event")


@pytest.mark.parametrize(
    "document",
    [
        b"{",
        b"\x81\xa1a",
        '{"a": 9223372036854775808}',
        '{"l": [{"a": 1}, {"a": 9223372036854775808}]}',
        msgspec.msgpack.encode({"a": b"bytes"}),
        msgspec.msgpack.encode({"a": 2**63}),
        msgspec.msgpack.encode({"a": math.nan}),
        msgspec.msgpack.encode({1: "a"}),
        msgspec.msgpack.encode(["a"]),
    ],
)
def test_the_row_of_a_document_that_no_event_can_hold_is_named(document: str | bytes) -> None:
    good: list[Any] = ["{}" if isinstance(document, str) else b"{}"] * 2
    compiled = compile_filters({"f": Filter.parse("a = 1 OR ANY l (a = 1)")})
    batch = pa.RecordBatch.from_pydict({"data": pa.array([*good, document])})
    with pytest.raises(InvalidEvent, match=r"\(row 2\)$"):
        compiled.count_batch(batch)
    table = pa.Table.from_batches([batch.slice(0, 2), batch.slice(2)])
    with pytest.raises(InvalidEvent, match=r"\(row 2\)$"):
        compiled.count_batch(table)


def test_a_document_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Mock(return_value={})
    monkeypatch.setattr(arrow, "read_document", read)
    assert counts("a = 1 AND b = 2 OR c = 3", pa.array([b"{}", b"{}"]), "data", "event") == [0, 0]
    assert read.call_count == 2


def test_of_text_only_the_paths_in_use_are_read_where_each_row_is_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Mock(side_effect=read_document)
    monkeypatch.setattr(arrow, "read_document", read)
    asked = "a = 1 AND NOT EXISTS b.c"
    assert counts(asked, pa.array(['{"a": 1}', '{"a": 2}', '{"a": 1, "b": 5}']), "data", "event") == [1, 0, 1]
    assert read.call_count == 0
    for odd, want in [('{"a":\n1}', 1), ('{"a": 1}\n', 1), ("[]", 0), (None, 0), ("5", 0)]:
        assert counts(asked, pa.array(['{"a": 1}', odd, '{"a": 1}']), "data", "event") == [1, want, 1]
    assert read.call_count == 9


def test_rows_that_are_lines_of_each_other_stay_in_their_rows() -> None:
    with pytest.raises(InvalidEvent, match=r"\(row 0\)$"):
        counts("a = 1", pa.array(['{"a": 1}\n{"a": 1}', " "]), "data", "event")


def test_a_priority_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidEvent, match=r"^priority: .*string"):
        counts("priority = 4", pa.array(["high"]), "priority", "event")


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["v", "v"])
    inside = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    assert FLAT.count_batch(twice).tolist() == [len(wanted([{}])[0])], "nobody looks at them"
    with pytest.raises(InvalidEvent, match=r"^v: there are 2 columns of this name"):
        compile_filters({"f": Filter.parse("v = 1")}, layout="flat").match_batch(twice)
    with pytest.raises(InvalidEvent, match=r"^a: there are 2 columns of this name"):
        counts("v.a = 1", inside)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([Decimal("1.5")]),
        pa.array([b"bytes"]),
        pa.array([2**63], pa.uint64()),
        pa.array(["{"], pa.json_(pa.string())),
        pa.array([[("a", Decimal("1.5"))]], pa.map_(pa.string(), pa.decimal128(3, 1))),
        pa.array([[("a", 2**63)]], pa.map_(pa.string(), pa.uint64())),
    ],
)
def test_what_no_event_can_hold_is_refused(column: Any) -> None:
    with pytest.raises(InvalidEvent):
        counts("v = 1 OR v.a = 1", column)


def test_an_empty_batch() -> None:
    batch = pa.RecordBatch.from_pydict({field.name: pa.array([], field.type) for field in SCHEMA})
    assert matched(FLAT, batch) == []
    assert len(FLAT.count_batch(batch)) == 0
    assert len(compile_filters({}).match_batch([Event("t")])) == 0
    assert np.array_equal(compile_filters({}).count_batch([Event("t")]), [0])


def test_a_table_is_matched_batch_by_batch_and_numbered_through() -> None:
    rows = [{"n": 1}, {"n": 7}, {}]
    table = pa.concat_tables(
        [pa.table({"n": pa.array([1], pa.int64())}), pa.table({"n": pa.array([7, None], pa.int64())})]
    )
    assert matched(FLAT, table) == wanted(rows)
    assert FLAT.count_batch(table).tolist() == list(map(len, wanted(rows)))
    assert FLAT.match_batch(table).event_count == 3
    empty = table.slice(0, 0)
    assert matched(FLAT, empty) == [] and len(FLAT.count_batch(empty)) == 0
