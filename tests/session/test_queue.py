"""The queue of a subscription: more urgent notifications first, but none before a cause of its event."""

from __future__ import annotations

import asyncio
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event
from vestnik.client.notifications import Gap, Notification, Waiting
from vestnik.model.envelope import MEDIUM


def item(number: int, priority: int = MEDIUM, *causes: int, gap: Gap | None = None) -> Notification:
    named = [("s", str(cause)) for cause in causes]
    event = Event("quote", {}, source="s", id=str(number), priority=priority, causes=named)
    return Notification(event, number, ("s1",), gap=gap)


def filled(*items: Notification) -> Waiting:
    queue = Waiting()
    for one in items:
        queue.put(one)
    return queue


def drained(queue: Waiting) -> list[int]:
    found = []
    while (one := queue.pop()) is not None:
        found.append(one.number)
    assert len(queue) == 0 == queue.lowest
    return found


def test_equally_urgent_ones_come_in_order() -> None:
    assert drained(filled(item(1), item(2), item(3))) == [1, 2, 3]
    assert drained(filled(item(1, 9), item(2, 9))) == [1, 2]


def test_more_urgent_ones_come_first() -> None:
    queue = filled(item(1), item(2, 9), item(3, 0), item(4, 9), item(5))
    assert (len(queue), queue.lowest) == (5, 1)
    assert drained(queue) == [2, 4, 1, 5, 3]
    queue.put(item(6, 1))
    queue.put(item(7, 1))
    assert drained(queue) == [6, 7]


def test_an_effect_waits_for_its_cause_and_those_after_it_wait_for_the_effect() -> None:
    assert drained(filled(item(1), item(2), item(3, 9, 2), item(4, 9), item(5, 8))) == [5, 1, 2, 3, 4]


def test_an_effect_does_not_wait_for_a_cause_that_comes_later_or_never() -> None:
    assert drained(filled(item(1), item(2, 9, 3, 7), item(3))) == [2, 1, 3]


def test_events_that_name_each_other_come_out_all_the_same() -> None:
    assert drained(filled(item(1, 4, 2), item(2, 9, 1), item(3, 0, 2))) == [1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(1, 12), max_size=2)), max_size=12), st.data())
def test_order_among_equals_and_among_causes_holds_whenever_notifications_are_taken(
    events: list[tuple[int, list[int]]], data: st.DataObject
) -> None:
    queue, taken, given_in = Waiting(), [], {}
    for number, (priority, causes) in enumerate(events, start=1):
        given_in[number] = priority, causes
        queue.put(item(number, priority, *causes))
        if data.draw(st.booleans()) and (found := queue.pop()) is not None:
            taken.append(found.number)
    taken += drained(queue)
    assert sorted(taken) == sorted(given_in)
    for earlier, later in combinations(taken, 2):
        if later < earlier:
            (urgent, effects), (priority, _) = given_in[earlier], given_in[later]
            assert urgent != priority and later not in effects, f"{earlier} came before {later}"


REASON = "at most so many wait"


def test_the_oldest_of_the_lowest_priority_is_dropped() -> None:
    queue = filled(item(1, 9), item(2, 0), item(3), item(4, 0))
    assert queue.drop(REASON) is None
    told = {one.number: one.gap for one in iter(queue.pop, None)}
    assert told == {1: None, 3: None, 4: Gap(1, REASON)}


def test_a_gap_that_nobody_is_left_to_tell_is_returned() -> None:
    assert filled(item(1)).drop(REASON) == Gap(1, REASON)
    queue = filled(item(1, 9), item(2, 0))
    assert queue.drop(REASON) == Gap(1, REASON) and drained(queue) == [1]


def test_what_a_dropped_notification_would_have_told_is_not_forgotten() -> None:
    queue = filled(item(1, gap=Gap(None, "the log is over")), item(2, gap=Gap(3, "the broker has them no more")))
    queue.drop(REASON)
    found = queue.pop()
    assert found is not None
    assert found.gap == Gap(None, f"the log is over; {REASON}; the broker has them no more")


async def test_who_waits_is_woken() -> None:
    queue = Waiting()
    waiting = asyncio.ensure_future(queue.next())
    await asyncio.sleep(0)
    queue.put(item(1, 9))
    assert (await waiting).number == 1
    queue.end()
    with pytest.raises(StopAsyncIteration):
        await queue.next()
