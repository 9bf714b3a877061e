"""A network without time: what is sent, kept and delivered, as in a network of brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.stored import StoredEvent
from vestnik.lab.overlay import Entries, Order, Overlay, Routing
from vestnik.routing.registry import known_strategies
from vestnik.session.session import Session
from vestnik.sim.network import Network
from vestnik.sim.topologies import Topology, line, random_tree
from vestnik.trace.records import Notified, Sent
from vestnik.wire.messages import (
    AdminA,
    AdminS,
    Advertise,
    NodeId,
    Notify,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from vestnik.wire.origins import Routed

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
    assert overlay.sent[Routed] == sum(overlay.forwarded.values()) == expected


def test_a_batch_is_one_message_on_each_link_and_to_each_client() -> None:
    overlay = linked(line(3), Routing("covering"))
    overlay.hand("b0", Subscribe("s", NARROW), "c")
    overlay.hand("b0", Subscribe("t", WIDE), "c")
    overlay.hand("b2", Publish((event(3), event(7), event(-3))), "p")
    assert (overlay.sent[Routed], overlay.forwarded, overlay.notified[Notify]) == (
        2, {("b2", "b1"): 2, ("b1", "b0"): 2}, 1,
    )  # fmt: skip


def test_what_is_not_advertised_goes_nowhere() -> None:
    overlay = linked(line(2), Routing("covering", advertisements=True))
    overlay.hand("b1", Advertise("a", NARROW), "p")
    overlay.hand("b0", Subscribe("s", WIDE), "c")
    overlay.hand("b1", Publish((event(3), event(7))), "p")
    assert overlay.forwarded == {("b1", "b0"): 1}


# --- beside brokers ---

REPORTED = 10.0
"""Seconds after which all brokers know the frontiers. A filter that changes earlier gets events from before, too."""


def orders(seed: int) -> Iterator[tuple[NodeId, Order, NodeId]]:
    """Yield what clients tell their brokers. Subscriptions and advertisements are made, changed and ended."""
    rng = Random(seed)
    held: set[tuple[str, NodeId]] = set()
    for number in range(80):
        place, kind = rng.randrange(6), rng.choice("saapp")
        client, low = f"c{place}", rng.randrange(8)
        wanted = Filter.parse(f"x BETWEEN {low} AND {low + rng.randrange(8)}")
        order: Order
        if kind == "p":
            order = Publish((Event("number", {"x": low}, source=client, id=str(number)),))
        elif (kind, client) in held and rng.random() < 0.3:
            held.remove((kind, client))
            order = Unsubscribe("s") if kind == "s" else Unadvertise("a")
        else:
            held.add((kind, client))
            order = Subscribe("s", wanted) if kind == "s" else Advertise("a", wanted)
        yield f"b{place}", order, client


def network_of(topology: Topology, routing: Routing) -> Network:
    def core(name: NodeId, stored: Sequence[StoredEvent], log: OwnLog) -> BrokerCore:
        return BrokerCore(name, routing.router(topology.parents[name]), stored=stored, log=log, skew=0.0)

    network = Network(topology, core, lambda name: Session(name, Random(name).uniform), all_sent=True)
    for place in range(6):
        network.attach(f"c{place}", f"b{place}")
    network.settle()
    return network


def tell(network: Network, client: NodeId, order: Order) -> None:
    match order:
        case Subscribe(name, wanted):
            network.subscribe(client, name, wanted)
        case Unsubscribe(name):
            network.unsubscribe(client, name)
        case Advertise(name, offered):
            network.advertise(client, name, offered)
        case Unadvertise(name):
            network.unadvertise(client, name)
        case Publish(events):
            network.publish(client, *events)
    network.settle(at_least=REPORTED)


@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("strategy", known_strategies())
def test_brokers_send_and_deliver_the_same(strategy: str, advertisements: bool) -> None:
    for seed in range(3):
        topology, routing = random_tree(6, seed), Routing(strategy, advertisements)
        overlay, network = linked(topology, routing), network_of(topology, routing)
        for broker, order, client in orders(seed):
            overlay.hand(broker, order, client)
            tell(network, client, order)
        assert all(overlay.sent[kind] == network.world.sent.get(kind, 0) for kind in (AdminS, AdminA, Routed))
        routed = [one for one in network.trace if isinstance(one, Sent) and one.kind == "Routed"]
        assert overlay.forwarded == Counter([(one.sender, one.receiver) for one in routed])
        assert overlay.notified[Notify] == sum(isinstance(one, Notified) for one in network.trace) > 0
