"""A broker remembers its recent past, up to a bound."""

from __future__ import annotations

import tracemalloc

import pytest
from msgspec import Raw

from vestnik import Event, Filter
from vestnik.broker.effects import Gone, SubscriptionChanged, SubscriptionEnded, SubscriptionMade
from vestnik.observe import chronicle
from vestnik.observe.chronicle import Chronicle
from vestnik.observe.facts import Forwarded, Given, NotStored, PageTaken, Passed, PublicationRefused, Stored
from vestnik.wire.messages import Delivery, Refusal
from vestnik.wire.origins import Origin, Routed
from vestnik.wire.packing import pack

WANTED = Filter.parse("x > 1")


def event(number: int) -> Event:
    return Event("t", {"x": number}, source="s", id=f"e{number}", stream=("b", "s"), seq=number + 1)


def test_the_oldest_are_forgotten_and_it_is_known_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "EVENTS", 10)
    known = Chronicle(now=0.5)
    for batch in range(10):
        known.take([Passed("b2", tuple(event(4 * batch + n) for n in range(4)))], float(batch))
    assert known.since == 7.0
    assert known.sightings("e0") == [] and [s.at for s in known.sightings("e39")] == [9.0]
    known.take([Passed("b2", tuple(map(event, range(40, 60))))], 10.0)
    assert len(known.sightings("e59")) == 1, "one message is remembered, however large"


def test_large_events_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "BYTES", 1_000_000)
    known = Chronicle(now=0.0)
    for number in range(10):
        known.take([Passed("b2", (event(number).replace(data={"x": "x" * 300_000}),))], float(number))
    found = [number for number in range(10) if known.sightings(f"e{number}")]
    assert found == [7, 8, 9] and known.since == 6.0
    known.take([Passed("b2", (event(10).replace(data={"x": "x" * 3_000_000}),))], 10.0)
    assert len(known.sightings("e10")) == 1, "one message is remembered, however large"
    given = Given("c", (Delivery((event(11).replace(data={"x": "x" * 300_000}),), ((7, 1),)),))
    known.take([given], 11.0)
    assert [number for number in (10, 11) if known.sightings(f"e{number}")] == [11], "what was read counts as well"


def test_an_event_whose_data_has_the_id_of_another_is_not_taken_for_it() -> None:
    known = Chronicle(now=0.0)
    other = event(1).replace(data={"about": "e2"})
    known.take([Passed("b2", (other, event(2))), Given("c", (Delivery((other, event(2)), ((7, 1),)),))], 1.0)
    (seen,) = known.sightings("e2")
    assert (seen.event, seen.notified) == (event(2), (("c", ((7, 2),)),))


def test_what_was_refused_is_remembered_and_what_was_taken_once() -> None:
    known = Chronicle(now=0.0)
    good, bad = event(1), event(2)
    known.take([PublicationRefused("p", (bad,), (Refusal("e2", "no right", "s"),))], 1.0)
    known.take([Stored("p", (good,), 900_000)], 1.0)
    assert [(s.fate, s.reason, s.sender) for s in known.sightings("e2")] == [("refused", "no right", "p")]
    assert [(s.fate, s.accepted) for s in known.sightings("e1", "s")] == [("", 0.9)]
    assert known.sightings("e1", "other") == []
    known.take([NotStored("p", (good,), "the disk is full", False)], 2.0)
    assert known.sightings("e1")[-1].reason == "the disk is full"


def test_what_is_read_again_tells_when_it_was_accepted() -> None:
    known = Chronicle(now=0.0)
    given = Given("c", (Delivery((event(2),), ((7, 1),)),))
    known.take([PageTaken("b", (event(1), event(2)), (1_000_000, 2_000_000)), given], 9.0)
    (seen,) = known.sightings("e2")
    assert (seen.at, seen.accepted, seen.fate, seen.notified) == (9.0, 2.0, "replayed", (("c", ((7, 1),)),))
    known.take([given], 10.0)
    assert [(s.at, s.sender, s.accepted) for s in known.sightings("e2")][1:] == [(10.0, "c", None)]


def test_what_is_read_from_memory_after_an_empty_page_is_remembered() -> None:
    known = Chronicle(now=0.0)
    given = Given("c", (Delivery((event(2),), ((7, 1),)),))
    known.take([PageTaken("b", (), ()), given], 9.0)
    assert [(s.sender, s.fate, s.notified) for s in known.sightings("e2")] == [("c", "replayed", (("c", ((7, 1),)),))]


def test_an_event_that_many_clients_are_given_is_kept_once() -> None:
    known, large = Chronicle(now=0.0), event(2).replace(data={"x": "x" * 100_000})
    given = [Given(f"c{number}", (Delivery((large,), ((number, 1),)),)) for number in range(100)]
    tracemalloc.start()
    known.take([PageTaken("b", (large,), (1,)), *given], 1.0)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 500_000 and len(known.sightings("e2")[0].notified) == 100
    carried = (large, event(3))
    for turn in range(50):
        known.take([Given(f"c{number}", (Delivery(carried, ((number, 1),)),)) for number in range(100)], 2.0 + turn)
    assert known.since == 0.0, "it counts once in each turn"


def test_what_is_kept_stays_packed_whoever_looks_at_what_was_sent() -> None:
    known, one = Chronicle(now=0.0), event(2).replace(data={"x": [[] for _ in range(10_000)]})
    carried = (Raw(pack(one)),)
    sent = Delivery(carried, ((7, 1),)), Routed(Origin("b", 1), carried)
    known.take([Passed("b2", (one,)), Given("c", (sent[0],)), Forwarded("b3", sent[1])], 1.0)
    tracemalloc.start()
    assert sent[0].events == sent[1].events == (one,)
    sent = ()  # type: ignore[assignment]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 50_000
    (seen,) = known.sightings("e2")
    assert (seen.onward, seen.notified) == (("b3",), (("c", ((7, 1),)),))


def test_what_is_read_in_the_turn_of_another_event_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "BYTES", 1_000_000)
    known = Chronicle(now=0.0)
    for number in range(10):
        read = tuple(event(n).replace(data={"x": "x" * 3_000}) for n in range(100 * number, 100 * number + 100))
        known.take([Passed("b2", (event(5_000),)), Given("c", (Delivery(read, ((7, 1),)),))], float(number))
    assert 5.0 < known.since < 8.0


def test_since_when_a_subscription_is_there_and_why_it_is_not() -> None:
    known = Chronicle(now=0.0)
    known.take([SubscriptionMade("c", "a", WANTED)], 1.0)
    assert known.made["c"]["a"].at == 1.0
    known.take([SubscriptionChanged("c", "a", Filter.parse("x > 2"))], 3.0)
    assert known.made["c"]["a"].at == 3.0, "it was changed"
    known.take([SubscriptionMade("c", "b", WANTED)], 3.0)
    known.take([Gone("c"), SubscriptionEnded("c", "b", "its client disconnected")], 4.0)
    known.take([SubscriptionEnded("c", "a", "its lease ended")], 5.0)
    assert [(one.name, one.at, one.reason) for one in known.ended] == [
        ("b", 4.0, "its client disconnected"),
        ("a", 5.0, "its lease ended"),
    ]
    assert known.made == {}


def test_events_with_very_many_notifications_are_forgotten_sooner() -> None:
    known = Chronicle(now=0.0)
    numbers = tuple((epoch, 1) for epoch in range(chronicle.BYTES // chronicle.NUMBER // 10))
    for number in range(100):
        given = Given("c", (Delivery((event(number),), numbers),))
        known.take([Passed("b2", (event(number),)), given], float(number))
    assert known.since > 80.0 and len(known.sightings("e99")) == 1
