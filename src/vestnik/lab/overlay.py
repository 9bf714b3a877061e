"""A network of brokers without time: every message arrives at once, in the order in which they were sent."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Append, Appended, LinkUp, Send
from vestnik.model.filters import Filter
from vestnik.routing.propagation import Propagation
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.sim.topologies import Topology
from vestnik.wire.messages import Forward, Message, NodeId, Reach


class Routing(NamedTuple):
    """How the brokers of an overlay route."""

    strategy: str
    advertisements: bool = False
    tolerance: float = 0.0

    def router(self, parent: NodeId | None) -> Router:
        strategy = make_strategy(self.strategy, parent=parent, tolerance=self.tolerance)
        return AdvertisingRouter(strategy) if self.advertisements else Router(strategy)


class Entries(NamedTuple):
    """How large the tables of all brokers together are.

    `remote` are subscriptions that a neighbour told of, one for each neighbour that did; `local` those of clients.
    """

    remote: int
    local: int
    advertised: int


class Overlay:
    """Brokers with clients. What brokers send to each other is counted by kind and, for events, by link.

    Each of these messages is shown to `observe`.
    """

    def __init__(
        self, topology: Topology, routing: Routing, observe: Callable[[Message], None] = lambda message: None
    ) -> None:
        self.topology = topology
        self._observe = observe
        self.sent: Counter[type[Message]] = Counter()
        self.notified: Counter[type[Message]] = Counter()  # what clients were sent
        self.forwarded: Counter[tuple[NodeId, NodeId]] = Counter()  # events over each directed link
        self.brokers = {node: BrokerCore(node, routing.router(topology.parents[node])) for node in topology.nodes}
        self._offers_first = routing.advertisements
        self._queue: deque[tuple[NodeId, Message, NodeId]] = deque()

    def link(self) -> None:
        """Link all brokers. What clients have said before goes over each link at once.

        A link comes up in one direction when all that has to go that way is there: what is wanted goes up to the root
        and then down again; with advertisements what is offered goes down from there, and what is wanted up to it.
        """
        far = self.topology.distances(self.topology.root)
        down = sorted([sorted(edge, key=far.__getitem__) for edge in self.topology.edges], key=lambda way: far[way[0]])
        up = [way[::-1] for way in reversed(down)]
        for node, neighbour in (*down, *up) if self._offers_first else (*up, *down):
            self.hand(node, LinkUp(neighbour), node)

    def hand(self, broker: NodeId, message: Message, client: NodeId) -> None:
        """A client says something to its broker; all that follows from it happens."""
        self._do(broker, message, client)
        while self._queue:
            self._do(*self._queue.popleft())

    def _do(self, broker: NodeId, message: Message, sender: NodeId) -> None:
        for effect in self.brokers[broker].handle(message, sender, 0.0):
            if type(effect) is Send:
                self._send(broker, effect.to, effect.message)
            elif type(effect) is Append:
                self._queue.append((broker, Appended(effect), broker))

    def _send(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if to not in self.brokers:
            self.notified[type(message)] += 1
            return
        if type(message) is Reach:  # who is where matters to those who missed something: here nobody does
            return
        self.sent[type(message)] += 1
        self._observe(message)
        if type(message) is Forward:
            self.forwarded[sender, to] += len(message.events)
        self._queue.append((to, message, sender))

    def entries(self) -> Entries:
        remote = local = advertised = 0
        for broker in self.brokers.values():
            router = broker.router
            told, own = _sources(router.subscriptions)
            remote, local = remote + told, local + own
            if isinstance(router, AdvertisingRouter):
                advertised += _sources(router.advertisements)[0]
        return Entries(remote, local, advertised)

    def remote_filters(self) -> Iterator[Filter]:
        """The filter of each remote entry."""
        for broker in self.brokers.values():
            for entry, sources in broker.router.subscriptions:
                yield from (entry.filter for source in sources if not source.name)


def _sources(table: Propagation) -> tuple[int, int]:
    """How many entries of a table are there for a neighbour, and how many for a local client."""
    told = own = 0
    for _, sources in table:
        named = sum(1 for source in sources if source.name)
        told, own = told + len(sources) - named, own + named
    return told, own
