"""A network of routers without time: every message arrives at once, in the order in which they were sent.

It measures routing alone: nothing is stored, and nothing is fetched from logs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import FOREVER
from vestnik.routing.propagation import Propagation, Source
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.sim.topologies import Topology
from vestnik.wire.messages import (
    AdminA,
    AdminS,
    Advertise,
    Message,
    NodeId,
    Notify,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from vestnik.wire.origins import Origin, Routed

Order: TypeAlias = Subscribe | Unsubscribe | Advertise | Unadvertise | Publish
"""What a client tells its broker."""
Told: TypeAlias = AdminS | AdminA | Routed
"""What a broker sends to a neighbour."""

NOW = 0.0
"""The time at which everything happens. Nothing expires."""


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
    """The routers of a tree of brokers, with clients. It counts what brokers send, and the events on each link.

    Each message between brokers is shown to `observe`.
    """

    def __init__(
        self, topology: Topology, routing: Routing, observe: Callable[[Message], None] = lambda message: None
    ) -> None:
        self.topology = topology
        self._observe = observe
        self.sent: Counter[type[Message]] = Counter()
        self.notified: Counter[type[Message]] = Counter()  # what clients were sent
        self.forwarded: Counter[tuple[NodeId, NodeId]] = Counter()  # events over each directed link
        self.routers = {node: routing.router(topology.parents[node]) for node in topology.nodes}
        self._offers_first = routing.advertisements
        self._wanted: dict[tuple[NodeId, Source], Filter] = {}
        self._ends: Counter[NodeId] = Counter()  # the last offset in the log of each broker
        self._queue: deque[tuple[NodeId, Told, NodeId]] = deque()  # receiver, message, sender

    def link(self) -> None:
        """Link all brokers. What clients have said before goes over each link at once.

        A link comes up in one direction when all that has to go that way is there: what is wanted goes up to the root
        and then down again; with advertisements what is offered goes down from there, and what is wanted up to it.
        """
        far = self.topology.distances(self.topology.root)
        down = sorted([sorted(edge, key=far.__getitem__) for edge in self.topology.edges], key=lambda way: far[way[0]])
        up = [way[::-1] for way in reversed(down)]
        for node, neighbour in (*down, *up) if self._offers_first else (*up, *down):
            self.routers[node].connect(neighbour)
            self._tell(node)
            self._settle()

    def hand(self, broker: NodeId, order: Order, client: NodeId) -> None:
        """Let a broker do what its client tells it, and deliver every message that follows from it."""
        match order:
            case Subscribe(name, wanted):
                self._subscribe(broker, Source(client, name), wanted)
            case Unsubscribe(name):
                self._unsubscribe(broker, Source(client, name))
            case Advertise(name, offered):
                self.routers[broker].advertise(Source(client, name), offered, FOREVER)
            case Unadvertise(name):
                self.routers[broker].unadvertise(Source(client, name))
            case Publish(events):
                self._publish(broker, events, client)
        self._tell(broker)
        self._settle()

    def _subscribe(self, broker: NodeId, source: Source, wanted: Filter) -> None:
        """Subscribe, or change the filter. The new filter comes first, so that nothing is missed in between."""
        before = self._wanted.get((broker, source))
        self._wanted[broker, source] = wanted
        self.routers[broker].subscribe(source, wanted, FOREVER)
        if before is not None and before != wanted:
            self.routers[broker].unsubscribe(source, before)

    def _unsubscribe(self, broker: NodeId, source: Source) -> None:
        wanted = self._wanted.pop((broker, source), None)
        if wanted is not None:
            self.routers[broker].unsubscribe(source, wanted)

    def _publish(self, broker: NodeId, events: Sequence[Event], client: NodeId) -> None:
        """Route the events that the client may publish, each at the next offset of the broker's log."""
        stamped: list[Event] = []
        for event in filter(self.routers[broker].conforms(client), events):
            self._ends[broker] += 1
            stamped.append(event.stamped(broker, self._ends[broker]))
        self._route(broker, Routed(Origin(broker, 1), tuple(stamped)), client)

    def _settle(self) -> None:
        """Deliver messages until none is on its way."""
        while self._queue:
            broker, message, sender = self._queue.popleft()
            if isinstance(message, Routed):
                self._route(broker, message, sender)
            else:
                self.routers[broker].take(sender, message, NOW)
                self._tell(broker)

    def _tell(self, broker: NodeId) -> None:
        for neighbour, message in self.routers[broker].flush(NOW):
            self._send(broker, neighbour, message)

    def _route(self, broker: NodeId, message: Routed, sender: NodeId) -> None:
        """Send a batch to the neighbours that want some of it, and one notification to each such client."""
        onward: dict[NodeId, list[Event]] = {}
        clients: set[NodeId] = set()
        for place, targets in self.routers[broker].route(message.events, sender):
            for neighbour in targets.neighbours:
                onward.setdefault(neighbour, []).append(message.events[place])
            clients.update([source.node for source in targets.subscriptions])
        for neighbour, events in onward.items():
            self.forwarded[broker, neighbour] += len(events)
            self._send(broker, neighbour, Routed(message.origin, tuple(events)))
        self.notified[Notify] += len(clients)

    def _send(self, sender: NodeId, to: NodeId, message: Told) -> None:
        self.sent[type(message)] += 1
        self._observe(message)
        self._queue.append((to, message, sender))

    def entries(self) -> Entries:
        remote = local = advertised = 0
        for router in self.routers.values():
            told, own = _sources(router.subscriptions)
            remote, local = remote + told, local + own
            if isinstance(router, AdvertisingRouter):
                advertised += _sources(router.advertisements)[0]
        return Entries(remote, local, advertised)

    def remote_filters(self) -> Iterator[Filter]:
        """Yield the filter of each remote entry."""
        for router in self.routers.values():
            for entry, sources in router.subscriptions:
                yield from (entry.filter for source in sources if not source.name)


def _sources(table: Propagation) -> tuple[int, int]:
    """Return how many entries of a table are of neighbours, and how many of local clients."""
    told = own = 0
    for _, sources in table:
        named = sum(1 for source in sources if source.name)
        told, own = told + len(sources) - named, own + named
    return told, own
