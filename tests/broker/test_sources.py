"""A broker remembers a bounded part of its sources, and forgets first what does the least harm."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from vestnik import Event
from vestnik.broker import sources
from vestnik.broker.acceptance import Acceptance
from vestnik.model.streams import STREAMS, WINDOW

PER_SOURCE = 1_500
"""Bytes that a source may take: its name and an id."""


def is_fresh(acceptance: Acceptance, source: str, id: str, *, answered: bool = True) -> bool:
    """Publish an event; return whether it is no repeat."""
    fresh, _ = acceptance.sifted([Event("t", source=source, id=id)], answered=answered)
    return bool(fresh)


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


def test_many_sources_take_no_more_memory_than_some() -> None:
    acceptance = Acceptance()

    def publish(number: int) -> None:
        is_fresh(acceptance, f"https://example.org/sensors/{number}", str(number), answered=False)

    assert grown(publish, 3 * STREAMS) < 2 * STREAMS * PER_SOURCE
    assert len(acceptance._sources) == STREAMS


def test_a_source_that_goes_on_is_known_however_many_others_come() -> None:
    acceptance = Acceptance()
    for number in range(2 * STREAMS):
        is_fresh(acceptance, f"s{number}", "one")
        if number % (STREAMS // 2) == 0:
            assert is_fresh(acceptance, "steady", "first") == (number == 0)


def test_the_last_ids_of_a_source_are_known() -> None:
    acceptance = Acceptance()
    for number in range(5 * sources.IDS):
        assert is_fresh(acceptance, "s", str(number))
        assert not is_fresh(acceptance, "s", str(max(0, number - sources.IDS)))
    assert len(acceptance._sources.of("s")) <= 2 * sources.IDS


def test_busy_sources_forget_of_their_own_before_others_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_IDS", 20 * WINDOW)
    monkeypatch.setattr(sources, "IDS", 4 * WINDOW)
    acceptance = Acceptance()
    for number in range(WINDOW):
        is_fresh(acceptance, "gone for a while", str(number))
    for number in range(3 * sources.IDS):
        for busy in ("a", "b", "c", "d"):
            is_fresh(acceptance, busy, str(number))
            assert not is_fresh(acceptance, busy, str(max(0, number - WINDOW // 2)))
    assert acceptance._sources._ids <= sources.MOST_IDS
    for number in range(WINDOW):
        assert not is_fresh(acceptance, "gone for a while", str(number))


def test_all_ids_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_IDS", 10 * WINDOW)
    acceptance = Acceptance()
    for number in range(100):
        for answered in (True, False):
            events = [Event("t", source=f"s{number}", id=f"{answered} {id}") for id in range(WINDOW)]
            acceptance.sifted(events, answered=answered)
        counted = sum(len(source) for source in acceptance._sources._known.values())
        assert counted == acceptance._sources._ids <= sources.MOST_IDS
    assert not is_fresh(acceptance, "s99", "True 0") and is_fresh(acceptance, "s0", "True 0")


def test_what_was_not_published_after_all_is_not_counted() -> None:
    acceptance = Acceptance()
    for number in range(10):
        one = Event("t", source="s", id=str(number))
        acceptance.sifted([one])
        acceptance.forget(one)
        acceptance.forget(one)
    assert acceptance._sources._ids == len(acceptance._sources.of("s")) == 0
