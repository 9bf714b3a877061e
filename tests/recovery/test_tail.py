"""The end of a log in memory: it reads as the disk does, and knows what only the disk has."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event, Filter, Replay
from vestnik.recovery.blocks import OVERHEAD, READER
from vestnik.recovery.pages import LogEntry, read_page
from vestnik.recovery.reader import Reader
from vestnik.recovery.tail import Tail
from vestnik.wire.origins import ReadTerms, Span
from vestnik.wire.packing import pack

ALL = Filter.all()
PLENTY = 1 << 30


def filled(tail: Tail, count: int, now: float = 0.0) -> Tail:
    """Route so many more events, one each 10 microseconds."""
    for _ in range(count):
        first, _ = tail.accept(1, now)
        event = Event("t", {"n": first}, source="s", id=str(first)).stamped("b", first)
        tail.extend([first], 10 * first, [pack(event)], [()])
    return tail


def room_for(count: int) -> int:
    entry = LogEntry.of(Event("t", {"n": 10}, source="s", id="10").stamped("b", 10), 0)
    return count * (len(entry.packed) + OVERHEAD)


def terms(start: int, since: int | None = None) -> ReadTerms:
    return ReadTerms(start, (ALL,), 1_000, since)


def test_offsets_are_given_once_and_times_never_fall() -> None:
    tail = Tail(PLENTY, latest=5_000_000)
    assert [tail.accept(3, 9.0), tail.accept(1, 2.0), tail.accept(0, 2.0)] == [
        (1, 9_000_000),
        (4, 9_000_000),
        (5, 9_000_000),
    ]
    assert tail.next == 5 and tail.routed == 1
    assert Tail(PLENTY, latest=5_000_000).accept(1, 1.0) == (1, 5_000_000)


def test_nothing_leaves_the_log_before_it_is_routed() -> None:
    tail = filled(Tail(PLENTY), 2)
    tail.accept(2, 0.0)
    page = tail.read(terms(1))
    assert page is not None and (len(page.events), page.upto) == (2, 3)
    tail.pass_over(5)
    page = tail.read(terms(1))
    assert page is not None and (len(page.events), page.upto, page.gap) == (2, 5, None), "it could not be stored"


def test_no_offset_is_routed_twice() -> None:
    tail = filled(Tail(PLENTY), 2)
    with pytest.raises(AssertionError):
        tail.extend([2], 0, [b""], [()])


def test_a_log_that_is_whole_in_memory_tells_what_it_dropped() -> None:
    tail = filled(Tail(room_for(10)), 50)
    page = tail.read(terms(1))
    assert page is not None and page.gap is not None and page.gap.first == 1 and "no data folder" in page.reason
    found = [event.seq for event in page.events]
    assert found == list(range(page.gap.end, 51)) and 8 <= len(found) <= 11


def test_the_last_event_stays_however_little_room_there_is() -> None:
    page = filled(Tail(0), 3).read(terms(1))
    assert page is not None and (page.gap, [event.seq for event in page.events]) == (Span(1, 3), [3])


def test_events_of_different_sizes_leave_as_much_as_there_is_room_for() -> None:
    """Events are dropped by the block, and a block is a small part of the room, whichever event is its first."""
    tail, room = Tail(1 << 20), 1 << 20
    for first in range(1, 201, 20):
        sizes = [10, *[15_000] * 19]
        tail.extend(range(first, first + 20), first, [b"x" * size for size in sizes], [()] * 20)
        kept = sum([len(one.packed) + OVERHEAD for one in tail.entries(Span(0, first + 20))])
        assert kept <= room and (first < 100 or kept > 0.9 * room)


def test_the_readers_that_wanted_events_take_room_and_those_that_are_the_same_take_it_once() -> None:
    room = 1 << 20
    many = [Reader(("c", str(name)), ALL, 1, 1) for name in range(1_000)]
    alike, apart = Tail(room), Tail(room)
    same = dict.fromkeys(many)
    for offset in range(1, 201):
        alike.extend([offset], offset, [b"x" * 100], [same])
        apart.extend([offset], offset, [b"x" * 100], [dict.fromkeys(many)])
    assert alike.start == 1
    assert 200 - room // (1_000 * READER) < apart.start + 2 * apart.start // 100 <= 200
    kept = {id(one) for block in apart._blocks for one in block.wanting}
    assert len(kept) * 1_000 * READER <= room
    for offset in range(201, 20_000):
        apart.extend([offset], offset, [b"x" * 100], [()])
    assert apart.far_before(0.9) > 0 and apart._wanting.size == 0, "what was dropped takes no room"


def test_older_events_are_read_from_disk() -> None:
    tail = filled(Tail(room_for(10), is_whole=False), 50)
    assert tail.read(terms(tail.start - 1)) is None
    page = tail.read(terms(tail.start))
    assert page is not None and page.gap is None and page.events[0].seq == tail.start
    assert tail.read(ReadTerms(50, (ALL,), 10, None, Replay(last=1))) is None, "nobody knows how far back they are"


def test_since_a_time_is_read_in_memory_if_all_since_then_is_there() -> None:
    tail = filled(Tail(room_for(10), is_whole=False), 50)
    page = tail.read(terms(0, since=491))
    assert page is not None and page.first == 50
    assert tail.read(terms(0, since=100)) is None
    restarted = Tail(PLENTY, 50, is_whole=False)
    assert restarted.read(terms(0, since=491)) is None, "what was accepted before this life may be later"
    assert restarted.read(terms(50)) is not None


def test_a_memory_only_log_begins_with_its_life() -> None:
    page = filled(Tail(PLENTY, 1_000), 1).read(terms(0))
    assert page is not None and (page.first, page.gap, page.upto) == (1_000, None, 1_001)


def test_the_tail_of_a_history_has_nothing() -> None:
    assert Tail(PLENTY, is_history=True).read(terms(1)) is None


def test_how_far_behind_a_reader_is() -> None:
    tail = filled(Tail(room_for(100)), 50)
    assert tail.far_before(0.6) == 0, "there is not so much"
    assert tail.far_before(0.25) == pytest.approx(26, abs=3)
    assert tail.far_before(0.1) == pytest.approx(41, abs=3)


@given(st.integers(0, 60), st.integers(1, 70), st.none() | st.integers(0, 700), st.integers(1, 20))
def test_what_is_read_in_memory_is_what_the_whole_log_has(count: int, start: int, since: int | None, room: int) -> None:
    whole, tail = filled(Tail(PLENTY), count), filled(Tail(room_for(room), is_whole=False), count)
    asked = ReadTerms(start, (ALL,), 7, since)
    page = tail.read(asked)
    assert page is None or page == read_page(whole, asked, whole.routed)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 2)), max_size=12),
    st.integers(1, 9),
    st.integers(0, 130),
    st.none() | st.integers(0, 25),
    st.integers(1, 40),
)
def test_blocks_of_several_events_read_as_the_whole_log(
    batches: list[tuple[int, int, int]], blocks: int, start: int, since: int | None, room: int
) -> None:
    """Batches have some events, after a hole of some offsets, at the time of the batch before or at a later one."""
    whole, tail, time = Tail(PLENTY), Tail(room_for(room), is_whole=False), 0
    with mock.patch("vestnik.recovery.tail.BLOCKS", blocks):
        for count, hole, later in batches:
            time += later
            offsets = range(whole.routed + hole, whole.routed + hole + count)
            packed = [pack(Event("t", {}, source="s", id=str(one)).stamped("b", one)) for one in offsets]
            for one in (whole, tail):
                one.extend(offsets, time, packed, [()] * count)
    assert list(tail.entries(Span(0, PLENTY))) == list(whole.entries(Span(tail.start, PLENTY)))
    asked = ReadTerms(start, (ALL,), 7, since)
    page = tail.read(asked)
    assert page is None or page == read_page(whole, asked, whole.routed)
