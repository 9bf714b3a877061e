"""What a message holds is counted without reading it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from vestnik.errors import InvalidFrame
from vestnik.wire.bounds import elements, length_of, values_in

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner), max_leaves=60
)


def count(value: Any) -> int:
    if isinstance(value, list):
        return 1 + sum(map(count, value))
    return 1 + sum(1 + count(inner) for inner in value.values()) if isinstance(value, dict) else 1


@given(DATA)
def test_values_are_counted(value: Any) -> None:
    packed = msgpack.encode(value)
    assert values_in(packed, 10_000) == count(value)
    assert values_in(packed, 3) > 3 or count(value) <= 3


@given(st.binary())
def test_what_is_no_messagepack_is_counted_as_far_as_it_goes(data: bytes) -> None:
    assert values_in(data, 1000) >= 0


def test_long_things_are_counted() -> None:
    value = [
        list(range(70_000)),
        {str(n): n for n in range(70_000)},
        "x" * 70_000,
        b"y" * 70_000,
        "z" * 300,
        b"w" * 300,
    ]
    assert values_in(msgpack.encode(value), 10**6) == count(value)
    assert values_in(msgpack.encode([None] * 10**6), 5) > 5


@given(st.lists(st.none(), max_size=40))
def test_the_head_of_a_list_says_its_length(value: list[None]) -> None:
    assert length_of(msgpack.encode(value)) == len(value)
    assert length_of(msgpack.encode({"a": 1})) == length_of(b"") == 0
    assert length_of(msgpack.encode([0] * 70_000)) == 70_000


@pytest.mark.parametrize("value", [[], [1], [None] * 20, [{"a": [1]}, "x" * 300, b"y", 2.5], [[1]] * 70_000])
def test_a_list_is_split_into_its_elements(value: list[object]) -> None:
    assert [msgpack.decode(one) for one in elements(msgpack.encode(value))] == value


def test_a_list_is_split_however_deep_it_is() -> None:
    deep = b"\x91" * 50_000 + b"\x90"
    assert elements(b"\x93\x01" + deep + b"\x02") == [b"\x01", deep, b"\x02"]


@pytest.mark.parametrize("packed", [b"", b"\x01", b"\x80", b"\x92\x01", b"\x91\xa5a", b"\xdc\x00", b"\x91\x91"])
def test_what_is_no_list_is_not_split(packed: bytes) -> None:
    with pytest.raises(InvalidFrame):
        elements(packed)
