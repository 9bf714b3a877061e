"""A message names the logs of its events; copies in a history are of no log."""

from __future__ import annotations

from msgspec.structs import replace

from broker.worlds import ACME, World, asked, quote, sent_to
from vestnik.broker.core import OwnLog
from vestnik.broker.effects import Effect
from vestnik.broker.naming import NamedLogs
from vestnik.recovery.flight import gap_in_flight, single
from vestnik.session.acts import Hand, Say
from vestnik.session.session import Session
from vestnik.wire.messages import Answer, Ask, Gap, Notify, Position, Subscribe
from vestnik.wire.origins import Origin, OriginHere, PageRead, Slice
from vestnik.wire.replays import Replay

H = Origin("h", 1)


def named(effects: list[Effect]) -> list[tuple[list[str], tuple[tuple[str, int], ...]]]:
    """Return the ids of events in each message, and the logs that it names."""
    found = [one for one in sent_to(effects, "c") if isinstance(one, Notify | Answer)]
    parts = [(one.deliveries if isinstance(one, Notify) else one.kept, one.logs) for one in found]
    return [([one.event.id for one in part if one.event], logs) for part, logs in parts]


def late_copy() -> tuple[World, list[Effect]]:
    """Let a replay give the event 2 of the own log, and then a copy of the event 1, which came late to a history."""
    world = World(log=OwnLog(room=1))
    world.handle("v", OriginHere(H, history=True))
    world.publish("p", quote(1, "1", time=1), quote(1, "2", time=2))
    effects = world.tell("c", Subscribe("s", ACME, afresh=7, replay=Replay(all=True)))
    (read,) = [one for one in asked(effects) if one.origin == H]
    copies = quote(1, "y", time=3).stamped("y", 5), quote(1, "1", time=1).stamped("b", 1)
    page = Slice(0, copies, 13, None, "", (3, 4), 0, (11, 12))
    return world, world.tell("v", PageRead(H, read.request, page, 13))


def test_a_copy_is_not_taken_for_an_event_of_a_log_that_the_client_has_passed() -> None:
    _, effects = late_copy()
    assert named(effects) == [(["2", "y"], (("b", 1),)), (["1"], ())]
    client = Session("c", lambda low, high: low)
    (say, *_) = client.subscribe("s", ACME, 0.0, replay=Replay(all=True))
    assert isinstance(say, Say) and isinstance(say.message, Subscribe)
    epoch = say.message.afresh
    told = [one for one in sent_to(effects, "c") if isinstance(one, Notify)]
    acts = [act for one in told for act in client.handle(in_numbering(epoch, one), 1.0)]
    assert [act.event.id for act in acts if isinstance(act, Hand)] == ["2", "y", "1"]


def test_a_client_that_asks_for_copies_again_is_told_the_same_logs() -> None:
    world, _ = late_copy()
    assert named(world.tell("c", Ask((Position("s", 7, 0),)))) == [(["2", "y"], (("b", 1),)), (["1"], ())]


def test_two_logs_of_one_broker_are_in_two_messages() -> None:
    logs = NamedLogs()
    event = quote(1).stamped("x", 1)
    assert logs.takes(single(event, 9, Origin("x", 1))) and logs.takes(gap_in_flight(Gap("x/1", 1, 2, "lost")))
    assert not logs.takes(single(event, 9, Origin("x", 2)))
    assert logs.takes(single(quote(2).stamped("y", 1), 9, H)), "a copy in a history"
    assert logs.named == (("x", 1),)


def in_numbering(epoch: int, notify: Notify) -> Notify:
    """Return the same notifications in another numbering."""
    deliveries = [replace(one, numbers=((epoch, one.numbers[0][1]),)) for one in notify.deliveries]
    return Notify(tuple(deliveries), notify.logs)
