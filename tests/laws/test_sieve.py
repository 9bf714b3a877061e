"""A sieve lets every packed event through that its filters match, in whichever form values are packed."""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laws.strategies import NUMBERS, STRINGS, Case, cases
from vestnik import Event, Filter
from vestnik.model.values import ValueSet, value_points
from vestnik.wire import encodings
from vestnik.wire.packing import pack, unpack
from vestnik.wire.sieve import sieve_of

ARRAYS = st.sampled_from([b"\x97", b"\xdc\x00\x07", b"\xdd\x00\x00\x00\x07"])


@given(cases(trees=2, events=4))
def test_what_matches_is_let_through(case: Case) -> None:
    filters = tuple(case.filters)
    sieve = sieve_of(filters)
    for event in case.events if sieve is not None else ():
        if any(one.matches(event) for one in filters):
            assert sieve is not None and sieve.lets_through(pack(event))


@given(cases(trees=1, events=3, single=True), st.data())
def test_what_matches_is_let_through_in_any_form(case: Case, data: st.DataObject) -> None:
    (wanted,) = case.filters
    sieve = sieve_of((wanted,))
    for event in case.events if sieve is not None else ():
        packed = packed_somehow(event, data)
        assert unpack(packed) == event
        if wanted.matches(event):
            assert sieve is not None and sieve.lets_through(packed)


@given(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=40), st.sampled_from(NUMBERS), st.data())
@example([0], -0.0, None).via("minus zero is zero")
def test_numbers_of_a_set_are_matched_in_any_form(points: list[Any], value: Any, data: st.DataObject | None) -> None:
    for found in (value_points(points), value_points(points).complement(), between(points[0], points[-1])):
        if found.numbers and found.contains(value):
            packed = struct.pack(">Bd", 0xCB, value) if data is None else packed_number(value, data)
            assert re.fullmatch(encodings.numbers(found.numbers), packed, re.DOTALL)


@given(st.lists(st.text(max_size=3) | st.sampled_from(STRINGS), min_size=1), st.text(max_size=3), st.data())
def test_strings_of_a_set_are_matched_in_any_form(points: list[str], value: str, data: st.DataObject) -> None:
    for found in (value_points(list(points)), value_points(list(points)).complement(), between(*sorted(points)[:2])):
        for text in (value, *points):
            if text in found.strings and is_text(text):
                packed = packed_text(text, data)
                assert re.match(encodings.strings(found.strings), packed, re.DOTALL)


def between(low: Any, high: Any = "\U0010ffff") -> ValueSet:
    low, high = sorted([low, high])
    return Filter.parse(f"a BETWEEN {literal(low)} AND {literal(high)}", limits=None).region.boxes[0].sets[0][1]


def literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def is_text(text: str) -> bool:
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:
        return False


@pytest.mark.parametrize(
    ("wanted", "other"),
    [
        ("symbol = 'ACME'", {"symbol": "ACM"}),
        ("symbol = 'ACME'", {"name": "ACME"}),
        ("symbol IN ('ACME', 'INIT')", {"symbol": "ACIT"}),
        ("symbol LIKE 'AC%'", {"symbol": "ADME"}),
        ("symbol >= 'AC' AND symbol < 'AD'", {"symbol": "AB"}),
        ("price > 100 AND symbol != 'X'", {"price": 99.5, "symbol": "Y"}),
        ("price BETWEEN 10 AND 20", {"price": 21}),
        ("price = 5", {"price": 5.5}),
        ("price = -5", {"price": 5}),
        ("halted = TRUE", {"halted": False}),
        ("EXISTS halted", {"stopped": True}),
        ("a.b.c = 1", {"a": {"b": {"c": 2}}}),
        ("ANY tags = 'urgent'", {"tags": ["normal"]}),
        ("ANY items (kind = 'cpu' AND price < 100)", {"items": [{"kind": "gpu", "price": 5}]}),
        ("type IS market.quote", {}),
        ("source = 'nyse'", {}),
        ("subject GLOB '/a/*' AND price = 7", {"price": 8}),
        ("priority > 6", {}),
        ("symbol = 'ACME' OR price > 100", {"symbol": "INIT", "price": 99}),
    ],
)
def test_what_cannot_match_is_not_let_through(wanted: str, other: dict[str, Any]) -> None:
    sieve = sieve_of((Filter.parse(wanted),))
    assert sieve is not None
    assert not sieve.lets_through(pack(Event("t", other, source="s", id="i").stamped("b", 7)))


@pytest.mark.parametrize("wanted", ["TRUE", "NOT a = 1", "a = 1 OR NOT EXISTS b", "priority < 5", "seq > 5"])
def test_without_a_clue_there_is_no_sieve(wanted: str) -> None:
    assert sieve_of((Filter.parse(wanted),)) is None


def packed_somehow(event: Event, data: st.DataObject) -> bytes:
    """Pack an event as no packer of ours does."""
    seldom = {} if event.seldom is None else {name: getattr(event, name) for name in event.seldom.__struct_fields__}
    said = {name: value for name, value in seldom.items() if value not in (None, (), {})}
    fields = (event.type, event.source, event.id, event.body, said or None, event.broker, event.seq)
    return data.draw(ARRAYS) + b"".join(packed_value(value, data) for value in fields)


def packed_value(value: Any, data: st.DataObject) -> bytes:
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, str):
        return packed_text(value, data)
    if isinstance(value, int | float):
        return packed_number(value, data)
    if isinstance(value, dict):
        inner = [part for pair in value.items() for part in pair]
        return b"\xde" + len(value).to_bytes(2, "big") + b"".join(packed_value(one, data) for one in inner)
    return b"\xdc" + len(value).to_bytes(2, "big") + b"".join(packed_value(one, data) for one in value)


def packed_text(value: str, data: st.DataObject) -> bytes:
    packed = value.encode()
    size = len(packed)
    heads = [b"\xd9" + bytes([size]), b"\xda" + size.to_bytes(2, "big"), b"\xdb" + size.to_bytes(4, "big")]
    return data.draw(st.sampled_from([*([bytes([0xA0 + size])] if size < 32 else []), *heads])) + packed


def packed_number(value: Any, data: st.DataObject) -> bytes:
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    forms = [(0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q"), (0xD0, "b"), (0xD1, "h"), (0xD2, "i"), (0xD3, "q")]
    found = [struct.pack("b", value)] if -32 <= value < 128 else []
    for form, code in forms:
        try:
            found.append(struct.pack(f">B{code}", form, value))
        except struct.error:
            continue
    return data.draw(st.sampled_from(found))
