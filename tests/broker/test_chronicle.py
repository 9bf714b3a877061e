"""What a broker remembers of what it did, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.broker import chronicle
from vestnik.broker.chronicle import Chronicle
from vestnik.broker.effects import Append, Appended, Gone, Lapsed, NotAppended, Send, Tick
from vestnik.wire.messages import (
    Delivery,
    Notify,
    Publish,
    Refusal,
    Refused,
    Subscribe,
    Unsubscribe,
)
from vestnik.wire.origins import Origin, Routed

ORIGIN = Origin("b", 1)
WANTED = Filter.parse("x > 1")


def event(number: int) -> Event:
    return Event("t", {"x": number}, source="s", id=f"e{number}", stream=("b", "s"), seq=number + 1)


def subscribe(name: str = "n", **terms: Any) -> Subscribe:
    return Subscribe(name, WANTED, **terms)


def test_the_oldest_are_forgotten_and_it_is_known_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "EVENTS", 10)
    known = Chronicle(now=0.5)
    for batch in range(10):
        known.note(Routed(ORIGIN, tuple(event(4 * batch + n) for n in range(4))), "b2", [], float(batch))
    assert known.passed == 40 and known.since == 7.0
    assert known.sightings("e0") == [] and [s.at for s in known.sightings("e39")] == [9.0]
    known.note(Routed(ORIGIN, tuple(map(event, range(40, 60)))), "b2", [], 10.0)
    assert len(known.sightings("e59")) == 1, "one message is remembered, however large"


def test_large_events_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "BYTES", 1_000_000)
    known = Chronicle(now=0.0)
    for number in range(10):
        known.note(Routed(ORIGIN, (event(number).replace(data={"x": [{}] * 5_000}),)), "b2", [], float(number))
    found = [number for number in range(10) if known.sightings(f"e{number}")]
    assert found == [7, 8, 9] and known.since == 6.0
    known.note(Routed(ORIGIN, (event(10).replace(data={"x": [{}] * 50_000}),)), "b2", [], 10.0)
    assert len(known.sightings("e10")) == 1, "one message is remembered, however large"


def test_what_was_refused_is_remembered_and_what_was_taken_once() -> None:
    known = Chronicle(now=0.0)
    good, bad = event(1), event(2)
    append = Append("p", (good,), 1, (Refusal("e2", "no right", "s"),))
    known.note(Publish((good, bad), request=1), "p", [append], 1.0)
    known.note(Appended(append), "b", [], 1.0)
    assert [(s.fate, s.reason, s.sender) for s in known.sightings("e2")] == [("refused", "no right", "p")]
    assert [s.fate for s in known.sightings("e1", "s")] == ["taken", ""] and known.sightings("e1", "other") == []
    known.note(NotAppended(append, "the disk is full"), "b", [], 2.0)
    assert known.sightings("e1")[-1].reason == "the disk is full"


def test_since_when_a_subscription_is_there_and_why_it_is_not() -> None:
    known = Chronicle(now=0.0)
    known.note(subscribe("a", lease=9.0), "c", [], 1.0)
    known.note(subscribe("a", lease=9.0), "c", [], 2.0)
    assert known.made["c"]["a"].at == 1.0, "it was renewed"
    known.note(Subscribe("a", Filter.parse("x > 2"), 9.0), "c", [], 3.0)
    assert known.made["c"]["a"].at == 3.0, "it was changed"
    known.note(subscribe("b"), "c", [], 3.0)
    known.note(subscribe("x"), "c", [Send("c", Refused(1, "no"))], 3.0)
    known.note(subscribe("x"), "nobody", [Send("nobody", Refused(1, "no"))], 3.0)
    assert known.made.keys() == {"c"}
    known.note(Gone("c"), "b", [], 4.0)
    known.note(Tick(), "b", [Lapsed("c", "a", WANTED)], 5.0)
    known.note(subscribe("d"), "c", [], 6.0)
    known.note(Unsubscribe("d"), "c", [], 7.0)
    assert [(one.name, one.at, one.reason.split(":")[0]) for one in known.ended] == [
        ("b", 4.0, "its client disconnected, and it had no lease"),
        ("a", 5.0, "its lease ended"),
        ("d", 7.0, "unsubscribed"),
    ]
    assert known.made == {}


def test_events_with_very_many_notifications_are_forgotten_sooner() -> None:
    known = Chronicle(now=0.0)
    numbers = tuple((epoch, 1) for epoch in range(chronicle.BYTES // chronicle.NUMBER // 10))
    for number in range(100):
        notify = Notify((Delivery(event(number), numbers),))
        known.note(Routed(ORIGIN, (event(number),)), "b2", [Send("c", notify)], float(number))
    assert known.sent == 100 and known.since > 80.0 and len(known.sightings("e99")) == 1
