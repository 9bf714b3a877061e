"""The ways to logs: one for each, and neighbours hear of a loss before they hear of another way."""

from __future__ import annotations

from vestnik import Filter
from vestnik.recovery.topology import Say, Topology
from vestnik.wire.origins import Offer, Origin, OriginGone, OriginHere, OriginOffers

B, X, Y = Origin("b", 1), Origin("x", 1), Origin("y", 1)
NONE: frozenset[Offer] = frozenset()
SOME = frozenset([Offer(1, Filter.all())])


def linked(*neighbours: str) -> Topology:
    topology = Topology(B)
    for neighbour in neighbours:
        topology.link_up(neighbour)
    return topology


def test_a_new_neighbour_is_told_what_can_be_reached_without_it_and_the_own_log_last() -> None:
    topology = linked("u")
    topology.here("u", X, SOME)
    told = [Say("v", OriginHere(X, SOME)), Say("v", OriginHere(B))]
    assert topology.link_up("v") == told
    topology.here("u", Y, NONE)
    assert topology.repeat()[-3:] == [told[0], Say("v", OriginHere(Y)), told[1]]


def test_each_log_has_one_way() -> None:
    topology = linked("u", "v", "w")
    found = topology.here("u", X, NONE)
    assert (found.found, found.told) == ([X], [Say("v", OriginHere(X)), Say("w", OriginHere(X))])
    assert topology.here("v", X, NONE) == ([], [], []) and topology.next_hop(X) == "u"
    assert topology.offered("v", X, SOME) == (None, []), "what others say of it does not count"


def test_a_lost_way_is_told_before_another_is_used() -> None:
    topology = linked("u", "v", "w")
    topology.here("u", X, NONE)
    topology.here("v", X, SOME)
    moved = topology.link_down("u")
    assert (moved.lost, moved.found) == ([X], [X]) and topology.next_hop(X) == "v"
    assert moved.told == [Say("v", OriginGone(X)), Say("w", OriginGone(X)), Say("w", OriginHere(X, SOME))]


def test_a_way_that_is_lost_and_made_again_is_no_way_that_lasted() -> None:
    topology = linked("u", "v")
    topology.here("u", X, NONE)
    assert topology.gone("u", X).told == [Say("v", OriginGone(X))]
    assert topology.here("u", X, NONE).told == [Say("v", OriginHere(X))]
    assert topology.gone("v", Y) == ([], [], []), "it was not here"


def test_offers_are_told_on_and_only_if_they_change() -> None:
    topology = linked("u", "v")
    topology.here("u", X, NONE)
    assert topology.offered("u", X, SOME) == (NONE, [Say("v", OriginOffers(X, SOME))])
    assert topology.offered("u", X, SOME) == (SOME, [])
    assert topology.offered("u", Y, SOME) == (None, [])
    assert topology.offer(SOME) == [Say("u", OriginOffers(B, SOME)), Say("v", OriginOffers(B, SOME))]
    assert topology.offer(SOME) == []


def test_who_is_where() -> None:
    topology = linked("u", "v")
    topology.here("u", X, NONE)
    topology.here("u", Origin("u", 1), NONE)
    topology.here("v", Y, NONE, history=True)
    assert topology.histories == {Y}
    assert topology.brokers() == {"b", "u", "x", "y"} and topology.brokers(without="u") == {"b", "y"}
    assert (
        topology.through("u") == {"u", "x"} and topology.next_hop_to("x") == "u" and topology.next_hop_to("z") is None
    )
    assert Say("u", OriginHere(Y, NONE, history=True)) in topology.repeat()


def test_the_own_log_is_not_reached_through_others() -> None:
    topology = linked("u")
    assert topology.here("u", Origin("b", 9), NONE).found == [] and topology.next_hop(Origin("b", 9)) is None
