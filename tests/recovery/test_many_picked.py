"""The last events of one log are read page by page if they are many, and given as their reader takes them."""

from __future__ import annotations

import pytest

from broker.worlds import ACME, World, ids, quote, sent_to
from recovery.test_pages import EVEN, Log
from vestnik.recovery import replays
from vestnik.recovery.pages import read_page
from vestnik.wire.messages import Fetch, Fetched, FetchMore, Position, Subscribe, Took
from vestnik.wire.origins import ENDLESS, PLACES, ReadTerms, Span
from vestnik.wire.replays import Replay


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MANY", 2)
    monkeypatch.setattr("vestnik.broker.fetches.FETCHED", 2)


def filled() -> World:
    world = World()
    world.publish("p", *[quote(5, str(number)) for number in range(1, 10)])
    return world


def test_a_log_says_where_the_last_events_begin() -> None:
    log = Log(range(1, 101))
    for last, first in ((3, 96), (50, 2), (51, 1), (1_000, 1)):
        page = read_page(log, ReadTerms(ENDLESS, (EVEN,), PLACES, None, Replay(last=last)), 101)
        assert (page.first, page.upto, page.events) == (first, 101, ())


def test_what_is_missing_among_the_last_events_is_read_with_them() -> None:
    log = Log([*range(1, 40), *range(60, 101)], start=20, holes=[Span(40, 60)])
    page = read_page(log, ReadTerms(ENDLESS, (EVEN,), PLACES, None, Replay(last=1_000)), 101)
    assert (page.first, page.reason) == (20, ""), "the pages tell of the hole"


def test_older_events_that_a_limit_leaves_out_are_said() -> None:
    page = read_page(Log(range(1, 11)), ReadTerms(ENDLESS, (EVEN,), PLACES, None, Replay(last=5, most=3)), 11)
    assert page.first == 6 and page.reason.startswith("2 older events were left out")


def test_no_more_than_a_window_of_the_last_events_is_in_flight() -> None:
    world = filled()
    effects = world.tell("c", Subscribe("s", ACME, window=2, afresh=7, replay=Replay(last=5)))
    assert ids(effects) == ["5", "6"]
    assert ids(world.publish("p", quote(5, "new"))) == []
    got = ["5", "6"]
    while more := ids(world.tell("c", Took((Position("s", 7, len(got)),)))):
        got += more
    assert got == ["5", "6", "7", "8", "9", "new"]
    assert ids(world.publish("p", quote(5, "live"))) == ["live"]


def test_the_last_events_of_two_logs_are_picked_together() -> None:
    world = filled()
    world.meet("x").accept(quote(5, "x"))
    effects = world.tell("c", Subscribe("s", ACME, window=2, afresh=7, replay=Replay(last=4)))
    assert len(ids(effects)) == 4, "each log says what it has, and they are given at once"


def test_a_fetch_of_the_last_events_comes_page_by_page() -> None:
    world = filled()
    got: list[str] = []
    effects = world.tell("c", Fetch(ACME, Replay(last=5), request=3))
    for _ in range(9):
        for one in sent_to(effects, "c"):
            assert isinstance(one, Fetched) and len(one.events) <= 2
            got += [event.id for event in one.events]
        effects = world.tell("c", FetchMore(request=3))
    assert got == ["5", "6", "7", "8", "9"] and world.broker.clients["c"].fetches == {}


def test_a_fetch_of_the_last_events_of_nothing_ends() -> None:
    effects = World().tell("c", Fetch(ACME, Replay(last=5), request=3))
    assert [(one.events, one.more) for one in sent_to(effects, "c") if isinstance(one, Fetched)] == [((), False)]
