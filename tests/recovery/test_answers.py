"""Histories of clients: a broker asks its client for the past, trusts it with little, and answers in any case."""

from __future__ import annotations

import pytest

from broker.worlds import ACME, CHEAP, World, accepted, asked, ids, quote, sent_to
from vestnik import Event, Filter
from vestnik.broker.effects import ClockSet, Drained, Effect, Full, Gone, LinkUp, Tick
from vestnik.model.times import MICROS
from vestnik.recovery.answers import CLIENT_WITHIN
from vestnik.routing.propagation import Leases
from vestnik.wire.messages import (
    Advertise,
    Delivery,
    Fetch,
    Fetched,
    Message,
    Notify,
    Position,
    Recall,
    Recalled,
    Subscribe,
    Took,
    Unadvertise,
)
from vestnik.wire.origins import FetchPage, Origin, OriginGone, OriginHere, PageRead, ReadTerms, Slice
from vestnik.wire.replays import Replay

ALL = Replay(all=True)
HISTORY = Origin.of_client("b", "h", "r")
WHO = "the history r of client h at b"


def old(id: str, time: int, price: float = 1) -> Event:
    return quote(price, id, time=time)


def answering(offered: Filter = ACME, **options: object) -> World:
    """Return a broker whose client `h` answers replays."""
    world = World(sweep=1.0, **options)  # type: ignore[arg-type]
    world.now = 100.0
    world.tell("h", Advertise("r", offered, lease=60.0, replays=True))
    return world


def subscribe(world: World, replay: Replay = ALL, wanted: Filter = ACME, **terms: object) -> list[Effect]:
    return world.tell("c", Subscribe("s", wanted, afresh=7, replay=replay, **terms))  # type: ignore[arg-type]


def recalls(effects: list[Effect]) -> list[Recall]:
    return [message for message in sent_to(effects, "h") if isinstance(message, Recall)]


def answer(world: World, effects: list[Effect], *pages: tuple[Event, ...], reason: str = "") -> list[Effect]:
    """Answer the last question with pages, and then with none; return all effects."""
    found = list(effects)
    for page in [*pages, ()]:
        found += world.tell("h", Recalled(recalls(found)[-1].number, page, "" if page else reason))
    return found


def deliveries(effects: list[Effect]) -> list[Delivery]:
    return [
        one
        for message in sent_to(effects, "c")
        if isinstance(message, Notify)
        for some in message.deliveries
        for one in some.each()
    ]


def fetched(effects: list[Effect]) -> tuple[list[str], tuple[str, ...]]:
    """Return the ids of what was fetched, and what is missing."""
    pages = [message for message in sent_to(effects, "c") if isinstance(message, Fetched)]
    return [event.id for page in pages for event in page.events], pages[-1].lost


# --- what a subscription gets ---


def test_an_answer_is_replayed_in_the_order_of_time_with_logs_and_what_a_log_has_comes_once() -> None:
    world = answering()
    far = world.meet("x")
    stored = far.accept(old("2", 2), old("4", 4), old("6", 6))
    found = answer(world, subscribe(world), (old("1", 1), old("3", 3)), (stored[1], old("5", 5)))
    assert ids(found) == ["1", "2", "3", "4", "5", "6"]
    assert all(one.replayed for one in deliveries(found))
    assert {one.id: one.seq for delivery in deliveries(found) if (one := delivery.event)} == {
        "1": None, "2": 1, "3": None, "4": 2, "5": None, "6": 3,
    }  # fmt: skip
    assert ids(far.publish(old("7", 7))) == ["7"] and not recalls(far.publish(old("8", 8)))


def test_only_those_who_ask_for_the_past_are_answered() -> None:
    world = answering()
    assert not recalls(world.tell("d", Subscribe("s", ACME, afresh=8)))
    found = answer(world, subscribe(world), (old("1", 1),))
    assert not sent_to(found, "d")


def test_the_client_is_told_what_is_wanted_of_what_it_offers_and_how() -> None:
    world = answering(CHEAP)
    (first,) = recalls(subscribe(world, Replay(since=90 * MICROS)))
    assert (first.name, first.filter, first.replay, first.skip) == ("r", ACME & CHEAP, Replay(since=90 * MICROS), 0)
    (second,) = recalls(world.tell("h", Recalled(first.number, (old("1", 95 * MICROS),))))
    assert (second.filter, second.replay, second.skip) == (first.filter, first.replay, 1)
    (picked,) = recalls(world.tell("d", Subscribe("s", ACME, afresh=8, replay=Replay(last=2, most=1000))))
    assert picked.replay == Replay(last=2)


def test_a_client_is_not_asked_for_what_it_does_not_offer() -> None:
    world = answering(CHEAP)
    found = world.tell("c", Fetch(Filter.parse("price > 90"), ALL, request=5))
    assert not recalls(found) and fetched(found) == ([], ())


@pytest.mark.parametrize("replay", [Replay(last=2), Replay(latest_by="symbol")], ids=["last", "latest"])
def test_what_is_picked_is_picked_of_the_whole_answer_and_of_logs_together(replay: Replay) -> None:
    world = answering()
    world.meet("x").accept(old("4", 4))
    found = answer(world, subscribe(world, replay), (old("1", 1), old("2", 2)), (old("5", 5),))
    assert [recall.skip for recall in recalls(found)] == [0, 2, 3]
    assert ids(found) == (["4", "5"] if replay.last else ["5"])


def test_a_fetch_is_answered_too() -> None:
    world = answering()
    for request, replay in enumerate([ALL, Replay(last=10)], 5):
        found = answer(world, world.tell("c", Fetch(ACME, replay, request=request)), (old("1", 1), old("2", 2)))
        assert fetched(found) == (["1", "2"], ())


def test_an_event_without_a_time_counts_as_of_now() -> None:
    world = answering()
    world.meet("x").accept(old("1", 1))
    found = answer(world, subscribe(world, Replay(since=0)), (quote(1, "now"),))
    assert ids(found) == ["1", "now"]


def test_a_client_that_moves_goes_on_where_it_was() -> None:
    world = answering()
    (recall,) = recalls(subscribe(world, seen=((str(HISTORY), 3),)))
    assert recall.skip == 2 and recall.replay == ALL
    found = answer(world, world.tell("h", Recalled(recall.number, (old("3", 3),))), (old("4", 4),))
    assert ids(found) == ["3", "4"] and [recall.skip for recall in recalls(found)] == [3, 4]


def test_clients_that_move_ask_each_for_their_own_replay() -> None:
    world = answering()
    world.tell("b", Full("c"))
    for name, since in (("s", 80), ("t", 90)):
        replay = Replay(since=since * MICROS)
        world.tell("c", Subscribe(name, ACME, afresh=since, replay=replay, seen=((str(HISTORY), 3),)))
    found = world.tell("b", Drained("c"))
    assert [one.replay.since for one in recalls(found)] == [80 * MICROS, 90 * MICROS]


def test_a_client_that_moves_is_told_if_the_rest_of_an_answer_cannot_be_had() -> None:
    world = World()
    found = subscribe(world, seen=((str(HISTORY), 3),))
    assert ids(found) == [f"{WHO} cannot be reached"]


@pytest.mark.parametrize("wanted", [ACME & CHEAP, Filter.all()], ids=["narrower", "wider"])
def test_a_filter_that_is_changed_is_another_question(wanted: Filter) -> None:
    world = answering(Filter.all())
    (recall,) = recalls(subscribe(world, window=2))
    found = world.tell("h", Recalled(recall.number, (old("1", 1), old("2", 2, 50), old("3", 3))))
    assert ids(found) == ["1", "2"]
    changed = world.tell("c", Subscribe("s", wanted, epoch=7, afresh=7, last=2, replay=ALL))
    (recall,) = recalls(changed)
    assert (recall.filter, recall.skip) == (wanted, 0)
    found = answer(world, changed, (old("0", 0), old("1", 1)), (old("3", 3),))
    found += world.tell("c", Took((Position("s", 7, 4),)))
    assert ids(found) == ["0", "3"], "what it had is not given again"


def test_how_far_an_answer_was_read_is_told_until_it_was_read_to_its_end() -> None:
    world = answering()
    found = subscribe(world)
    seen = [dict(one.seen).get(str(HISTORY)) for one in accepted(found)]
    found = answer(world, found, (old("1", 1),))
    again = world.tell("c", Subscribe("s", ACME, epoch=7, afresh=7, last=1, replay=ALL, request=9))
    assert seen == [0] * len(seen) and str(HISTORY) not in dict(accepted(again)[-1].seen)


def test_events_of_different_sources_may_have_the_same_id() -> None:
    world = answering()
    page = old("1", 1), Event("quote", {"symbol": "ACME"}, source="other", id="1", time=2)
    assert ids(answer(world, subscribe(world), page)) == ["1", "1"]


# --- what a client is not trusted with ---


def test_what_was_not_asked_for_is_not_given() -> None:
    world = answering(CHEAP)
    reserved = Event("vestnik.subscription.made", {"symbol": "ACME", "price": 1}, source="nyse", id="reserved")
    other = Event("quote", {"symbol": "INIT", "price": 1}, source="nyse", id="unwanted")
    page = old("1", 1), quote(50, "not offered"), other, reserved
    assert ids(answer(world, subscribe(world), page)) == ["1"]
    assert fetched(answer(world, world.tell("c", Fetch(ACME, Replay(last=9), request=5)), page)) == (["1"], ())


def test_an_address_that_an_event_is_said_to_have_moves_no_cursor() -> None:
    world = answering()
    far = world.meet("x")
    found = answer(world, subscribe(world), (old("1", 1).stamped("x", 1_000_000),))
    (event,) = [one.event for one in deliveries(found)]
    assert event is not None and (event.id, event.stream, event.seq) == ("1", None, None)
    assert ids(far.publish(old("2", 2))) == ["2"]


def test_only_the_client_that_was_asked_answers_and_once() -> None:
    world = answering()
    (recall,) = recalls(subscribe(world))
    assert not world.tell("other", Recalled(recall.number, (old("1", 1),)))
    assert not world.tell("h", Recalled(recall.number + 1, (old("1", 1),)))
    found = answer(world, world.tell("h", Recalled(recall.number, (old("1", 1),))))
    assert ids(found) == ["1"] and not world.tell("h", Recalled(recall.number, (old("2", 2),)))


@pytest.mark.parametrize("replay", [ALL, Replay(last=2)], ids=["all", "last"])
def test_a_page_that_is_too_large_is_a_gap(replay: Replay) -> None:
    world = answering()
    (recall,) = recalls(subscribe(world, replay))
    found = world.tell("h", Recalled(recall.number, tuple([old(str(n), n) for n in range(501)])))
    (told,) = ids(found)
    assert told.startswith(f"{WHO}: a page of 501 events")


def test_an_answer_of_which_too_much_has_to_be_read_to_pick_a_few_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.recovery.answers.ANSWER_SIZE", 10)
    world = answering()
    (recall,) = recalls(subscribe(world, Replay(last=1)))
    assert ids(world.tell("h", Recalled(recall.number, (old("1", 1),)))) == [f"{WHO}: it is more than 10 bytes"]


def test_an_answer_that_never_ends_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.recovery.answers.ANSWER_EVENTS", 2)
    world = answering()
    found = world.tell("h", Recalled(recalls(subscribe(world))[0].number, (old("1", 1), old("2", 2))))
    found += world.tell("h", Recalled(recalls(found)[0].number, (old("3", 3),)))
    assert ids(found) == ["1", "2", f"{WHO}: it is more than 2 events"]


# --- clients that fail ---


@pytest.mark.parametrize("replay", [ALL, Replay(last=9)], ids=["all", "last"])
def test_an_answer_that_fails_is_a_gap_and_the_subscription_goes_on(replay: Replay) -> None:
    world = answering()
    far = world.meet("x")
    far.accept(old("2", 2))
    found = answer(world, subscribe(world, replay), (old("1", 1),), reason="it broke")
    gap = f"{WHO}: it broke"
    assert sorted(ids(found)) == sorted([gap, "2"] if replay.picks else ["1", gap, "2"])
    assert ids(far.publish(old("3", 3))) == ["3"]


@pytest.mark.parametrize("replay", [ALL, Replay(last=9)], ids=["all", "last"])
def test_a_client_that_does_not_answer_is_a_gap_and_not_waited_for(replay: Replay) -> None:
    world = answering()
    world.meet("x").accept(old("2", 2))
    found = subscribe(world, replay)
    world.now += 1000
    world.tell("b", ClockSet(1000))
    world.now += CLIENT_WITHIN - 1
    assert not ids(found + world.tell("b", Tick()))
    world.now += 2
    assert sorted(ids(world.tell("b", Tick()))) == ["2", f"{WHO}: no answer for 20 s"]


def test_a_long_reason_is_cut_off() -> None:
    world = answering()
    (told,) = ids(answer(world, subscribe(world), reason="x" * 10_000))
    assert told == f"{WHO}: {'x' * 300}"


def test_an_answer_to_an_earlier_life_of_the_broker_is_not_taken_for_another() -> None:
    (before,), (after,) = recalls(subscribe(answering())), recalls(subscribe(answering(), Replay(since=0)))
    assert before.number == after.number, "at the same time"
    world = answering()
    world.now += 1
    (after,) = recalls(subscribe(world))
    assert after.number != before.number


def gone(world: World) -> Message:
    return Gone("h")


def withdrawn(world: World) -> Message:
    return Unadvertise("r")


def lapsed(world: World) -> Message:
    world.now += 61
    return Tick()


@pytest.mark.parametrize("end", [gone, withdrawn, lapsed])
@pytest.mark.parametrize("replay", [ALL, Replay(last=9)], ids=["all", "last"])
def test_a_client_that_leaves_while_it_is_asked_is_a_gap(end: object, replay: Replay) -> None:
    world = answering(leases=Leases(60.0))
    assert callable(end)
    (recall,) = recalls(subscribe(world, replay))
    world.tell("h", Recalled(recall.number, (old("1", 1),)))
    message = end(world)
    found = world.tell("b" if isinstance(message, Gone | Tick) else "h", message)
    assert OriginGone(HISTORY) in sent_to(found, "u")
    assert f"{WHO} cannot be reached" in ids(found) or isinstance(message, Tick)
    assert not world.tell("h", Recalled(recall.number, (old("2", 2),)))
    fetch = world.tell("c", Fetch(ACME, ALL, request=5))
    assert not recalls(fetch) and fetched(fetch) == ([], ())


def test_a_client_that_returns_is_asked_again() -> None:
    world = answering()
    world.tell("b", Gone("h"))
    told = world.tell("h", Advertise("r", ACME, lease=60.0, replays=True))
    assert OriginHere(HISTORY, history=True) in sent_to(told, "u")
    assert ids(answer(world, subscribe(world), (old("1", 1),))) == ["1"]


def test_an_advertisement_that_is_changed_is_asked_for_as_it_is_now() -> None:
    world = answering(CHEAP)
    world.tell("h", Advertise("r", ACME, lease=60.0, replays=True))
    (recall,) = recalls(subscribe(world))
    assert recall.filter == ACME
    found = world.tell("h", Advertise("r", ACME, lease=60.0))
    assert OriginGone(HISTORY) in sent_to(found, "u"), "it is not answered for any more"


# --- other brokers ---


def test_other_brokers_are_told_of_a_history_and_it_is_no_broker() -> None:
    world = answering(neighbours=("u",))
    assert OriginHere(HISTORY, history=True) in sent_to(world.tell("b", LinkUp("v")), "v")
    far = Origin.of_client("x", "h", "r")
    world.handle("u", OriginHere(Origin("x", 1)))
    world.handle("u", OriginHere(far, history=True))
    topology = world.broker.topology
    assert topology.brokers() == {"b", "x"} and topology.through("u") == {"x"}
    assert topology.next_hop_to(far.broker) is None and topology.next_hop(far) == "u"
    world.handle("u", OriginGone(far))
    assert far not in topology.histories


def test_another_broker_gets_pages_of_the_answer() -> None:
    world = answering(Filter.all())
    terms = ReadTerms(0, (ACME,), 1000)
    found = world.handle("u", FetchPage(HISTORY, 5, terms, 3, ("x", "y")))
    (recall,) = recalls(found)
    unwanted = Event("quote", {"symbol": "INIT"})
    found = world.handle("h", Recalled(recall.number, (old("1", 1).stamped("x", 9), unwanted, quote(1, "2"))))
    (page,) = sent_to(found, "u")
    slice = Slice(1, (old("1", 1), quote(1, "2")), 4, None, "", (100 * MICROS,) * 2, page.page.size, (1, 3), end=4)  # type: ignore[attr-defined]
    assert page == PageRead(HISTORY, 5, slice, 5, ("x", "y"))
    (recall,) = recalls(world.handle("u", FetchPage(HISTORY, 6, ReadTerms(4, (ACME,), 1000), 3, ("x", "y"))))
    assert recall.skip == 3
    (page,) = sent_to(world.handle("h", Recalled(recall.number)), "u")
    assert page == PageRead(HISTORY, 6, Slice(4, (), 4, end=4), 4, ("x", "y"))


def test_a_history_at_another_broker_that_is_lost_is_a_gap() -> None:
    world = World()
    far = Origin.of_client("x", "h", "r")
    world.handle("u", OriginHere(far, history=True))
    (read,) = [one for one in asked(subscribe(world)) if one.origin == far]
    found = world.tell("u", PageRead(far, read.request, Slice(1, (old("1", 1),), 2, None, "", (1,), 9, (1,), end=2), 3))
    assert ids(found) == ["1"] and [one.terms.start for one in asked(found)] == [2]
    assert ids(world.tell("u", OriginGone(far))) == ["the history r of client h at x cannot be reached"]
