"""The past is handed over as the client takes it, and what comes meanwhile does not pile up."""

from __future__ import annotations

import pytest

from broker.test_core import CHEAP, DEAR, World, quote
from vestnik import Event, Filter
from vestnik.broker import behind, catching, clients
from vestnik.broker.effects import Drained, Effect, Full, LinkDown, LinkUp, Past, Read, Send, Tick
from vestnik.wire.messages import (
    Accepted,
    Addressed,
    Ask,
    Forward,
    Last,
    Notify,
    Position,
    Reach,
    Recall,
    Recalled,
    Subscribe,
    Taken,
    Unsubscribe,
)
from vestnik.wire.replays import Replay

ALL = Replay(all=True)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "ROOM", 3)
    monkeypatch.setattr(catching, "MOST_LIVE", 4)


def old(seq: int, broker: str = "b") -> Event:
    return quote(5, f"{broker}-{seq}", stream=(broker, "nyse"), seq=seq)


def took(*seqs: int, broker: str = "b") -> tuple[Taken, ...]:
    return tuple([Taken(seq, 10 * seq, old(seq, broker)) for seq in seqs])


def reads(effects: list[Effect]) -> list[Read]:
    return [effect for effect in effects if isinstance(effect, Read)]


def ids(effects: list[Effect]) -> list[str]:
    """What a client gets: ids of events, and why some are missing."""
    messages = [effect.message for effect in effects if isinstance(effect, Send) and effect.to == "c"]
    deliveries = [delivery for message in messages if isinstance(message, Notify) for delivery in message.deliveries]
    return [delivery.event.id if delivery.event else delivery.gap for delivery in deliveries]


def begun(world: World, replay: Replay = ALL) -> Read:
    (read,) = reads(world.tell("c", Subscribe("s", CHEAP, keep=2, afresh=7, replay=replay)))
    return read


def has(world: World, number: int) -> list[Effect]:
    return world.tell("c", Ask((Position("s", 7, number),)))


def test_as_much_is_sent_as_the_client_has_room_for() -> None:
    world = World(neighbours=())
    read = begun(world)
    effects = world.tell("b", Past(read, Recalled(1, took(1, 2, 3, 4, 5), 5, 9)))
    assert ids(effects) == ["b-1", "b-2", "b-3"] and Send("c", Last(((7, 4),))) in effects
    (more,) = reads(effects)
    assert (more.recall.after, more.recall.upto) == (5, 9), "the next part is asked for meanwhile"
    assert ids(world.tell("b", Past(more, Recalled(1, took(6, 7, 8, 9), 9, 9)))) == []
    assert ids(has(world, 2)) == ["b-4", "b-5"]
    assert len(world.broker.clients["c"].subscriptions["s"].kept) <= 2 + 3
    assert ids(has(world, 5)) == ["b-6", "b-7", "b-8"]
    effects = has(world, 8)
    assert ids(effects) == ["b-9"] and not [e for e in effects if isinstance(e, Send) and isinstance(e.message, Last)]
    assert ids(world.tell("b", Forward((quote(5, "new", stream=("u", "nyse"), seq=1),)))) == ["new"]


def test_who_does_not_take_what_is_sent_is_told_when_it_does_that_there_is_more() -> None:
    world = World(neighbours=())
    read = begun(world)
    world.tell("b", Full("c"))
    assert ids(world.tell("b", Past(read, Recalled(1, took(1, 2, 3, 4), 4, 4)))) == []
    assert world.tell("b", Drained("c")) == [Send("c", Last(((7, 4),)))]
    assert ids(has(world, 3)) == ["b-4"]


@pytest.mark.parametrize("replay", [ALL, Replay(last=9)], ids=["all", "last"])
def test_what_comes_meanwhile_and_is_too_much_is_recalled(replay: Replay) -> None:
    world = World(neighbours=())
    read = begun(world, replay)
    world.tell("b", LinkUp("u"))
    world.tell("u", Reach((("u", 0),)))
    assert ids(world.tell("u", Forward((old(1, "u"),)))) == [], "u was not asked: what it took cannot be recalled"
    for seq in range(3, 9):
        assert ids(world.tell("b", Forward((old(seq),)))) == []
    replaying = world.broker.clients["c"].subscriptions["s"].replaying
    assert replaying is not None and len(replaying.live) <= 4
    effects = world.tell("b", Past(read, Recalled(1, took(1, 2), 2, 2)))
    assert ids(effects) == ["b-1", "b-2"]
    (rest,) = reads(effects)
    assert (rest.recall.after, rest.recall.upto, rest.recall.replay) == (2, 0, ALL)
    has(world, 2)
    effects = world.tell("b", Past(rest, Recalled(2, took(3, 4, 5, 6, 7), 7, 7)))
    assert ids(effects) == ["b-3", "b-4", "b-5"]
    effects = has(world, 5)
    assert ids(effects) == ["b-6", "b-7", "u-1", "b-8"], "what waits and is here comes last"
    assert world.broker.clients["c"].subscriptions["s"].replaying is None


def test_a_broker_that_vanishes_is_asked_for_the_rest_when_it_is_back() -> None:
    world = World(neighbours=("u",))
    world.tell("u", Reach((("u", 2),)))
    effects = world.tell("c", Subscribe("s", CHEAP, keep=2, afresh=7, replay=ALL))
    (read,) = reads(effects)
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    (number,) = [m.body.number for m in sent if isinstance(m, Addressed) and isinstance(m.body, Recall)]
    world.tell("b", Past(read, Recalled(read.recall.number, (), 0, 0)))
    for seq in range(3, 9):
        world.tell("u", Forward((old(seq, "u"),)))
    world.tell("u", Reach((("u", 8),)))
    part = Recalled(number, took(1, broker="u"), 1, 2)
    assert ids(world.tell("u", Addressed("b", "u", part))) == ["u-1"]
    effects = world.tell("b", LinkDown("u"))
    assert ids(effects) == [] and world.broker.clients["c"].subscriptions["s"].lacks == {"u": 1}
    (read,) = reads(effects)
    assert ids(world.tell("b", Past(read, Recalled(read.recall.number, (), 0, 0)))) == []
    assert world.broker.clients["c"].subscriptions["s"].replaying is None


def test_who_wants_it_no_more_is_forgotten() -> None:
    world = World(neighbours=())
    read = begun(world)
    effects = world.tell("b", Past(read, Recalled(1, took(*range(1, 5)), 4, 9)))
    (more,) = reads(effects)
    world.tell("c", Unsubscribe("s"))
    assert world.tell("b", Past(more, Recalled(1, took(5, 6), 6, 9))) == []
    world.tell("b", Tick(0))
    assert not world.broker._catch_up._recalls.held([1])


# --- causes that wait ---


def effect(seq: int, *causes: Event, price: float = 95) -> Event:
    made = Event("quote", {"price": price}, source="x", id=f"x-{seq}", causes=[(e.source, e.id) for e in causes])
    return made.replace(stream=("u", "x"), seq=seq)


def test_an_effect_waits_for_a_cause_that_waits_for_the_past_of_another_subscription() -> None:
    world = World(neighbours=())
    world.tell("c", Subscribe("live", DEAR, afresh=8))
    read = begun(world)
    assert ids(world.tell("u", Forward((old(1, "u"),)))) == []
    assert ids(world.tell("u", Forward((effect(1, quote(5, "other")),)))) == ["x-1"], "no cause of it waits"
    assert ids(world.tell("u", Forward((effect(2, old(1, "u")), effect(3))))) == [], "and what follows in its stream"
    assert ids(world.tell("u", Forward((quote(95, "q", stream=("v", "nyse"), seq=1),)))) == ["q"], "others do not wait"
    assert ids(world.tell("b", Past(read, Recalled(1, took(1), 1, 1)))) == ["b-1", "u-1", "x-2", "x-3"]
    assert ids(world.tell("u", Forward((effect(4, old(1, "u")),)))) == ["x-4"]
    assert world.broker.clients["c"].behind is None


def test_effects_come_when_the_subscription_that_they_wait_for_is_over() -> None:
    world = World(neighbours=())
    world.tell("c", Subscribe("live", DEAR, afresh=8))
    begun(world)
    world.tell("u", Forward((old(1, "u"), effect(1, old(1, "u")))))
    assert ids(world.tell("c", Unsubscribe("s"))) == ["x-1"]


def test_what_waited_for_one_subscription_may_be_an_effect_of_what_waits_for_another() -> None:
    world = World(neighbours=())
    read = begun(world)
    (other,) = reads(world.tell("c", Subscribe("other", DEAR, afresh=8, replay=ALL)))
    cause = effect(1, price=5)
    world.tell("u", Forward((cause, effect(2, cause), effect(3))))
    assert ids(world.tell("b", Past(other, Recalled(other.recall.number, (), 0, 0)))) == []
    assert ids(world.tell("b", Past(read, Recalled(1, (), 0, 0)))) == ["x-1", "x-2", "x-3"]


def test_what_waits_for_several_comes_in_order_when_all_are_there() -> None:
    world = World(neighbours=())
    wanted = {"a": Filter.parse("price = 1"), "b": Filter.parse("price = 2"), "c": Filter.parse("price = 3")}
    asked = {}
    for epoch, (name, one) in enumerate(wanted.items()):
        (asked[name],) = reads(world.tell("c", Subscribe(name, one, afresh=10 + epoch, replay=ALL)))
    first, cause = effect(1, price=3), effect(3, price=2)
    held, last = effect(2, first, price=2), effect(4, cause, price=1)
    world.tell("u", Forward((first, held, cause, last)))
    found = [ids(world.tell("b", Past(read, Recalled(read.recall.number, (), 0, 0)))) for read in asked.values()]
    assert found == [[], [], ["x-1", "x-2", "x-3", "x-4"]]


def test_effects_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "MOST", 2)
    world = World(neighbours=())
    world.tell("c", Subscribe("live", DEAR, afresh=8))
    begun(world)
    world.tell("u", Forward((old(1, "u"), effect(1, old(1, "u")), effect(2))))
    assert ids(world.tell("u", Forward((effect(3),)))) == ["x-1", "x-2", "x-3"]


# --- neighbours that have not said who is behind them ---


def recalled(effects: list[Effect]) -> dict[str, int]:
    """The brokers of which something is recalled, and the number by which it is."""
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    return {m.to: m.body.number for m in sent if isinstance(m, Addressed) and isinstance(m.body, Recall)}


def test_who_is_behind_a_new_link_is_asked_when_that_is_known() -> None:
    world = World(neighbours=("u",))
    read = begun(world)
    assert ids(world.tell("b", Past(read, Recalled(read.recall.number, took(1), 1, 1)))) == [], "not without theirs"
    asked = recalled(world.tell("u", Reach((("u", 0), ("w", 0)))))
    assert asked.keys() == {"u", "w"}
    assert ids(world.tell("u", Addressed("b", "u", Recalled(asked["u"], (), 0, 0)))) == []
    found = world.tell("u", Addressed("b", "w", Recalled(asked["w"], took(2, broker="w"), 2, 2)))
    assert ids(found) == ["b-1", "w-2"]


def test_it_is_settled_when_they_know_it_too() -> None:
    world = World(neighbours=("u",))
    effects = world.tell("c", Subscribe("s", CHEAP, afresh=7, settled=True, request=3))
    (read,) = reads(effects)

    def accepted(effects: list[Effect]) -> bool:
        return any(isinstance(e, Send) and isinstance(e.message, Accepted) and e.message.request == 3 for e in effects)

    assert not accepted(effects)
    assert not accepted(world.tell("b", Past(read, Recalled(read.recall.number, (), 0, 0))))
    asked = recalled(world.tell("u", Reach((("u", 0),))))
    assert accepted(world.tell("u", Addressed("b", "u", Recalled(asked["u"], (), 0, 0))))


def test_a_link_that_is_gone_before_is_said_to_be_missing() -> None:
    world = World(neighbours=("u",))
    read = begun(world)
    world.tell("b", Past(read, Recalled(read.recall.number, took(1), 1, 1)))
    assert ids(world.tell("b", LinkDown("u"))) == ["u: it cannot be reached", "b-1"]
