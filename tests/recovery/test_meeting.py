"""Brokers that have not said which logs they have, or are to be joined, are waited for and named."""

from __future__ import annotations

import pytest

from broker.worlds import ACME, CHEAP, PLENTY, Far, World, accepted, asked, ids, quote, sent_to
from vestnik.broker.effects import ClockSet, Effect, Gone, Joined, Joining, LinkDown, LinkUp, Tick, Wake
from vestnik.recovery.meeting import JOINED_WITHIN
from vestnik.recovery.reads import ANSWER_WITHIN
from vestnik.wire.messages import Accepted, Advertise, Fetch, Fetched, FetchMore, Message, Subscribe, Unsubscribe
from vestnik.wire.origins import Origin, OriginHere
from vestnik.wire.replays import Replay

U = Origin("u", 1)
ALL, LAST = Replay(all=True), Replay(last=5)
SILENT, ABSENT = "u has not said which logs it has", "the broker at h:1 is to be joined and is not linked"
FETCH = Fetch(ACME, ALL, request=5)
SUBSCRIBE = Subscribe("s", ACME, afresh=7, settled=True, request=3)
ADVERTISE = Advertise("a", ACME, settled=True, request=3)
PICK = Subscribe("s", ACME, afresh=7, replay=LAST)


def unmet() -> World:
    """A world in which the neighbour `u` has not said anything."""
    world = World(neighbours=("v",))
    world.tell("b", LinkUp("u"))
    return world


def speaks(world: World) -> list[Effect]:
    """Let `u` say its own log, and so that there are no others."""
    world.logs[U] = Far(world, U, "u", PLENTY)
    return world.tell("u", OriginHere(U))


def fetched(effects: list[Effect]) -> tuple[list[str], tuple[str, ...]]:
    """Return what a fetch gives when it has ended."""
    found = [one for one in sent_to(effects, "c") if isinstance(one, Fetched)]
    assert found and not found[-1].more
    return [event.id for one in found for event in one.events], found[-1].lost


def said(world: World, sender: str, message: Message) -> list[Accepted]:
    """Return the answers to a request that is to be settled."""
    return [one for one in accepted(world.tell(sender, message)) if one.request]


def test_a_fetch_waits_until_a_neighbour_has_said_all_its_logs() -> None:
    world = unmet()
    effects = world.tell("c", FETCH)
    assert effects == [Wake(ANSWER_WITHIN)]
    assert world.tell("c", FETCH) == [], "it was asked before"
    assert world.tell("c", FetchMore(request=5)) == []
    world.meet("x").accept(quote(1, "1"))
    assert not sent_to(world.tell("b", Tick()), "c"), "it may have other logs"
    assert fetched(speaks(world)) == (["1"], ())


def test_a_neighbour_that_says_nothing_is_named_in_the_end() -> None:
    world = unmet()
    world.tell("c", FETCH)
    world.now = ANSWER_WITHIN
    assert fetched(world.tell("b", Tick())) == ([], (SILENT,))
    assert fetched(world.tell("c", FETCH)) == ([], (SILENT,)), "nobody waits for it again"
    world.tell("b", LinkDown("u"))
    assert fetched(world.tell("c", FETCH)) == ([], ())


def test_a_neighbour_that_goes_is_not_waited_for() -> None:
    world = unmet()
    world.tell("c", FETCH)
    assert fetched(world.tell("b", LinkDown("u"))) == ([], ())


def test_a_neighbour_that_comes_again_is_waited_for_anew() -> None:
    world = unmet()
    speaks(world)
    world.tell("b", LinkDown("u"))
    world.tell("b", LinkUp("u"))
    assert not sent_to(world.tell("c", FETCH), "c")


def test_the_clock_may_be_set_meanwhile() -> None:
    world = unmet()
    world.tell("c", FETCH)
    world.now = 1000.0
    world.tell("b", ClockSet(1000.0))
    assert not sent_to(world.tell("b", Tick()), "c")
    world.now += ANSWER_WITHIN
    assert fetched(world.tell("b", Tick())) == ([], (SILENT,))


def test_a_client_that_goes_meanwhile_gets_nothing() -> None:
    world = unmet()
    world.tell("c", FETCH)
    world.tell("b", Gone("c"))
    assert sent_to(world.tell("b", LinkDown("u")), "c") == []


def test_what_is_picked_is_picked_of_all_neighbours() -> None:
    world = unmet()
    world.now = 10.0
    world.publish("p", quote(1, "1"))
    assert ids(world.tell("c", PICK)) == []
    far = world.meet("x")
    far.accept(quote(2, "2"), time=1)
    far.accept(quote(3, "3"), time=12_000_000)
    world.publish("p", quote(4, "4"))
    world.silent = {far.origin}
    effects = speaks(world)
    assert [read.terms.pick for read in asked(effects) if read.origin == far.origin] == [LAST]
    world.silent = set()
    assert ids(world.answer(effects)) == ["2", "1", "4", "3"], "what came meanwhile is not of the past"


def test_what_is_picked_names_a_neighbour_that_says_nothing_and_one_that_is_to_be_joined() -> None:
    world = unmet()
    world.tell("b", Joining("h:1"))
    world.publish("p", quote(1, "1"))
    assert ids(world.tell("c", PICK)) == []
    world.now = ANSWER_WITHIN
    assert ids(world.tell("b", Tick())) == [SILENT, ABSENT, "1"]


def test_another_filter_while_a_pick_waits_picks_by_that() -> None:
    world = unmet()
    world.publish("p", quote(1, "1"), quote(50, "2"))
    world.tell("c", PICK)
    cheap = Subscribe("s", CHEAP, epoch=7, afresh=8, replay=LAST)
    assert ids(world.tell("c", cheap)) == []
    assert ids(world.tell("b", LinkDown("u"))) == ["1"]


def test_a_pick_that_has_ended_meanwhile_is_for_nobody() -> None:
    world = unmet()
    world.tell("c", PICK)
    world.tell("c", Unsubscribe("s"))
    assert world.tell("b", LinkDown("u")) == []


@pytest.mark.parametrize("message", [SUBSCRIBE, ADVERTISE])
def test_what_is_to_be_settled_waits_for_neighbours_and_for_joins(message: Message) -> None:
    world = unmet()
    world.tell("b", Joining("h:1"))
    assert said(world, "c", message) == []
    assert not [one for one in accepted(speaks(world)) if one.request]
    (answer,) = said(world, "b", Joined("h:1"))
    assert answer.missing == ()


@pytest.mark.parametrize("message", [SUBSCRIBE, ADVERTISE])
def test_who_does_not_know_of_what_is_settled_is_named(message: Message) -> None:
    world = unmet()
    speaks(world)
    world.tell("b", Joining("h:1"))
    effects = world.tell("c", message)
    assert Wake(JOINED_WITHIN) in effects and not [one for one in accepted(effects) if one.request]
    world.now = JOINED_WITHIN
    (answer,) = said(world, "b", Tick())
    assert answer.missing == (ABSENT,)
    world.tell("b", Joining("h:1"))
    (answer,) = said(world, "c", message)
    assert answer.missing == (ABSENT,), "it was waited for before"


def test_a_fetch_names_the_joins_that_are_not_linked_and_does_not_wait() -> None:
    world = World()
    world.tell("b", Joining("h:1"))
    assert fetched(world.tell("c", FETCH)) == ([], (ABSENT,))
    world.tell("b", Joined("h:1"))
    assert fetched(world.tell("c", FETCH)) == ([], ())


def test_what_is_settled_names_logs_that_are_known_and_out_of_reach() -> None:
    world = World()
    world.meet("x")
    world.tell("b", LinkDown("u"))
    (answer,) = said(world, "c", SUBSCRIBE)
    assert answer.missing == ("x cannot be reached",)
