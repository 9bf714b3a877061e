"""What clients do in a comparison, drawn once: every way of routing gets the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from random import Random
from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.sim.topologies import Topology, paper, random_tree
from vestnik.sim.workloads import Medical, RandomFilters, Stock, Workload
from vestnik.wire.messages import NodeId

WORKLOADS: dict[str, Workload] = {
    "stock": Stock(stocks=100, intervals=True),
    "medical": Medical(locality=0.5),
    "random": RandomFilters(),
}
EACH = 10
SEED = 1


class Size(NamedTuple):
    """How much there is of everything. Consumers have ten subscriptions each; all clients are at uniform brokers."""

    brokers: int | None  # None for those of the paper
    consumers: int
    producers: int
    publications: int
    changes: int

    def topology(self) -> Topology:
        return paper() if self.brokers is None else random_tree(self.brokers, SEED)


class Wanted(NamedTuple):
    """A subscription: who has it, at which broker, under which name."""

    client: NodeId
    broker: NodeId
    name: str
    filter: Filter


@dataclass(frozen=True)
class Play:
    """Producers with their brokers offer something, subscriptions come, events are published, and visitors come.

    Each visitor is at a broker, subscribes once and leaves.
    """

    topology: Topology
    offer: Filter
    producers: dict[NodeId, NodeId]
    subscriptions: tuple[Wanted, ...]
    publications: tuple[tuple[NodeId, Event], ...]
    visits: tuple[tuple[NodeId, Filter], ...]

    @cached_property
    def useful(self) -> int:
        """How often an event must go over a link, if all who want one are to get it."""
        return sum(
            links_to_use(
                self.topology, self.producers[client], {s.broker for s in self.subscriptions if s.filter.matches(event)}
            )
            for client, event in self.publications
        )


@lru_cache(maxsize=4)
def play(name: str, size: Size) -> Play:
    """The play of a workload. Equal sizes give equal plays."""
    workload, rng = WORKLOADS[name], Random(f"{SEED} {name}")
    topology = size.topology()
    nodes = topology.access
    producers = {f"p{place}": rng.choice(nodes) for place in range(size.producers)}
    subscriptions = []
    for consumer in range(size.consumers):
        place = rng.randrange(len(nodes))
        for order, one in enumerate(islice(workload.interests(rng, place / len(nodes)), EACH)):
            subscriptions.append(Wanted(f"c{consumer}", nodes[place], str(order), one))
    publications = []
    for publication in range(size.publications):
        client = rng.choice(list(producers))
        publications.append((client, workload.event(rng, client, str(publication))))
    visits = []
    for _ in range(size.changes):
        place = rng.randrange(len(nodes))
        visits.append((nodes[place], next(workload.interests(rng, place / len(nodes)))))
    return Play(topology, workload.offer(), producers, tuple(subscriptions), tuple(publications), tuple(visits))


def links_to_use(topology: Topology, publisher: NodeId, brokers: Iterable[NodeId]) -> int:
    """How many links are on the ways from the publisher to some brokers."""
    start = _to_root(topology, publisher)
    return len(set().union(*(_to_root(topology, broker) ^ start for broker in brokers)))


@lru_cache(maxsize=4096)
def _to_root(topology: Topology, node: NodeId) -> frozenset[NodeId]:
    """The links from a node to the root, each by its lower end. Those of one of two nodes alone are between the two."""
    parent = topology.parents[node]
    return frozenset() if parent is None else _to_root(topology, parent) | {node}
