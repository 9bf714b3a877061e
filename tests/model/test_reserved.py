"""Events of the infrastructure are for those who ask for them."""

from __future__ import annotations

import pytest

from vestnik import Event, Filter
from vestnik.model.reserved import asks, is_reserved, ordinary, reaches

MADE = Event("vestnik.subscription.made", {"filter": "price > 1", "client": "c", "name": "s", "broker": "b"})
OTHER = Event("market.quote", {"price": 5, "client": "c"})

ASKING = [
    "type IS vestnik",
    "type = 'vestnik.subscription.made'",
    "type IS vestnik.subscription AND OVERLAPS(filter, 'price > 10')",
    "type IN ('vestnik.subscription.made', 'market.quote')",
    "type IS vestnik.subscription OR type IS market.quote",
    "type LIKE 'vestnik.%made'",
    "type = 'vestnik.subscription.made' OR price > 3",
]
NOT_ASKING = [
    "TRUE",
    "NOT price > 10",
    "client = 'c'",
    "NOT EXISTS replay AND client = 'c'",
    "type != 'a'",
    "type < 'w'",
    "type > 'market'",
    "type LIKE '%e'",
    "type != 'vestnik.subscription.made'",
    "source = 'local'",
]


@pytest.mark.parametrize("text", ASKING)
def test_who_names_them_asks(text: str) -> None:
    wanted = Filter.parse(text)
    assert asks(wanted) and reaches(wanted) and ordinary(wanted) == wanted


@pytest.mark.parametrize("text", NOT_ASKING)
def test_who_lets_them_in_by_the_way_does_not(text: str) -> None:
    wanted = Filter.parse(text)
    narrowed = ordinary(wanted)
    assert reaches(wanted) and not asks(wanted) and not reaches(narrowed)
    assert not narrowed.matches(MADE) and narrowed.matches(OTHER) == wanted.matches(OTHER)
    assert narrowed == ordinary(narrowed)


@pytest.mark.parametrize("text", ["price > 10", "symbol = 'A' AND NOT price > 3", "type IS market", "FALSE"])
def test_most_filters_are_left_as_they_are(text: str) -> None:
    wanted = Filter.parse(text)
    assert not reaches(wanted) and ordinary(wanted) is wanted


def test_a_mixed_filter_gets_what_it_asks_for() -> None:
    wanted = ordinary(Filter.parse("type = 'vestnik.broker.left' OR NOT price > 10"))
    assert wanted.matches(Event("vestnik.broker.left", {"broker": "b"})) and not wanted.matches(MADE)


def test_the_tree_is_reserved() -> None:
    assert is_reserved("vestnik") and is_reserved("vestnik.a") and not is_reserved("vestnikov")
