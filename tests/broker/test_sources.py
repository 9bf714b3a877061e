"""A broker remembers a bounded part of its sources, and forgets first what does the least harm."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from vestnik import Event
from vestnik.broker import sources
from vestnik.broker.streams import Acceptance
from vestnik.model.streams import STREAMS, WINDOW, Arrivals, Handed

PER_SOURCE = 1_500
"""Bytes that a source may take: its name, its last seq and an id."""


def published(acceptance: Acceptance, source: str, id: str, *, answered: bool = True) -> int | None:
    """The seq that an event gets; None if it is a repeat."""
    fresh, _ = acceptance.sifted([Event("t", source=source, id=id)], answered=answered)
    return acceptance.stamp(fresh)[0].seq if fresh else None


def grown(do: Callable[[int], object], count: int) -> int:
    """The bytes that are kept of doing something with each number up to `count`."""
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(count):
            do(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def event(number: int) -> Event:
    return Event("t", source=f"https://example.org/sensors/{number}", id=str(number)).stamped("b", 1)


def test_many_sources_take_no_more_memory_than_some() -> None:
    acceptance, arrivals, handed = Acceptance("b"), Arrivals(), Handed()

    def publish(number: int) -> None:
        published(acceptance, f"https://example.org/sensors/{number}", str(number), answered=False)

    for do in (publish, lambda n: arrivals.is_new(event(n)), lambda n: handed.takes(event(n))):
        assert grown(do, 3 * STREAMS) < 2 * STREAMS * PER_SOURCE
    assert len(acceptance._sources) == STREAMS


def test_no_seq_is_given_twice_whatever_is_forgotten() -> None:
    acceptance = Acceptance("b", 1_000)
    last: dict[str, int] = {}
    for number in range(3 * STREAMS):
        for place, source in enumerate((f"s{number}", f"s{number % 7}", f"s{number // 2}")):
            seq = published(acceptance, source, f"{number} {place}") or 0
            assert seq > last.get(source, 999)
            last[source] = seq


def test_a_source_that_goes_on_is_known_however_many_others_come() -> None:
    acceptance = Acceptance("b")
    for number in range(2 * STREAMS):
        published(acceptance, f"s{number}", "one")
        if number % (STREAMS // 2) == 0:
            assert (published(acceptance, "steady", "first") is None) == (number > 0)


def test_the_last_ids_of_a_source_are_known() -> None:
    acceptance = Acceptance("b")
    for number in range(5 * sources.IDS):
        assert published(acceptance, "s", str(number)) is not None
        assert published(acceptance, "s", str(max(0, number - sources.IDS))) is None
    assert len(acceptance._sources.of("s")) <= 2 * sources.IDS


def test_busy_sources_forget_of_their_own_before_others_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_IDS", 20 * WINDOW)
    monkeypatch.setattr(sources, "IDS", 4 * WINDOW)
    acceptance = Acceptance("b")
    for number in range(WINDOW):
        published(acceptance, "gone for a while", str(number))
    for number in range(3 * sources.IDS):
        for busy in ("a", "b", "c", "d"):
            published(acceptance, busy, str(number))
            assert published(acceptance, busy, str(max(0, number - WINDOW // 2))) is None
    assert acceptance._sources._ids <= sources.MOST_IDS
    for number in range(WINDOW):
        assert published(acceptance, "gone for a while", str(number)) is None


def test_all_ids_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_IDS", 10 * WINDOW)
    acceptance = Acceptance("b")
    for number in range(100):
        for answered in (True, False):
            events = [Event("t", source=f"s{number}", id=f"{answered} {id}") for id in range(WINDOW)]
            acceptance.sifted(events, answered=answered)
        counted = sum(len(source) for source in acceptance._sources._known.values())
        assert counted == acceptance._sources._ids <= sources.MOST_IDS
    assert published(acceptance, "s99", "True 0") is None and published(acceptance, "s0", "True 0") is not None


def test_what_was_not_published_after_all_is_not_counted() -> None:
    acceptance = Acceptance("b")
    for number in range(10):
        one = Event("t", source="s", id=str(number))
        acceptance.sifted([one])
        acceptance.forget(one)
        acceptance.forget(one)
    assert acceptance._sources._ids == len(acceptance._sources.of("s")) == 0
