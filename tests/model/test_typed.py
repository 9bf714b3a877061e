"""Python classes that stand for event types."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_events import fewer, texts
from vestnik.errors import InvalidEvent
from vestnik.model.events import Event
from vestnik.model.typed import TypedEvent


class Quote(TypedEvent, type="market.quote"):
    symbol: str
    price: float


class Nyse(Quote):
    lot: int = 100


class Close(Quote, type="market.quote.nyse.final.close"):
    at: datetime


class Alarm(TypedEvent):
    ward: str
    levels: dict[int, list[float]] = msgspec.field(default_factory=dict)


def test_the_type_is_given_or_derived() -> None:
    assert [kind.event_type for kind in (Quote, Nyse, Close, Alarm)] == [
        "market.quote", "market.quote.nyse", "market.quote.nyse.final.close", "alarm",
    ]  # fmt: skip


def test_a_typed_event_is_an_event() -> None:
    event = Quote("ACME", price=10.5).event(source="nyse", priority=7)
    assert event == Event("market.quote", {"symbol": "ACME", "price": 10.5}, source="nyse", priority=7, id=event.id)


@fewer
@given(texts, st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1))
def test_event_and_back_is_the_identity(symbol: str, price: float, lot: int) -> None:
    quote = Nyse(symbol, price, lot)
    assert Nyse.from_event(quote.event()) == quote
    assert Quote.from_event(quote.event()) == quote


def test_values_that_json_has_no_kind_for() -> None:
    close = Close("ACME", 1.0, at=datetime(2024, 5, 1, tzinfo=UTC))
    alarm = Alarm("A", levels={3: [0.5]})
    assert Quote.from_event(Event.from_json(close.event().to_json())) == close
    assert Alarm.from_event(Event.from_json(alarm.event().to_json())) == alarm


@pytest.mark.parametrize(
    ("event_type", "kind"),
    [
        ("market.quote", Quote),
        ("market.quote.lse", Quote),
        ("market.quote.nysex", Quote),
        ("market.quote.nyse", Nyse),
        ("market.quote.nyse.final", Nyse),
        ("market.quote.nyse.final.close", Close),
        ("market.quote.nyse.final.close.late", Close),
    ],
)
def test_the_most_specific_class_is_picked(event_type: str, kind: type[Quote]) -> None:
    event = Event(event_type, {"symbol": "ACME", "price": 1, "at": "2024-05-01T00:00:00Z", "more": None})
    assert type(Quote.from_event(event)) is kind
    assert type(TypedEvent.from_event(event)) is kind


def test_a_class_looks_only_at_itself_and_below() -> None:
    event = Event("market.quote.nyse.final.close", {"symbol": "ACME", "price": 1})
    assert type(Nyse.from_event(event)) is Nyse


def test_two_classes_for_one_type() -> None:
    class Other(TypedEvent, type="market.quote"):
        symbol: str

    event = Event("market.quote", {"symbol": "ACME", "price": 1})
    assert type(Other.from_event(event)) is Other
    assert type(Quote.from_event(event)) is Quote


@pytest.mark.parametrize(
    ("kind", "event_type", "data", "path"),
    [
        (Quote, "market", {"symbol": "ACME", "price": 1.0}, "type"),
        (Quote, "market.quotes", {"symbol": "ACME", "price": 1.0}, "type"),
        (TypedEvent, "nobody.knows", {}, "type"),
        (Quote, "market.quote", {"symbol": "ACME"}, "data"),
        (Quote, "market.quote", {"symbol": 1, "price": 1.0}, "data.symbol"),
        (Quote, "market.quote", {"symbol": "ACME", "price": "1.0"}, "data.price"),
        (Alarm, "alarm", {"ward": "A", "levels": {"1": [1.0, "b"]}}, "data.levels[...][1]"),
    ],
)
def test_events_that_do_not_fit(kind: type[TypedEvent], event_type: str, data: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        kind.from_event(Event(event_type, data))
    assert caught.value.path == path and caught.value.reason


@pytest.mark.parametrize(
    "event_type", ["market", "market.quote", "market.quotes", "other", "", "market.quote.", "market.quote..a"]
)
def test_a_subclass_stands_for_a_descendant(event_type: str) -> None:
    with pytest.raises(TypeError):

        class Wrong(Quote, type=event_type):
            pass


def test_names_that_a_field_cannot_have() -> None:
    with pytest.raises(TypeError, match="event_type"):

        class Wrong(TypedEvent, type="wrong"):
            event_type: str  # type: ignore[misc]


def test_typed_events_are_values() -> None:
    quote = Quote("ACME", 1.0)
    with pytest.raises(AttributeError):
        quote.price = 2.0
    assert quote == Quote("ACME", 1.0) and hash(quote) == hash(Quote("ACME", 1.0))
    assert quote != Nyse("ACME", 1.0)


def test_data_that_no_event_can_hold() -> None:
    with pytest.raises(InvalidEvent):
        Quote("ACME", float("nan")).event()


def test_pickling() -> None:
    close = Close("ACME", 1.0, at=datetime(2024, 5, 1, tzinfo=UTC))
    assert pickle.loads(pickle.dumps(close)) == close
