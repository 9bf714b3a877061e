"""Brokers that are gone for good are forgotten in the end, and subscribers are told."""

from __future__ import annotations

import pytest

from vestnik import Event, Filter
from vestnik.broker import clients
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Effect, LinkUp, Read, Send
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.session.acts import Hand, Missing, Say
from vestnik.session.session import Session
from vestnik.wire.messages import Accepted, Addressed, Forward, Message, NodeId, Notify, Reach, Recall, Subscribe

ALL = Filter.parse("TRUE")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST_AWAY", 2)


class World:
    """A broker `b` whose neighbour `u` says who is behind it, and a client of it that hears all it is sent."""

    def __init__(self) -> None:
        self.broker = BrokerCore("b", Router(make_strategy("covering")))
        self.client = Session("c", lambda low, high: low)
        self.heard: list[object] = []  # events and gaps
        self.accepted = Accepted(0)
        self.said = Subscribe("s", ALL)
        self.tell("b", LinkUp("u"))

    def tell(self, sender: NodeId, message: Message) -> list[Effect]:
        effects = self.broker.handle(message, sender, 0.0)
        for effect in effects:
            if isinstance(effect, Send) and effect.to == "c":
                self.hear(effect.message)
        return effects

    def hear(self, message: Message) -> None:
        if isinstance(message, Accepted):
            self.accepted = message
        for act in self.client.handle(message, 0.0):
            match act:
                case Hand(event):
                    self.heard.append(event.id)
                case Missing(_, reason):
                    self.heard.append(reason)

    def subscribe(self) -> Subscribe:
        """The client subscribes or renews; what it says."""
        for act in self.client.subscribe("s", ALL, 0.0, lease=60):
            if isinstance(act, Say) and isinstance(act.message, Subscribe):
                self.said = act.message
                self.tell("c", act.message)
        return self.said

    def reach(self, *brokers: tuple[NodeId, int]) -> list[str]:
        """Who is behind `u` now; the brokers of which something is recalled."""
        effects = self.tell("u", Reach((("u", 0), *brokers)))
        return [e.message.to for e in effects if isinstance(e, Send) and isinstance(e.message, Addressed)]


def of(broker: NodeId, seq: int) -> Event:
    return Event("t", {}, source=broker, id=f"{broker}{seq}").stamped(broker, seq)


def test_who_is_away_the_longest_is_forgotten_and_that_is_told() -> None:
    world = World()
    world.subscribe()
    for number in range(1, 5):
        world.reach((f"x{number}", 10 * number))
        world.reach()
    told = "it is out of reach, and so are 2 that were within reach later; what it took behind position {} may be lost"
    assert world.heard == ["x1: " + told.format(10), "x2: " + told.format(20)]
    assert world.reach(("x1", 15), ("x2", 20)) == [], "nothing is asked of whom it has forgotten"
    world.tell("u", Forward((of("x1", 7),)))
    assert world.heard[2:] == ["x17"], "what comes from now on comes"
    assert world.reach(("x1", 16), ("x2", 20), ("x3", 31), ("x4", 40)) == ["x3", "x4"]


def test_what_a_client_carries_does_not_grow_with_every_broker_there_ever_was() -> None:
    world = World()
    for number in range(1, 30):
        world.reach((f"x{number}", number))
        world.subscribe()
        world.reach()
    world.subscribe()
    carried = world.subscribe().seen
    assert carried == (("x28", 28), ("x29", 29), ("b", 0), ("u", 0))
    assert len(world.heard) == 27


def test_a_client_that_comes_with_many_is_told_whom_the_broker_forgets() -> None:
    world = World()
    world.reach(("near", 5))
    seen = (("old", 1), ("older", 2), ("near", 3), ("away", 4))
    effects = world.tell("c", Subscribe("s", ALL, lease=60, epoch=1, afresh=2, seen=seen, request=1))
    gaps = [
        d.gap for e in effects if isinstance(e, Send) and isinstance(e.message, Notify) for d in e.message.deliveries
    ]
    recalled = [e.message.to for e in effects if isinstance(e, Send) and isinstance(e.message, Addressed)]
    assert recalled == ["near"] and [gap.partition(":")[0] for gap in gaps] == ["old"]
    (asked,) = [e.message.body for e in effects if isinstance(e, Send) and isinstance(e.message, Addressed)]
    assert isinstance(asked, Recall) and asked.after == 3
    effects = world.tell("u", Reach((("u", 0),)))
    gaps = [
        d.gap for e in effects if isinstance(e, Send) and isinstance(e.message, Notify) for d in e.message.deliveries
    ]
    assert [gap.partition(":")[0] for gap in gaps] == ["older"]
    assert not [e for e in effects if isinstance(e, Read)]
