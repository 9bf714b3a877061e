"""Codes keep the order of values, and tell apart what they say they do."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from vestnik.matching.single.codes import GREATEST, LEAST, NUMBERS, STRINGS, number_code, string_code
from vestnik.matching.single.spans import CONTAINS, FORWARD, SURE, UNSURE_AT_ENDS, spans_of
from vestnik.model.cuts import number_range, string_range
from vestnik.model.strings import StringSet
from vestnik.model.values import ValueSet

EDGES = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 5e-324, -5e-324, 1.7e308, -1.7e308, 2.0**-255]
EDGES += [2.0**256, -(2.0**256), 0.1, 1 / 3, float(2**60)]
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(EDGES),
    st.builds(lambda edge, step: int(edge) + step, st.sampled_from([2**53, 2**62, -(2**53)]), st.integers(-3, 3)),
)
strings = st.text(st.sampled_from("ab\0é\U0010ffff"), max_size=9) | st.text(max_size=9)


def keeps_order(one: Any, other: Any, a: int, b: int) -> None:
    if one == other:
        assert a == b
    else:
        low, high = (a, b) if one < other else (b, a)
        assert low < high or (low == high and low & 1)


@given(numbers, numbers)
@example(0.0, -0.0)
def test_numbers(one: float, other: float) -> None:
    a, b = number_code(one), number_code(other)
    assert NUMBERS < a < 0 and NUMBERS < b < 0
    keeps_order(one, other, a, b)


@given(strings, strings)
def test_strings(one: str, other: str) -> None:
    a, b = string_code(one), string_code(other)
    assert STRINGS <= a < GREATEST and STRINGS <= b < GREATEST
    keeps_order(one, other, a, b)


@given(st.integers(-(2**53), 2**53) | st.floats(2.0**-200, 2.0**200))
def test_everyday_numbers_have_codes_of_their_own(value: float) -> None:
    assert not number_code(value) & 1


def settled(values: ValueSet, code: int) -> bool | None:
    """What spans say of a code: in, out, or in doubt."""
    (spans,) = spans_of(values)
    assert spans.view == FORWARD and spans.doubt in (SURE, UNSURE_AT_ENDS)
    for low, high in spans.spans:
        if low <= code <= high:
            return None if spans.doubt == UNSURE_AT_ENDS and code & 1 and code in (low, high) else True
    return False


@given(numbers, numbers, st.booleans(), st.booleans(), numbers)
def test_spans_of_numbers_are_right_or_in_doubt(
    low: float, high: float, open_low: bool, open_high: bool, value: float
) -> None:
    for bounds in ((low, high), (low, None), (None, high)):
        values = ValueSet(numbers=number_range(*bounds, open_low=open_low, open_high=open_high))
        if values:
            assert settled(values, number_code(value)) in (None, values.contains(value))


@given(strings, strings, strings)
def test_spans_of_strings_are_right_or_in_doubt(low: str, high: str, value: str) -> None:
    for cuts in (string_range(low, high), string_range(low, None), string_range(low, low + "\0")):
        values = ValueSet(strings=StringSet(cuts))
        if values:
            assert settled(values, string_code(value)) in (None, values.contains(value))


def test_what_strings_contain_is_said_apart() -> None:
    spans, content = spans_of(ValueSet(strings=StringSet.like("%ab%")))
    assert (spans.doubt, content.doubt, content.spans) == (SURE, CONTAINS, [(0x6162, 2)])
    assert LEAST < NUMBERS < 0 < STRINGS < GREATEST
