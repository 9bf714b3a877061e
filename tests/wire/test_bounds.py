"""What a message holds is counted without reading it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from vestnik.wire.bounds import length_of, values_in

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
