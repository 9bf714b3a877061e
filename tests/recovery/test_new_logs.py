"""A log that was never seen is read once for all readers, and each gets what was accepted since it was made."""

from __future__ import annotations

import pytest

from broker.worlds import ACME, CHEAP, PLENTY, Far, World, accepted, asked, ids, quote
from vestnik import Event
from vestnik.broker.effects import Effect, LinkDown, LinkUp, Tick, Wake
from vestnik.model.times import MICROS
from vestnik.wire.messages import Position, Subscribe, Took
from vestnik.wire.origins import Origin, OriginHere
from vestnik.wire.replays import Replay

X = Origin("x", 1)


def unseen(*accepted_at: int, room: int = PLENTY) -> tuple[World, Far]:
    """A world in which `c` subscribes at 10, and `d` at 20; and a log with events of these times, not seen yet."""
    world = World()
    far = world.logs[X] = Far(world, X, "u", room)
    for number, at in enumerate(accepted_at, start=1):
        far.accept(event(number), time=at * MICROS)
    for client, now in (("c", 10.0), ("d", 20.0)):
        world.now = now
        world.tell(client, Subscribe("s", ACME, afresh=7))
    world.now = 30.0
    return world, far


def event(number: int) -> Event:
    return quote(1, str(number), time=number)


def seen(world: World) -> list[Effect]:
    return world.tell("u", OriginHere(X))


def test_readers_share_one_read_and_get_what_was_accepted_since_they_were_made() -> None:
    world, far = unseen(5, 15, 25)
    effects = seen(world)
    assert (ids(effects, "c"), ids(effects, "d")) == (["2", "3"], ["3"])
    assert len(far.asked) == 1
    assert [dict(accepted(effects, client)[-1].seen)["x/1"] for client in "cd"] == [4, 4]
    effects = far.publish(event(4))
    assert ids(effects, "c") == ids(effects, "d") == ["4"]


def test_what_a_log_accepts_while_it_is_read_is_not_of_the_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of its broker may be behind."""
    monkeypatch.setattr("vestnik.recovery.reading.PAGE", 1)
    world, far = unseen(15, 15)
    world.silent = {X}
    (read,) = asked(seen(world))
    page = far.page(read)
    far.accept(event(3), time=15 * MICROS)
    world.silent = set()
    effects = world.tell("u", page)
    assert (ids(effects, "c"), ids(effects, "d")) == (["1", "2", "3"], ["3"])


def test_a_log_that_has_dropped_events_is_read_by_each() -> None:
    """A reader that was made after the last dropped event is told of no gap."""
    world, far = unseen(15, 16, 25, room=0)
    effects = seen(world)
    assert (ids(effects, "c"), ids(effects, "d")) == (["x/1 1-3", "3"], ["3"])
    effects = far.publish(event(4))
    assert ids(effects, "c") == ids(effects, "d") == ["4"]


def test_a_reader_without_room_goes_on_by_itself() -> None:
    world, _ = unseen(5, 15, 25)
    world.tell("e", Subscribe("s", ACME, afresh=7, window=1, made=8 * MICROS))
    effects = seen(world)
    assert (ids(effects, "c"), ids(effects, "d"), ids(effects, "e")) == (["2", "3"], ["3"], ["2"])
    assert ids(world.tell("e", Took((Position("s", 7, 1),))), "e") == ["3"]


def test_another_filter_while_a_new_log_is_read_gets_nothing_from_before() -> None:
    world, far = unseen(5, 15, 25)
    world.silent = {X}
    seen(world)
    effects = world.handle("d", Subscribe("s", CHEAP, epoch=7, afresh=8))
    world.silent = set()
    assert ids(world.answer(effects), "d") == ["3"]
    assert ids(far.publish(event(4)), "d") == ["4"]


def test_cursors_of_a_log_are_not_said_while_readers_differ_in_them() -> None:
    world, _ = unseen(5, 15, 25)
    world.silent = {X}
    seen(world)
    (told,) = accepted(world.tell("d", Subscribe("s", ACME, epoch=7, afresh=8, request=1)), "d")
    assert "x/1" not in dict(told.seen)


def test_an_event_from_before_does_not_hide_its_repeat_at_another_broker() -> None:
    world, _ = unseen(15)
    effects = seen(world)
    assert (ids(effects, "c"), ids(effects, "d")) == (["1"], [])
    again = world.publish("p", event(1))
    assert (ids(again, "c"), ids(again, "d")) == ([], ["1"])


def test_a_replay_reads_a_new_log_by_itself() -> None:
    world, _ = unseen(5, 15, 25)
    world.tell("e", Subscribe("s", ACME, afresh=7, replay=Replay(all=True)))
    effects = seen(world)
    assert (ids(effects, "d"), ids(effects, "e")) == (["3"], ["1", "2", "3"])


def test_a_new_log_that_is_lost_is_read_again_from_when_readers_were_made() -> None:
    world, _ = unseen(5, 15, 25)
    world.silent = {X}
    seen(world)
    world.tell("b", LinkDown("u"))
    world.silent = set()
    world.tell("b", LinkUp("u"))
    effects = seen(world)
    assert (ids(effects, "c"), ids(effects, "d")) == (["2", "3"], ["3"])


def test_clients_are_told_how_far_they_have_come_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.recovery.giving.STEPS", 3)
    world = World()
    for number in range(7):
        world.tell(f"c{number}", Subscribe("s", ACME, afresh=7))
    world.logs[X] = Far(world, X, "u", PLENTY)
    effects, told = seen(world), 0
    while effects:
        told += sum(len(accepted(effects, f"c{number}")) for number in range(7))
        effects = world.tell("b", Tick()) if Wake(world.now) in effects else []
    assert told == 7
