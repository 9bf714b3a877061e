"""Replays of several origins as one, with a history that has copies of the same events."""

from __future__ import annotations

from collections.abc import Iterable

from vestnik import Event, Filter
from vestnik.recovery.replays import Merge, Picks
from vestnik.wire.origins import Origin, Slice
from vestnik.wire.replays import Replay

B1, B2 = Origin("b1", 1), Origin("b2", 1)
HISTORY = Origin("history", 1)
LATE = 5_000
"""Microseconds after which an event comes to the history."""


def event(offset: int) -> Event:
    return Event("quote", source="feed", id=f"q{offset}").stamped("b1", offset)


def own(offsets: Iterable[int]) -> Slice:
    """Return a page of the log of b1, which accepts an event each millisecond."""
    events = tuple([event(offset) for offset in offsets])
    return Slice(0, events, 100, times=tuple([1_000 * (one.seq or 0) for one in events]))


def copies(offsets: Iterable[int]) -> Slice:
    """Return a page of the history, which has events at places of its own."""
    events = tuple([event(offset) for offset in offsets])
    times = tuple([1_000 * (one.seq or 0) + LATE for one in events])
    return Slice(0, events, 100, times=times, offsets=tuple(range(1, len(events) + 1)))


def picked(*pages: tuple[Origin, Slice]) -> list[str]:
    picks = Picks(Replay(last=3))
    picks.ask([origin for origin, _ in pages], ())
    for origin, page in pages:
        picks.found(origin, page)
    return [one.id for _, one in picks.picked(Filter.parse("TRUE"))]


def merged(*pages: tuple[Origin, Slice]) -> list[str]:
    merge, found = Merge(), list[str]()
    for origin, page in pages:
        merge.hold(origin, page)
    while held := [origin for origin, _ in pages if merge.holds(origin)]:
        origin, placed = merge.earliest(held)
        merge.pop(origin)
        found += [placed.event.id] if placed.event.id not in found else []
    return found


def test_what_a_history_that_lags_has_is_not_taken_for_the_latest() -> None:
    assert picked((B1, own([2, 3, 4])), (HISTORY, copies([1, 2, 3]))) == ["q2", "q3", "q4"]


def test_what_a_history_has_beyond_a_log_is_the_latest() -> None:
    assert picked((B1, own([1, 2, 3])), (HISTORY, copies([2, 3, 4]))) == ["q2", "q3", "q4"]


def test_what_only_a_history_has_counts_by_when_it_came_there() -> None:
    assert picked((B1, own([])), (HISTORY, copies([1, 2, 3, 4]))) == ["q2", "q3", "q4"]


def test_what_only_a_history_has_is_replayed_before_later_events_of_its_log() -> None:
    assert merged((B1, own([3, 4, 5])), (HISTORY, copies([1, 2, 3, 4]))) == ["q1", "q2", "q3", "q4", "q5"]


def test_a_copy_waits_for_earlier_events_of_its_log() -> None:
    assert merged((B1, own([1, 2, 4])), (HISTORY, copies([3]))) == ["q1", "q2", "q3", "q4"]


def test_an_event_that_was_published_at_two_brokers_counts_where_it_was_accepted_first() -> None:
    again = Slice(0, (event(1).stamped("b2", 7),), 8, times=(2_500,))
    assert picked((B2, again), (B1, own([1, 2, 3, 4]))) == ["q2", "q3", "q4"]
    assert picked((B1, own([1, 2, 3, 4])), (B2, again)) == ["q2", "q3", "q4"]
