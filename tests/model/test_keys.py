"""Which values a filter can ask for."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.model.keys import having, values_at

KEY = ("data", "symbol")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("symbol = 'A'", {"A"}),
        ("symbol IN ('A', 'B', 3) AND price > 1", {"A", "B", 3}),
        ("symbol = 'A' OR symbol = 2.5 AND price > 1", {"A", 2.5}),
        ("symbol = TRUE OR symbol IS NULL", {True}),
        ("NOT EXISTS symbol", set()),
        ("FALSE", set()),
        ("TRUE", None),
        ("price > 1", None),
        ("symbol LIKE 'A%'", None),
        ("symbol > 3", None),
        ("symbol BETWEEN 1 AND 2", None),
        ("symbol IS LIST", None),
        ("symbol.part = 'A'", None),
        ("symbol != 'A'", None),
        ("symbol = 'A' OR price > 1", None),
    ],
)
def test_values_at_a_path(text: str, values: set[Any] | None) -> None:
    assert values_at(Filter.parse(text), KEY) == values


def test_the_events_with_a_value() -> None:
    assert having(KEY, "A") == Filter.parse("symbol = 'A'")
    assert not having(KEY, 1).matches(Event("t", {"symbol": True}))
