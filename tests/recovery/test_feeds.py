"""Cursors that lag and catch up: what a subscription is given of logs, in which order, and what it is told."""

from __future__ import annotations

import pytest

from broker.worlds import ACME, CHEAP, DEAR, OWN, World, accepted, asked, ids, quote, sent_to
from vestnik import Event, Filter
from vestnik.broker.core import OwnLog
from vestnik.broker.effects import Append, Appended, Effect, LinkDown, LinkUp, LogRead, NotAppended, ReadLog, Tick
from vestnik.model.times import MICROS
from vestnik.recovery import reading
from vestnik.recovery.arrivals import BEYOND
from vestnik.recovery.pages import read_page
from vestnik.recovery.roster import SUPERSEDED
from vestnik.routing.router import AdvertisingRouter
from vestnik.wire.messages import (
    AdminS,
    Advertise,
    Delivery,
    Fetch,
    Fetched,
    FetchMore,
    Gap,
    Interest,
    Notify,
    Position,
    Publish,
    Subscribe,
    Took,
    Unadvertise,
)
from vestnik.wire.origins import (
    ENDLESS,
    Cover,
    FetchPage,
    Frontiers,
    Offer,
    Origin,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    ReadTerms,
    Routed,
    Slice,
    Span,
)
from vestnik.wire.replays import Replay

X, Y = Origin("x", 1), Origin("y", 1)
ALL = Replay(all=True)
S = ("c", "s")
TERMS = ReadTerms(1, (ACME,), 10)


def subscribe(wanted: Filter = ACME, **terms: object) -> Subscribe:
    return Subscribe("s", wanted, afresh=7, **terms)  # type: ignore[arg-type]


def took(world: World, number: int) -> list[Effect]:
    return world.tell("c", Took((Position("s", 7, number),)))


def some(*numbers: int) -> list[Event]:
    return [quote(1, str(number)) for number in numbers]


def names(*numbers: int) -> list[str]:
    return [str(number) for number in numbers]


def deliveries(effects: list[Effect]) -> list[Delivery]:
    return [
        one
        for message in sent_to(effects, "c")
        if isinstance(message, Notify)
        for some in message.deliveries
        for one in some.each()
    ]


def gaps(effects: list[Effect]) -> list[Gap]:
    return [one.gap for one in deliveries(effects) if one.gap is not None]


def state(world: World, origin: Origin, key: tuple[str, str] = S) -> tuple[str, int, bool]:
    """Return the state and the cursor of the feed by which a reader reads a log, and whether it shares the feed."""
    feed = world.broker.recovery.feeds.roster.of(key, origin)
    assert feed is not None
    return feed.state.name, feed.cursor, feed.reader is None


# --- slow readers ---


@pytest.mark.parametrize("log", [OwnLog(), OwnLog(room=1, is_whole=False)], ids=["tail", "disk"])
def test_a_slow_reader_lags_and_catches_up(log: OwnLog) -> None:
    world = World(neighbours=(), log=log)
    world.tell("c", subscribe(window=2))
    assert ids(world.publish("p", *some(1, 2, 3, 4, 5))) == names(1, 2)
    assert state(world, OWN) == ("FETCHING", 3, False)
    assert ids(took(world, 1)) == names(3)
    assert ids(world.publish("p", *some(6))) == [], "it is in a page"
    assert ids(took(world, 3)) == names(4, 5)
    assert ids(took(world, 5)) == names(6)
    assert state(world, OWN) == ("LIVE", 7, True)
    assert ids(world.publish("p", *some(7))) == names(7)


def test_a_slow_reader_of_another_log_catches_up_there() -> None:
    world = World()
    far = world.meet()
    world.tell("c", subscribe(window=2))
    world.tell("d", subscribe(window=100))
    effects = far.publish(*some(1, 2, 3, 4))
    assert ids(effects) == names(1, 2) and ids(effects, "d") == names(1, 2, 3, 4), "others do not wait"
    assert ids(took(world, 2)) == names(3, 4)
    assert [read.terms.start for read in far.asked][-1:] == [3]


def test_what_is_in_flight_is_bounded_in_bytes() -> None:
    world = World(neighbours=())
    world.tell("c", subscribe())
    large = [Event("quote", {"symbol": "ACME", "fill": "x" * 600_000}, source="s", id=str(n)) for n in range(4)]
    assert ids(world.publish("p", *large)) == names(0, 1)
    assert ids(took(world, 1)) == names(2)


def test_numbers_have_no_gaps_whatever_lags() -> None:
    world = World()
    far = world.meet()
    world.tell("c", subscribe(window=3))
    found = [*deliveries(far.publish(*some(*range(10)))), *deliveries(world.publish("p", quote(1, "own")))]
    while found[-1].numbers[0][1] < 11:
        found += deliveries(took(world, found[-1].numbers[0][1]))
    assert [one.numbers for one in found] == [((7, number),) for number in range(1, 12)]
    assert [one.event.id for one in found if one.event and one.event.id != "own"] == names(*range(10))


# --- gaps ---


def test_a_gap_is_told_once_and_true() -> None:
    world = World(neighbours=(), log=OwnLog(room=3_000))
    world.tell("c", subscribe(window=1))
    world.publish("p", *some(*range(1, 51)))
    effects = took(world, 1)
    (gap,) = gaps(effects)
    start = world.broker.recovery.tail.start
    assert (gap.log, gap.first, gap.end) == ("b/1", 2, start) and "no data folder" in gap.reason
    found, number = list[str](), 2
    while effects := took(world, number):
        found += ids(effects)
        number += 1
    assert found == names(*range(start, 51))


def test_readers_that_share_a_feed_are_told_of_a_gap_each() -> None:
    world = World()
    far = world.meet(room=0)
    for client in ("c", "d"):
        world.tell(client, subscribe())
    far.publish(*some(1))
    world.tell("b", LinkDown("u"))
    far.accept(*some(2, 3, 4))
    world.tell("b", LinkUp("u"))
    effects = world.tell("u", OriginHere(X))
    assert ids(effects) == ids(effects, "d") == ["x/1 2-4", "4"]
    assert len([read for read in far.asked if read.terms.start == 2]) == 1, "one page for both"


def test_a_cursor_beyond_the_end_of_a_log_is_a_gap() -> None:
    world = World()
    far = world.meet()
    far.accept(*some(1, 2, 3))
    effects = world.tell("c", subscribe(seen=(("x/1", 99),)))
    assert gaps(effects) == [Gap("x/1", 4, 99, BEYOND, rewinds=True)]
    assert ids(far.publish(*some(4))) == names(4)


def test_a_log_that_is_superseded_is_a_gap_once() -> None:
    world = World()
    far = world.meet()
    world.tell("c", subscribe())
    far.publish(*some(1))
    world.tell("u", OriginGone(X))
    world.now = 1.0
    later = world.meet(log=2)
    later.accept(*some(2))
    assert sorted(world.broker.recovery.feeds.cursors(S)) == [OWN, Origin("x", 2)]
    (told,) = [one for _, one in world.broker.clients["c"].subscriptions["s"].reader.after(0) if one.gap]
    assert told.gap == Gap("x/1", 2, ENDLESS, SUPERSEDED)
    assert gaps(world.tell("u", OriginHere(X))) == [], "it is over"
    assert ids(world.tell("u", Routed(X, far.accept(*some(9))))) == []


def test_a_client_with_a_cursor_of_a_log_that_is_over_is_told() -> None:
    world = World()
    world.meet(log=2)
    assert gaps(world.tell("c", subscribe(seen=(("x/1", 5),)))) == [Gap("x/1", 5, ENDLESS, SUPERSEDED)]


# --- the path ---


def test_only_a_page_up_to_the_edge_proves_the_path() -> None:
    world = World()
    far = world.meet()
    world.silent = {X}
    (first,) = asked(world.tell("c", subscribe(seen=(("x/1", 1),))))
    far.accept(*some(1, 2))
    page = far.page(first)
    assert ids(world.tell("u", Routed(X, far.accept(*some(3))))) == [], "it is in a later page"
    behind = PageRead(X, page.request, page.page, 4)
    (again,) = asked(world.tell("u", behind))
    assert again.terms.start == 3 and state(world, X)[0] == "FETCHING"
    assert ids(world.tell("u", far.page(again))) == names(3)
    assert state(world, X) == ("LIVE", 4, True)


def test_a_page_counts_only_if_it_comes_by_the_way_and_was_asked_for() -> None:
    world = World()
    far = world.meet()
    far.accept(*some(1))
    world.silent = {X}
    (read,) = asked(world.tell("c", subscribe(seen=(("x/1", 1),))))
    page = far.page(read)
    assert world.tell("v", page) == [], "v is not the way"
    earlier = PageRead(X, page.request - 1, page.page, page.edge)
    assert world.tell("u", earlier) == [], "a request of an earlier life"
    assert ids(world.tell("u", page)) == names(1)
    assert world.tell("u", page) == [], "it was answered before"


def test_requests_of_different_lives_have_different_numbers() -> None:
    lives = []
    for now in (5.0, 6.0):
        world = World()
        world.now = now
        lives.append(asked(world.handle("u", OriginHere(X)))[0].request)
    assert lives[0] < lives[1]


def test_a_page_that_was_asked_for_before_the_way_was_lost_does_not_count() -> None:
    world = World()
    far = world.meet()
    far.accept(*some(1))
    world.silent = {X}
    (read,) = asked(world.tell("c", subscribe(seen=(("x/1", 1),))))
    world.tell("b", LinkDown("u"))
    world.tell("b", LinkUp("u"))
    (again,) = [one for one in asked(world.tell("u", OriginHere(X))) if one.terms.filters]
    assert world.tell("u", far.page(read)) == []
    assert ids(world.tell("u", far.page(again))) == names(1)


def test_a_frontier_moves_only_feeds_that_are_live() -> None:
    world = World()
    far = world.meet()
    world.tell("d", subscribe(DEAR))
    world.silent = {X}
    world.tell("c", subscribe(seen=(("x/1", 1),)))
    world.tell("u", Frontiers(((X, 9),)))
    assert state(world, X, ("d", "s")) == ("LIVE", 9, True)
    assert state(world, X) == ("FETCHING", 1, False)
    world.tell("v", Frontiers(((X, 20),)))
    assert state(world, X, ("d", "s")) == ("LIVE", 9, True), "v is not the way"
    assert far.asked


def test_what_was_missed_while_the_way_was_lost_comes_when_it_is_back() -> None:
    world = World()
    far = world.meet()
    world.tell("c", subscribe())
    far.publish(*some(1))
    world.tell("b", LinkDown("u"))
    assert state(world, X) == ("UNREACHABLE", 2, True)
    far.accept(*some(2, 3))
    world.tell("b", LinkUp("u"))
    assert ids(world.tell("u", OriginHere(X))) == names(2, 3)
    assert ids(far.publish(*some(4))) == names(4)


def test_a_log_that_is_new_is_read_from_when_the_subscription_was_made() -> None:
    world = World()
    world.now = 10.0
    world.tell("c", subscribe())
    world.now = 20.0
    far = world.logs[X] = world.meet("far").__class__(world, X, "u", 1 << 30)
    far.accept(*some(1), time=5_000_000)
    far.accept(*some(2), time=15_000_000)
    effects = world.tell("u", OriginHere(X))
    assert ids(effects) == names(2)
    assert dict(accepted(effects)[-1].seen)["x/1"] == 3, "and its client knows how far it has come"


# --- changes of filters, and offers ---


def test_a_wider_filter_is_asked_for_at_the_cursor_and_a_narrower_is_not() -> None:
    world = World()
    far = world.meet()
    world.tell("c", subscribe(CHEAP))
    far.publish(quote(1, "1"), quote(95, "2"))
    world.silent = {X}
    (read,) = asked(world.tell("c", Subscribe("s", ACME, epoch=7, afresh=8)))
    assert (read.terms.start, read.terms.filters) == (3, (ACME,))
    assert ids(world.tell("u", Routed(X, far.accept(quote(95, "3"))))) == []
    assert ids(world.tell("u", far.page(read))) == ["3"]
    assert asked(world.tell("c", Subscribe("s", ACME & CHEAP, epoch=7, afresh=8))) == []


def test_a_subscription_that_another_covers_costs_no_message() -> None:
    world = World()
    world.meet()
    assert asked(world.handle("c", subscribe(CHEAP)))
    world = World()
    world.meet()
    world.tell("d", subscribe(ACME))
    assert not asked(world.handle("c", subscribe(ACME & CHEAP)))
    assert state(world, X) == ("LIVE", 1, True)


def test_a_new_advertisement_pulls_the_readers_that_overlap_no_other() -> None:
    world = World(router=AdvertisingRouter)
    cheap, dear, also = Offer(1, CHEAP), Offer(2, DEAR), Offer(3, Filter.parse("price > 95"))
    far = world.meet(offers=(cheap,))
    world.tell("c", subscribe(DEAR))
    world.tell("d", subscribe(CHEAP))
    far.accept(quote(95, "1"))
    world.silent = {X}
    (read,) = asked(world.handle("u", OriginOffers(X, frozenset([cheap, dear]))))
    assert read.terms.filters == (DEAR,) and state(world, X)[0] == "FETCHING"
    assert ids(world.tell("u", far.page(read))) == ["1"] and state(world, X)[0] == "LIVE"
    assert not asked(world.handle("u", OriginOffers(X, frozenset([cheap, dear, also])))), "a path is there"


def test_a_page_that_an_advertisement_has_overtaken_proves_nothing() -> None:
    world = World(router=AdvertisingRouter)
    far = world.meet()
    world.silent = {X}
    (first,) = asked(world.handle("c", subscribe(DEAR)))
    assert not asked(world.handle("u", OriginOffers(X, frozenset([Offer(1, DEAR)])))), "one request at a time"
    (again,) = asked(world.handle("u", far.page(first)))
    assert state(world, X)[0] == "FETCHING"
    world.tell("u", far.page(again))
    assert state(world, X)[0] == "LIVE"


def test_an_advertisement_is_withdrawn_when_all_is_routed_that_was_accepted_under_it() -> None:
    world = World(router=AdvertisingRouter, neighbours=("u",))

    def offers(effects: list[Effect]) -> list[int]:
        return [len(one.offers) for one in sent_to(effects, "u") if isinstance(one, OriginOffers)]

    assert offers(world.tell("p", Advertise("a", CHEAP))) == [1]
    (first,) = world.tell("p", Publish((quote(1, "1"),)))
    (second,) = world.tell("p", Publish((quote(1, "2"),)))
    assert isinstance(first, Append) and isinstance(second, Append)
    assert offers(world.tell("p", Unadvertise("a"))) == []
    assert offers(world.tell("b", Appended(first))) == []
    assert offers(world.tell("b", NotAppended(second, "full"))) == [0]


# --- replays ---


def timed(id: str, time: int, **envelope: object) -> Event:
    return Event("quote", {"symbol": "ACME", "price": 1}, source=f"s{id}", id=id, time=time, **envelope)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_replays_are_merged_in_the_order_of_time(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", size)
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(*[timed(str(n), n) for n in (1, 4, 5, 8)])
    y.accept(*[timed(str(n), n) for n in (2, 3, 6, 7, 9)])
    world.publish("p", timed("0", 0), timed("10", 10))
    effects = world.tell("c", subscribe(replay=ALL))
    assert ids(effects) == names(*range(11))
    assert all(one.replayed for one in deliveries(effects))
    assert [one.replayed for one in deliveries(x.publish(timed("11", 1)))] == [False]


def test_no_event_of_a_replay_comes_before_its_cause_in_a_page_of_another_log() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(timed("effect", 1, causes=[("scause", "cause")]), timed("next", 2))
    y.accept(timed("other", 5), timed("cause", 6))
    assert ids(world.tell("c", subscribe(replay=ALL))) == ["other", "cause", "effect", "next"]


def test_a_replay_gives_nothing_before_all_logs_have_answered_and_goes_on_without_one_that_is_lost() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(timed("1", 1))
    y.accept(timed("2", 2))
    world.silent = {X}
    assert ids(world.tell("c", subscribe(replay=ALL))) == []
    assert ids(world.tell("b", LinkDown("u"))) == ["2"]
    world.silent = set()
    world.tell("b", LinkUp("u"))
    effects = world.tell("u", OriginHere(X))
    assert ids(effects) == ["1"] and deliveries(effects)[0].replayed, "it comes later"


def test_a_replay_becomes_live_while_events_are_published() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(*some(1))
    y.accept(*some(2))
    world.silent = {X, Y}
    reads = {one.origin: one for one in asked(world.tell("c", subscribe(replay=ALL)))}
    effects: list[Effect] = []
    for log, neighbour, number in ((x, "u", 3), (y, "v", 4)):
        page = log.page(reads[log.origin])
        log.accept(*some(number))
        effects += world.tell(neighbour, page)
    assert ids(effects) == names(1, 2)
    reads = {one.origin: one for one in asked(effects)}
    assert ids(world.tell("v", y.page(reads[Y]))) == names(4), "it does not wait for the other log"
    assert ids(world.tell("u", x.page(reads[X]))) == names(3)
    assert state(world, X) == state(world, Y) == ("LIVE", 3, True)


def test_a_replay_since_a_time_has_what_happened_since() -> None:
    world = World()
    far = world.meet()
    far.accept(timed("old", 5), timed("late", 50), time=100_000_000)
    far.accept(timed("new", 200_000_000), quote(1, "accepted"), time=200_000_000)
    world.now = 300.0
    assert ids(world.tell("c", subscribe(replay=Replay(since=40)))) == ["late", "new", "accepted"]
    assert ids(far.publish(timed("live", 7))) == ["live"], "what comes live comes, whatever its time is"


def test_a_replay_lags_with_its_reader() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(*[timed(str(n), n) for n in (1, 3, 5)])
    y.accept(*[timed(str(n), n) for n in (2, 4, 6)])
    assert ids(world.tell("c", subscribe(replay=ALL, window=2))) == names(1, 2)
    assert ids(x.publish(timed("7", 7))) == []
    assert ids(took(world, 2)) == names(3, 4)
    assert ids(took(world, 4)) == names(5, 6)
    assert ids(took(world, 6)) == names(7)


@pytest.mark.parametrize(
    ("replay", "found"),
    [
        (Replay(last=3), names(4, 5, 6)),
        (Replay(last=3, since=5), names(5, 6)),
        (Replay(latest_by="price"), names(3, 6)),
        (Replay(latest_by="price", last=1), names(6)),
    ],
)
def test_what_is_picked_of_several_logs_is_picked_of_all_together(replay: Replay, found: list[str]) -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    prices = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2}
    events = {n: timed(str(n), n).replace(data={"symbol": "ACME", "price": price}) for n, price in prices.items()}
    x.accept(events[1], events[4], events[6])
    y.accept(events[2], events[5])
    world.publish("p", events[3])
    world.now = 10.0
    effects = world.tell("c", subscribe(replay=replay))
    assert ids(effects) == found and all(one.replayed for one in deliveries(effects))
    assert ids(x.publish(timed("7", 7))) == names(7)


def test_what_is_picked_keeps_the_order_of_streams_and_has_causes_first() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(quote(1, "1"), quote(1, "2"), quote(1, "3"))
    effect = Event("quote", {"symbol": "ACME"}, source="a", id="effect", causes=[("nyse", "2")])
    y.accept(effect, effect.replace(id="next", causes=[]))
    world.now = 10.0
    effects = world.tell("c", subscribe(replay=Replay(last=9)))
    assert ids(effects) == ["1", "2", "effect", "next", "3"]


def test_what_is_picked_names_the_brokers_out_of_reach() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(timed("1", 1))
    world.tell("b", LinkDown("u"))
    y.accept(timed("2", 2))
    world.now = 10.0
    assert ids(world.tell("c", subscribe(replay=Replay(last=5)))) == ["x cannot be reached", "2"]


def test_a_pick_waits_for_all_logs_and_not_for_one_that_is_lost() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    y.accept(timed("2", 2))
    world.now = 10.0
    world.silent = {X}
    assert ids(world.tell("c", subscribe(replay=Replay(last=5)))) == []
    assert ids(world.tell("b", LinkDown("u"))) == ["x cannot be reached", "2"]
    assert x.asked


def test_a_pick_comes_in_parts_and_is_put_together() -> None:
    world = World()
    far = world.meet()
    far.accept(*[timed(str(n), n) for n in range(1, 5)])
    world.now = 10.0
    world.silent = {X}
    (read,) = [one for one in asked(world.tell("c", subscribe(replay=Replay(last=5)))) if one.terms.pick]
    page = far.page(read)
    parts = [
        Slice(5, page.page.events[:2], 5, None, "", page.page.times[:2], more=True),
        Slice(5, page.page.events[2:], 5, None, "", page.page.times[2:]),
    ]
    assert ids(world.tell("u", PageRead(X, page.request, parts[0], page.edge))) == []
    assert ids(world.tell("u", PageRead(X, page.request, parts[1], page.edge))) == names(1, 2, 3, 4)


def test_what_is_picked_of_a_large_log_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.wire.pages.PAGE_SIZE", 100)
    world = World(neighbours=("u",))
    world.publish("p", *some(*range(1, 9)))
    terms = ReadTerms(ENDLESS, (ACME,), 10, None, Replay(last=7))
    pages = [one.page for one in world.sent("u", FetchPage(OWN, 5, terms), "u") if isinstance(one, PageRead)]
    assert len(pages) > 1 and [page.more for page in pages] == [True] * (len(pages) - 1) + [False]
    assert [event.id for page in pages for event in page.events] == names(*range(2, 9))


@pytest.mark.parametrize("replay", [ALL, Replay(last=4)], ids=["all", "last"])
def test_a_history_fills_in_what_a_broker_has_dropped(replay: Replay) -> None:
    world = World()
    far = world.meet(room=0)
    events = far.accept(*[timed(str(n), n) for n in range(1, 5)])
    world.now = 10.0
    history = Origin("h", 1)
    world.handle("v", OriginHere(history, history=True))
    covers = (Cover(X, Span(1, 4)),)
    pages = [
        Slice(0, events[:2], 13, None, "", (1, 2), 0, (11, 12), covers=covers),
        Slice(13, events[2:3], 14, None, "", (3,), 0, (13,), covers=covers),
        Slice(14, (), 14, covers=covers),
    ]
    if replay.picks:
        pages = [Slice(0, events[:3], 0, None, "", (1, 2, 3))]
    found = world.tell("c", subscribe(replay=replay))
    for page in pages:
        (read,) = [one for one in asked(found) if one.origin == history][-1:]
        found += world.tell("v", PageRead(history, read.request, page, page.upto))
    assert ids(found) == names(1, 2, 3, 4), "each once, and no gap"
    assert all(one.replayed for one in deliveries(found))
    assert ids(far.publish(timed("5", 5))) == names(5)


def read_of_history(world: World, **terms: object) -> tuple[Origin, FetchPage]:
    """Return a history, and the first page that a replay asks it for."""
    history = Origin("h", 1)
    world.handle("v", OriginHere(history, history=True))
    (read,) = [one for one in asked(world.tell("c", subscribe(ACME, **terms))) if one.origin == history]
    return history, read


def test_what_a_history_has_lost_is_a_gap() -> None:
    world = World()
    history, read = read_of_history(world, replay=ALL)
    found = world.tell("v", PageRead(history, read.request, Slice(0, (), 1, Span(0, 1), "it is damaged"), 1))
    assert [gap.reason for gap in gaps(found)] == ["it is damaged"]


def test_each_page_of_a_history_is_asked_for_by_the_time_of_the_replay() -> None:
    world = World()
    since = 100 * MICROS
    history, read = read_of_history(world, replay=Replay(since=since))
    page = Slice(0, (timed("1", since),), 2, None, "", (since,), 9, (1,))
    (again,) = asked(world.tell("v", PageRead(history, read.request, page, 2)))
    assert (again.terms.start, again.terms.since) == (2, read.terms.since)


def test_a_client_that_moved_reads_a_history_to_the_edge_that_it_says() -> None:
    world = World()
    history, read = read_of_history(world, seen=((str(Origin("h", 1)), 2),), replay=ALL)
    assert read.terms.start == 2
    pages = [(Slice(2, (timed("2", 2),), 3, None, "", (2,), 9, (2,)), 4), (Slice(3, (), 3), 3)]
    found: list[Effect] = []
    for page, edge in pages:
        found += world.tell("v", PageRead(history, read.request, page, edge))
        read = next(iter(asked(found)[-1:]), read)
    assert ids(found) == names(2) and [one.terms.start for one in asked(found)] == [3]


# --- reads ---


def test_filters_of_many_readers_do_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.recovery.reads.FEW_FILTERS", 2)
    world = World()
    world.meet()
    for n in range(3):
        world.tell("c", Subscribe(f"s{n}", Filter.parse(f"price = {n}"), afresh=n + 1))
    world.tell("b", LinkDown("u"))
    world.tell("b", LinkUp("u"))
    (read,) = asked(world.handle("u", OriginHere(X)))
    assert read.terms.is_shared and read.terms.filters == (Filter.all(),)


def test_a_log_is_read_by_what_is_wanted_in_the_direction_of_a_request() -> None:
    world = World()
    world.tell("u", AdminS(add=tuple([Interest(Filter.parse(f"price = {n}")) for n in range(20)])))
    world.tell("v", AdminS(add=(Interest(DEAR),)))
    world.publish("p", quote(5, "1"), quote(95, "2"), quote(7, "3"))
    for neighbour, expected in (("u", names(1, 3)), ("v", names(2))):
        terms = ReadTerms(1, (Filter.all(),), 10, is_shared=True)
        (page,) = world.sent(neighbour, FetchPage(OWN, 9, terms, 0, ("far",)), neighbour)
        assert isinstance(page, PageRead) and [event.id for event in page.page.events] == expected
        assert page.page.upto == page.edge == 4


def test_readers_near_to_each_other_share_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.recovery.reads.NEAR", 5)
    world = World()
    far = world.meet()
    far.accept(*some(*range(1, 31)))
    cursors = {"c1": 2, "c2": 4, "c3": 7, "c4": 20}
    world.silent = {X}
    for client, cursor in cursors.items():
        world.tell(client, Subscribe("s", ACME, afresh=7, seen=(("b/1", 1), ("x/1", cursor))))
    world.tell("b", LinkDown("u"))
    world.tell("b", LinkUp("u"))
    reads = [read for read in asked(world.tell("u", OriginHere(X))) if read.feed]
    assert [read.terms.start for read in reads] == [2, 20]
    effects = [effect for read in reads for effect in world.tell("u", far.page(read))]
    for client, cursor in cursors.items():
        assert ids(effects, client) == names(*range(cursor, 31))


def test_one_request_of_a_feed_is_outstanding() -> None:
    world = World()
    far = world.meet()
    far.accept(*some(1, 2, 3))
    world.silent = {X}
    (read,) = asked(world.tell("c", subscribe(window=2, seen=(("x/1", 1),))))
    assert asked(took(world, 0)) == []
    assert ids(world.tell("u", far.page(read))) == names(1, 2)
    assert len(asked(took(world, 1))) == 1 and asked(took(world, 2)) == []


def test_requests_are_passed_on_and_answers_come_back_the_same_way() -> None:
    world = World()
    far = world.meet(via="v")
    far.accept(*some(1))
    world.silent = {X}
    (passed,) = sent_to(world.tell("u", FetchPage(X, 5, TERMS, 3, ("w",))), "v")
    assert passed == FetchPage(X, 5, TERMS, 3, ("w", "u"))
    assert isinstance(passed, FetchPage)
    (back,) = sent_to(world.tell("v", far.page(passed)), "u")
    assert isinstance(back, PageRead) and (back.request, back.path) == (5, ("w",))


def test_a_page_of_the_own_log_is_read_in_memory_or_on_disk() -> None:
    for log, is_read in ((OwnLog(), False), (OwnLog(room=1, is_whole=False), True)):
        world = World(log=log)
        world.publish("p", *some(1, 2, 3))
        effects = world.handle("u", FetchPage(OWN, 5, TERMS))
        reads = [effect for effect in effects if isinstance(effect, ReadLog)]
        assert bool(reads) == is_read
        if reads:
            ((number, terms, end),) = [(one.number, one.terms, one.end) for one in reads]
            world.publish("p", *some(4))
            effects = world.handle("b", LogRead(number, read_page(world.disk, terms, end)))
        (page,) = [one for one in sent_to(effects, "u") if isinstance(one, PageRead)]
        assert ([event.id for event in page.page.events], page.page.upto) == (names(1, 2, 3), 4)
        assert page.edge == (5 if is_read else 4), "what was routed meanwhile is not in it"


# --- fetches, and settled answers ---


def test_a_fetch_gets_what_there_was_and_ends() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(timed("1", 1), timed("3", 3))
    y.accept(timed("2", 2))
    effects = world.tell("c", Fetch(ACME, ALL, request=5))
    *found, end = fetched(effects)
    assert [id for one in found for id in one[0]] == names(1, 2, 3) and end == ([], (), False)
    assert world.broker.clients["c"].fetches == {}
    assert sent_to(x.publish(timed("4", 4)), "c") == []


def test_a_fetch_comes_page_by_page_as_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.broker.fetches.FETCHED", 2)
    world = World()
    far = world.meet()
    far.accept(*[timed(str(n), n) for n in range(1, 6)])
    assert fetched(world.tell("c", Fetch(ACME, ALL, request=5))) == [(names(1, 2), (), True)]
    assert world.tell("c", Fetch(ACME, ALL, request=5)) == [], "it was asked before"
    assert fetched(world.tell("c", FetchMore(request=5))) == [(names(3, 4), (), True)]
    far.accept(timed("6", 6))
    assert fetched(world.tell("c", FetchMore(request=5))) == [(names(5), (), True), ([], (), False)]
    assert world.tell("c", FetchMore(request=5)) == []


def test_a_fetch_says_what_it_misses() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v", room=0)
    y.accept(timed("1", 1), timed("2", 2))
    world.tell("b", LinkDown("u"))
    (found, end) = fetched(world.tell("c", Fetch(ACME, ALL, request=5)))
    assert found[0] == names(2) and end[1][0] == "x cannot be reached" and end[1][1].startswith("y/1: ")
    assert x.asked


def test_a_fetch_ends_when_a_log_is_lost() -> None:
    world = World()
    world.meet("x")
    world.silent = {X}
    assert fetched(world.tell("c", Fetch(ACME, ALL, request=5))) == []
    assert fetched(world.tell("b", LinkDown("u"))) == [([], ("x cannot be reached",), False)]


def fetched(effects: list[Effect]) -> list[tuple[list[str], tuple[str, ...], bool]]:
    found = [one for one in sent_to(effects, "c") if isinstance(one, Fetched)]
    return [([event.id for event in one.events], one.lost, one.more) for one in found]


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_settled_subscription_is_answered_when_all_logs_have_answered_or_are_lost(is_lost: bool) -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    world.silent = {X, Y}
    effects = world.tell("c", subscribe(CHEAP, settled=True, request=3))
    assert not [one for one in accepted(effects) if one.request]
    questions = {read.origin: read for read in asked(effects) if not read.terms.filters}
    assert questions.keys() == {X, Y}
    assert not [one for one in accepted(world.tell("u", x.page(questions[X]))) if one.request]
    effects = world.tell("b", LinkDown("v")) if is_lost else world.tell("v", y.page(questions[Y]))
    assert [one.missing for one in accepted(effects) if one.request == 3] == [("y cannot be reached",) * is_lost]


def test_a_settled_advertisement_is_answered_when_all_logs_have_answered() -> None:
    world = World(router=AdvertisingRouter)
    far = world.meet("x")
    world.silent = {X}
    effects = world.tell("c", Advertise("a", ACME, settled=True, request=3))
    assert not accepted(effects)
    (question,) = asked(effects)
    kinds = [type(one).__name__ for one in sent_to(effects, "u")]
    assert kinds.index("AdminA") < kinds.index("FetchPage"), "what is wanted comes before the answer"
    assert [one.request for one in accepted(world.tell("u", far.page(question)))] == [3]


def test_a_question_travels_after_what_is_wanted() -> None:
    world = World()
    world.meet("x")
    world.silent = {X}
    kinds = [type(one).__name__ for one in world.sent("c", subscribe(CHEAP, settled=True, request=3), "u")]
    assert kinds[0] == "AdminS" and set(kinds[1:]) == {"FetchPage"}


def test_frontiers_are_reported_after_what_was_routed() -> None:
    world = World(neighbours=("u",))
    world.publish("p", *some(1, 2))
    assert [one for one in world.sent("b", Tick(), "u") if isinstance(one, Frontiers)] == []
    world.now = 1.0
    assert Frontiers(((OWN, 3),)) in world.sent("b", Tick(), "u")
    world.now = 2.0
    assert [one for one in world.sent("b", Tick(), "u") if isinstance(one, Frontiers)] == [], "it is known"


def test_a_log_that_only_a_client_names_ends_no_other() -> None:
    """A cursor in a log that nobody has announced says nothing of the logs of its broker."""
    world = World()
    far = world.meet()
    world.tell("c", subscribe())
    world.tell("d", subscribe(seen=(("x/99", 1), ("b/99", 1))))
    assert ids(far.publish(*some(1))) == names(1)
    world.tell("b", LinkDown("u"))
    far.accept(*some(2))
    world.tell("b", LinkUp("u"))
    effects = world.tell("u", OriginHere(X))
    assert ids(effects) == names(2) and not gaps(effects), "the log of the neighbour is read on"
    effects = world.tell("e", subscribe(seen=(("x/1", 2), ("b/1", 1))))
    assert ids(effects, "e") == names(2) and not gaps(effects), "so it is by a client that comes back"
