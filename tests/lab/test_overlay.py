"""A network without time: what is sent, kept and delivered."""

from __future__ import annotations

import pytest

from vestnik import Event, Filter
from vestnik.lab.overlay import Entries, Overlay, Routing
from vestnik.routing.registry import known_strategies
from vestnik.sim.topologies import Topology, line
from vestnik.wire.messages import AdminA, AdminS, Advertise, Forward, Notify, Publish, Subscribe, Unsubscribe

WIDE, NARROW = Filter.parse("x > 0"), Filter.parse("x > 5")


def linked(topology: Topology, routing: Routing) -> Overlay:
    overlay = Overlay(topology, routing)
    overlay.link()
    return overlay


def event(x: int) -> Event:
    return Event("number", {"x": x}, source="p", id=str(x))


def test_covering_tells_and_untells() -> None:
    overlay = linked(line(4), Routing("covering"))
    overlay.hand("b0", Subscribe("s", WIDE), "c")
    assert (overlay.sent[AdminS], overlay.entries()) == (3, Entries(remote=3, local=1, advertised=0))
    overlay.hand("b0", Subscribe("t", NARROW), "c")
    assert (overlay.sent[AdminS], overlay.entries()) == (3, Entries(remote=3, local=2, advertised=0))
    overlay.hand("b0", Unsubscribe("s"), "c")
    assert (overlay.sent[AdminS], overlay.entries()) == (6, Entries(remote=3, local=1, advertised=0))


def test_advertisements_are_counted_beside() -> None:
    overlay = linked(line(4), Routing("covering", advertisements=True))
    overlay.hand("b1", Advertise("a", WIDE), "p")
    overlay.hand("b3", Subscribe("s", NARROW), "c")
    assert overlay.entries() == Entries(remote=2, local=1, advertised=3)
    assert (overlay.sent[AdminA], overlay.sent[AdminS]) == (3, 2)


@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("strategy", known_strategies())
def test_events_arrive_under_every_strategy(strategy: str, advertisements: bool) -> None:
    overlay = linked(line(3), Routing(strategy, advertisements))
    overlay.hand("b2", Advertise("a", Filter.parse("TRUE")), "p")
    overlay.hand("b0", Subscribe("s", NARROW), "c")
    for x in (3, 7):
        overlay.hand("b2", Publish((event(x),)), "p")
    assert overlay.notified[Notify] == 1
    expected = 4 if "flooding" in strategy or "hierarchical" in strategy else 2
    assert overlay.sent[Forward] == sum(overlay.forwarded.values()) == expected
