"""How a log is read: from where, up to where, and what is said to be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event, Filter, Replay
from vestnik.recovery import pages
from vestnik.recovery.pages import LogEntry, LogView, parts_of, read_page
from vestnik.wire import pages as wire_pages
from vestnik.wire.origins import ENDLESS, ReadTerms, Slice, Span
from vestnik.wire.packing import pack, unpack

ALL = Filter.all()
EVEN = Filter.parse("even = true")


def event(offset: int, size: int = 0) -> Event:
    data = {"n": offset, "even": offset % 2 == 0, "fill": "x" * size}
    return Event("t", data, source="s", id=str(offset)).stamped("b", offset)


class Log(LogView):
    """A log whose events have these offsets, each accepted 10 microseconds times its offset."""

    def __init__(self, offsets: Sequence[int], start: int = 1, holes: Sequence[Span] = (), size: int = 0) -> None:
        self._entries = [LogEntry.of(event(offset, size), 10 * offset) for offset in offsets]
        self._start = start
        self._holes = holes

    @property
    def begin(self) -> int:
        return 1

    @property
    def start(self) -> int:
        return self._start

    @property
    def holes(self) -> Sequence[Span]:
        return self._holes

    def entries(self, span: Span) -> Iterator[LogEntry]:
        return (entry for entry in self._entries if max(span.first, self._start) <= entry.offset < span.end)

    def offset_since(self, time: int) -> int:
        before = [entry.offset for entry in self._entries if entry.time < time]
        if self._start > 1 and (not before or before[-1] < self._start):
            return 0
        return before[-1] + 1 if before else self._start

    def why(self, gap: Span) -> str:
        return "dropped" if gap.first < self._start else "damaged"


def offsets(page: Slice) -> list[int]:
    return [one.offset for one in page.placed()]


def test_a_page_has_what_is_wanted_and_all_that_was_routed() -> None:
    page = read_page(Log(range(1, 9)), ReadTerms(3, (EVEN,), 10), 7)
    assert (page.first, offsets(page), page.upto, page.gap) == (3, [4, 6], 7, None)
    assert page.times == (40, 60)


def test_a_page_of_nothing_says_only_where_the_log_ends() -> None:
    page = read_page(Log(range(1, 9)), ReadTerms(ENDLESS, (), 0), 9)
    assert (page.first, page.events, page.upto, page.gap) == (9, (), 9, None)


def test_a_page_that_is_full_ends_before_the_next_event() -> None:
    page = read_page(Log(range(1, 9)), ReadTerms(1, (EVEN,), 2), 9)
    assert (offsets(page), page.upto) == ([2, 4], 5)


def test_a_page_has_so_many_bytes_or_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(range(1, 9), size=1_000)
    monkeypatch.setattr(pages, "PAGE_SIZE", 2_500)
    page = read_page(log, ReadTerms(1, (ALL,), 10), 9)
    assert (offsets(page), page.upto) == ([1, 2], 3)
    monkeypatch.setattr(pages, "PAGE_SIZE", 10)
    page = read_page(log, ReadTerms(1, (ALL,), 10), 9)
    assert (offsets(page), page.upto) == ([1], 2), "it goes on, however large an event is"


def test_a_page_looks_at_so_many_entries_whatever_is_wanted_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "SCANNED", 5)
    page = read_page(Log(range(1, 101)), ReadTerms(1, (Filter.parse("n = 90 OR NOT EXISTS n"),), 10), 101)
    assert (offsets(page), page.upto) == ([], 6)


def test_a_page_passes_over_so_many_bytes_that_cannot_be_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = ReadTerms(1, (Filter.parse("n = 90"),), 10)
    assert offsets(read_page(Log(range(1, 101)), terms, 101)) == [90]
    monkeypatch.setattr(pages, "SIFTED", 100)
    monkeypatch.setattr(pages, "PASSED", 10 * pages.LOOK)
    page = read_page(Log(range(1, 101)), terms, 101)
    assert not page.events and 6 < page.upto < 12, "the next page goes on there"


def test_few_large_events_that_cannot_be_wanted_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    log, counting = Log(range(1, 101), size=10_000), mock.Mock(side_effect=unpack)
    monkeypatch.setattr(pages, "unpack", counting)
    assert offsets(read_page(log, ReadTerms(1, (Filter.parse("n = 90"),), 10), 101)) == [90]
    assert counting.call_count < 10


def test_what_retention_has_dropped_is_a_gap() -> None:
    page = read_page(Log(range(1, 9), start=5), ReadTerms(2, (ALL,), 10), 9)
    assert (page.gap, page.reason, offsets(page), page.upto) == (Span(2, 5), "dropped", [5, 6, 7, 8], 9)
    assert read_page(Log(range(1, 9), start=5), ReadTerms(5, (ALL,), 10), 9).gap is None


def test_a_page_ends_before_a_hole_and_the_next_one_begins_with_it() -> None:
    log = Log([1, 2, 6, 7], holes=[Span(3, 6)])
    first = read_page(log, ReadTerms(1, (ALL,), 10), 8)
    assert (first.gap, offsets(first), first.upto) == (None, [1, 2], 3)
    second = read_page(log, ReadTerms(first.upto, (ALL,), 10), 8)
    assert (second.gap, second.reason, offsets(second), second.upto) == (Span(3, 6), "damaged", [6, 7], 8)


def test_a_page_tells_one_gap() -> None:
    log = Log([4, 8], start=4, holes=[Span(5, 8)])
    first = read_page(log, ReadTerms(1, (ALL,), 10), 9)
    assert (first.gap, offsets(first), first.upto) == (Span(1, 4), [4], 5)
    at_once = read_page(Log([8], start=4, holes=[Span(4, 8)]), ReadTerms(1, (ALL,), 10), 9)
    assert (at_once.gap, at_once.events, at_once.upto) == (Span(1, 4), (), 4)


def test_a_page_begins_within_a_hole_where_its_reader_is() -> None:
    page = read_page(Log([1, 9], holes=[Span(2, 9)]), ReadTerms(5, (ALL,), 10), 10)
    assert (page.gap, offsets(page)) == (Span(5, 9), [9])


def test_since_a_time_is_resolved_once_to_an_offset() -> None:
    log = Log(range(1, 9))
    assert read_page(log, ReadTerms(0, (ALL,), 10, since=45), 9).first == 5
    assert read_page(log, ReadTerms(7, (ALL,), 10, since=45), 9).first == 7, "not before the cursor"
    assert read_page(log, ReadTerms(0, (ALL,), 10, since=999), 9).first == 9
    late = read_page(Log(range(1, 9), start=5), ReadTerms(0, (ALL,), 10, since=30), 9)
    assert (late.first, late.gap) == (1, Span(1, 5)), "some since then may have been dropped"
    assert read_page(Log(range(1, 9), start=5), ReadTerms(0, (ALL,), 10, since=65), 9).gap is None


def test_a_cursor_beyond_the_end_is_seen_by_its_reader() -> None:
    page = read_page(Log(range(1, 4)), ReadTerms(9, (ALL,), 10), 4)
    assert (page.first, page.events, page.upto) == (4, (), 4)


@pytest.mark.parametrize(
    ("replay", "found"),
    [
        (Replay(last=2), [6, 8]),
        (Replay(last=100), [2, 4, 6, 8]),
        (Replay(last=2, since=75), [8]),
        (Replay(latest_by="even"), [8]),
        (Replay(all=True, last=1), [8]),
    ],
)
def test_what_a_replay_picks_is_before_the_start(replay: Replay, found: list[int]) -> None:
    page = read_page(Log(range(1, 20)), ReadTerms(ENDLESS, (EVEN,), 1_000, since=85, pick=replay), 9)
    assert (offsets(page), page.first, page.upto) == (found, 9, 9)


def test_a_pick_says_what_it_left_out_and_what_is_damaged() -> None:
    log = Log([1, 2, 6, 7], holes=[Span(3, 6)])
    page = read_page(log, ReadTerms(ENDLESS, (ALL,), 9, pick=Replay(last=4, most=3)), 8)
    assert offsets(page) == [2, 6, 7] and page.gap is None
    assert page.reason.startswith("1 older event was left out") and page.reason.endswith("damaged")
    assert read_page(log, ReadTerms(ENDLESS, (ALL,), 9, pick=Replay(last=1)), 8).reason == "", "it was not looked at"


@given(st.lists(st.integers(0, 400), max_size=20))
def test_what_is_picked_is_sent_in_parts(sizes: list[int]) -> None:
    events = tuple([event(place, size) for place, size in enumerate(sizes, 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire_pages, "PAGE_SIZE", 500)
        parts = parts_of(Slice(9, events, 9, None, "why", tuple(range(len(events)))))
    assert tuple(one for part in parts for one in part.events) == events
    assert [time for part in parts for time in part.times] == list(range(len(events)))
    assert {(part.first, part.upto) for part in parts} == {(9, 9)}
    assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]
    assert [part.reason for part in parts] == [""] * (len(parts) - 1) + ["why"]
    assert all(sum(len(pack(one)) for one in part.events[1:]) <= 500 for part in parts)
