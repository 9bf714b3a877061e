"""What was missed is handed over as the client takes it, and what comes meanwhile does not pile up."""

from __future__ import annotations

import pytest

from broker.test_core import CHEAP, DEAR, World
from broker.test_flowing import effect, ids, old, reads, took
from vestnik import Filter
from vestnik.broker import clients, missed
from vestnik.broker.effects import Effect, LinkDown, LinkUp, Past, Read, Send
from vestnik.wire.messages import (
    Addressed,
    Ask,
    Forward,
    Last,
    NodeId,
    Position,
    Reach,
    Recall,
    Recalled,
    Subscribe,
    Taken,
    Unsubscribe,
)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "ROOM", 3)
    monkeypatch.setattr(missed, "MOST_LATE", 4)
    monkeypatch.setattr("vestnik.broker.confluence.FEW_HERE", 2)


def begun(world: World, name: str = "s", wanted: Filter = CHEAP, epoch: int = 7, client: NodeId = "c") -> Read:
    """A subscription that lacks all that its own broker took."""
    message = Subscribe(name, wanted, lease=60, keep=2, afresh=epoch, seen=(("b", 0),))
    (read,) = reads(world.tell(client, message))
    return read


def has(world: World, number: int) -> list[Effect]:
    return world.tell("c", Ask((Position("s", 7, number),)))


def recalls(effects: list[Effect]) -> list[tuple[NodeId, Recall]]:
    """What other brokers are asked for."""
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    return [(m.to, m.body) for m in sent if isinstance(m, Addressed) and isinstance(m.body, Recall)]


def missing(world: World) -> missed.MakingUp:
    found = world.broker.clients["c"].making_up
    assert found is not None
    return found


def test_as_much_is_sent_as_the_client_has_room_for() -> None:
    world = World()
    effects = world.tell("b", Past(begun(world), Recalled(1, took(1, 2, 3, 4, 5), 5, 9)))
    assert ids(effects) == ["b-1", "b-2", "b-3"] and Send("c", Last(((7, 4),))) in effects
    assert not reads(effects), "what is here is enough for now"
    effects = has(world, 2)
    assert ids(effects) == ["b-4", "b-5"]
    (more,) = reads(effects)
    assert (more.recall.after, more.recall.upto) == (5, 0)
    assert ids(world.tell("b", Past(more, Recalled(2, took(6, 7), 7, 7)))) == []
    assert len(world.broker.clients["c"].subscriptions["s"].kept) <= 2 + 3
    assert ids(world.tell("b", Forward((old(8),)))) == [], "it comes behind what is missing"
    assert ids(has(world, 5)) == ["b-6", "b-7", "b-8"]
    assert world.broker.clients["c"].making_up is None


def test_what_is_lost_of_a_part_is_told_before_it() -> None:
    world = World()
    read = begun(world)
    assert ids(world.tell("b", Past(read, Recalled(1, took(3, 4), 4, 4, more=True)))) == []
    assert ids(world.tell("b", Past(read, Recalled(1, (), 4, 4, "no more")))) == ["b: no more", "b-3", "b-4"]


def test_others_do_not_wait_for_a_client_that_takes_nothing() -> None:
    world = World()
    world.tell("u", Reach((("u", 0),)))
    for client in ("c", "d"):
        world.tell(client, Subscribe("s", CHEAP, lease=60, afresh=7))
    world.tell("b", LinkDown("u"))
    world.tell("b", LinkUp("u"))
    ((_, first),) = recalls(world.tell("u", Reach((("u", 0),))))
    world.tell("d", Ask((Position("s", 7, 0),)))
    effects = world.tell("u", Addressed("b", "u", Recalled(first.number, took(1, 2, 3, broker="u"), 3, 9)))
    ((_, second),) = recalls(effects)
    assert (second.number, second.after, second.upto) == (first.number, 3, 9)
    world.tell("d", Ask((Position("s", 7, 3),)))
    effects = world.tell("u", Addressed("b", "u", Recalled(first.number, took(4, 5, 6, broker="u"), 6, 9)))
    assert [e.to for e in effects if isinstance(e, Send) and e.to in "cd"] == ["c", "d", "d"], (
        "what comes, and there is more"
    )
    ((_, third),) = recalls(effects)
    assert (third.number, third.after) == (first.number, 6), "d goes on"
    effects = world.tell("u", Addressed("b", "u", Recalled(first.number, took(7, 8, 9, broker="u"), 9, 9)))
    assert ids(effects) == []
    effects = has(world, 3)
    assert ids(effects) == ["u-4", "u-5", "u-6"]
    ((_, own),) = recalls(effects)
    has(world, 6)
    assert own.number != first.number and own.after == 6, "c is asked for by itself"
    assert ids(world.tell("u", Addressed("b", "u", Recalled(own.number, took(7, 8, 9, broker="u"), 9, 9)))) == [
        "u-7",
        "u-8",
        "u-9",
    ]


def test_a_subscription_without_room_does_not_leave_others_waiting_for_ever() -> None:
    world = World()
    read = begun(world)
    other = begun(world, "t", DEAR, 8)
    dear = tuple([Taken(n, 10 * n, old(n).replace(data={"price": 95})) for n in range(1, 6)])
    world.tell("b", Past(read, Recalled(1, took(6, 7), 7, 7)))
    effects = world.tell("b", Past(other, Recalled(2, dear, 5, 5)))
    assert ids(effects) == ["b-1", "b-2", "b-3"] and Send("c", Last(((8, 4),))) in effects
    assert ids(world.tell("c", Ask((Position("t", 8, 3),)))) == ["b-4", "b-5", "b-6", "b-7"]


def test_it_goes_on_as_long_as_all_have_room() -> None:
    world = World()
    read = begun(world)
    other = begun(world, "t", DEAR, 8)
    dear = tuple([Taken(n, 10 * n, old(n).replace(data={"price": 95})) for n in (1, 3, 5)])
    world.tell("b", Past(read, Recalled(1, took(2, 4, 6), 6, 6)))
    effects = world.tell("b", Past(other, Recalled(2, dear, 5, 5)))
    assert ids(effects) == ["b-1", "b-2", "b-3", "b-4", "b-5"] and Send("c", Last(((8, 4),))) in effects
    assert ids(world.tell("c", Ask((Position("t", 8, 3),)))) == ["b-6"]


def test_who_is_behind_is_asked_for_though_much_is_here_for_others() -> None:
    world = World()
    read = begun(world)
    other = begun(world, "t", DEAR, 8)
    world.tell("b", Past(read, Recalled(1, took(2, 3, 4, 5, 6), 6, 9)))
    dear = Taken(1, 10, old(1).replace(data={"price": 95}))
    effects = world.tell("b", Past(other, Recalled(2, (dear,), 1, 9)))
    assert ids(effects) == ["b-1"], "there may be more before what is here"
    assert [(read.recall.number, read.recall.after) for read in reads(effects)] == [(2, 1)]


def test_what_comes_meanwhile_and_is_too_much_is_recalled() -> None:
    world = World()
    world.tell("u", Reach((("u", 20),)))
    read = begun(world)
    for seq in range(21, 28):
        assert ids(world.tell("u", Forward((old(seq, "u"),)))) == []
        assert len(missing(world)._late) <= 4
    effects = world.tell("b", Past(read, Recalled(1, took(1, 2), 2, 2)))
    assert ids(effects) == [], "it is not known what comes first"
    ((to, recall),) = recalls(effects)
    assert (to, recall.after) == ("u", 20)
    world.tell("u", Forward((old(28, "u"), old(29, "u"))))
    found = took(*range(21, 29), broker="u")
    effects = world.tell("u", Addressed("b", "u", Recalled(recall.number, found, 28, 28)))
    assert ids(effects) == ["b-1", "b-2", "u-21"]
    assert ids(has(world, 3)) == ["u-22", "u-23", "u-24"]
    assert ids(has(world, 6)) == ["u-25", "u-26", "u-27"]
    assert ids(has(world, 9)) == ["u-28", "u-29"], "what waited and is here comes last, and once"
    assert world.broker.clients["c"].making_up is None


def test_what_is_dropped_while_it_is_asked_for_is_asked_for_again() -> None:
    world = World()
    read = begun(world)
    for seq in range(3, 10):
        world.tell("b", Forward((old(seq),)))
    effects = world.tell("b", Past(read, Recalled(1, took(1, 2), 2, 2)))
    (rest,) = reads(effects)
    assert ids(effects) == ["b-1", "b-2"] and rest.recall.after == 2
    assert ids(world.tell("b", Past(rest, Recalled(2, took(*range(3, 10)), 9, 9)))) == ["b-3"]


def test_what_waits_of_a_broker_that_is_gone_and_is_too_much_comes_when_it_is_back() -> None:
    world = World()
    world.tell("u", Reach((("u", 20),)))
    read = begun(world)
    world.tell("u", Forward((old(21, "u"), old(22, "u"))))
    world.tell("u", Reach((("u", 22),)))
    world.tell("b", LinkDown("u"))
    for seq in range(3, 6):
        world.tell("b", Forward((old(seq),)))
    world.tell("b", Past(read, Recalled(1, took(1, 2, 3, 4, 5), 5, 5)))
    (rest,) = reads(has(world, 3))
    assert ids(world.tell("b", Past(rest, Recalled(2, (), 5, 5)))) == []
    world.tell("b", LinkUp("u"))
    ((_, recall),) = recalls(world.tell("u", Reach((("u", 22),))))
    assert recall.after == 20


def test_what_cannot_be_recalled_is_said_to_be_lost() -> None:
    world = World()
    read = begun(world)
    for seq in range(1, 6):
        world.tell("u", Forward((old(seq, "far"),)))
    effects = world.tell("b", Past(read, Recalled(1, (), 0, 0)))
    assert ids(effects) == ["more than 10,000 came before all that precedes them", "far-4", "far-5"]


def test_an_effect_that_was_missed_waits_for_a_cause_that_came_meanwhile() -> None:
    world = World()
    world.tell("u", Reach((("u", 0),)))
    read = begun(world)
    world.tell("u", Forward((old(1, "u"), old(2, "u"))))
    late = Taken(3, 30, effect(1, old(1, "u"), price=5).replace(stream=("b", "x"), seq=1))
    effects = world.tell("b", Past(read, Recalled(1, (*took(1), late, *took(4)), 4, 4)))
    assert ids(effects) == ["b-1", "u-1", "x-1"]
    assert ids(has(world, 3)) == ["b-4", "u-2"]


def test_a_broker_that_vanishes_is_asked_again_behind_what_it_sent() -> None:
    world = World()
    world.tell("u", Reach((("u", 9),)))
    ((_, recall),) = recalls(world.tell("c", Subscribe("s", CHEAP, lease=60, afresh=7, seen=(("u", 0),))))
    found = took(1, 2, 3, 4, 5, broker="u")
    assert ids(world.tell("u", Addressed("b", "u", Recalled(recall.number, found, 5, 9)))) == ["u-1", "u-2", "u-3"]
    world.tell("u", Forward((old(10, "u"),)))
    world.tell("b", LinkDown("u"))
    assert ids(has(world, 3)) == ["u-4", "u-5"], "not what came behind what is missing"
    world.tell("b", LinkUp("u"))
    ((_, recall),) = recalls(world.tell("u", Reach((("u", 10),))))
    assert recall.after == 5


def test_a_subscription_that_ends_is_not_waited_for() -> None:
    world = World()
    read = begun(world)
    begun(world, "t", DEAR, 8)
    assert ids(world.tell("b", Past(read, Recalled(1, took(1), 1, 1)))) == []
    assert ids(world.tell("c", Unsubscribe("t"))) == ["b-1"]
