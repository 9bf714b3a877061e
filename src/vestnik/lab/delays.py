"""How long events take from producers to consumers, in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.stored import StoredEvent
from vestnik.lab.overlay import Routing
from vestnik.lab.plays import SEED, Play
from vestnik.model.times import FOREVER
from vestnik.session.session import Session
from vestnik.sim.links import Link, Uniform
from vestnik.sim.network import Network
from vestnik.trace.records import AnyRecord, Notified
from vestnik.wire.messages import NodeId


class Steady(Uniform, frozen=True, tag="steady"):
    """Each direction of a link has its own delay, drawn once: it is the same under every strategy."""

    def sampler(self, rng: Random) -> Callable[[], float]:
        seconds = super().sampler(rng)()
        return lambda: seconds


LINK = Link(delay=Steady(0.005, 0.015))
"""Every link, between brokers and to clients."""
PAUSE = 0.01
"""Seconds between publications."""


def delays(play: Play, routing: Routing) -> list[float]:
    """Seconds from when a producer publishes to when a consumer is handed the event, for each that is."""
    published: dict[str, float] = {}
    found: list[float] = []

    def record(happened: AnyRecord) -> None:
        if isinstance(happened, Notified):
            found.append(happened.at - published[happened.event.id])

    network = _network(play, routing)
    network.world.record = record
    for client, event in play.publications:
        network.run(network.now + PAUSE)
        published[event.id] = network.now
        network.publish(client, event)
    network.settle()
    return found


def _network(play: Play, routing: Routing) -> Network:
    """A network in which all have said what they offer and want, and that has settled."""
    parents = play.topology.parents

    def broker(name: NodeId, stored: Sequence[StoredEvent], log: OwnLog) -> BrokerCore:
        return BrokerCore(name, routing.router(parents[name]), FOREVER, stored, log)

    def session(name: NodeId) -> Session:
        return Session(name, Random(f"{SEED} {name}").uniform, FOREVER)

    network = Network(play.topology, broker, session, seed=SEED, link=LINK, access=LINK)
    for client, home in play.producers.items():
        network.attach(client, home)
        network.advertise(client, "offer", play.offer)
    network.settle()
    for wanted in play.subscriptions:
        if wanted.client not in network.clients:
            network.attach(wanted.client, wanted.broker)
        network.subscribe(wanted.client, wanted.name, wanted.filter)
    network.settle()
    return network
