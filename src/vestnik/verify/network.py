"""A small network of routers in memory, whose links keep their order, and the trace of what happens in it.

Brokers are `b0`, `b1`, ...; the clients of `b1` are `c1` and `d1`. Messages wait on their link until they are made to
arrive. Time passes only when it is said to; clients renew what they hold well within its lease.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.routing.propagation import Leases, Source
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Notified,
    Published,
    Rejected,
    Settled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from vestnik.verify.validity import Clients, advertised
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import AdminA, AdminS, Forward, NodeId

LEASES = Leases(length=10.0)
RENEWAL, ROUNDS = 4.0, 3  # after that many renewals, what is not renewed has expired

MakeRouter: TypeAlias = Callable[[NodeId | None], Router]
"""A router for a broker below the one that is given; None for the root."""
Held: TypeAlias = dict[NodeId, dict[Source, Filter]]


class Network:
    """A tree: the broker of number n + 1 is below the one whose number is the n-th of `parents`."""

    def __init__(self, parents: Sequence[int], make_router: MakeRouter) -> None:
        above = {f"b{child}": f"b{parent}" for child, parent in enumerate(parents, 1)}
        self.routers = {name: make_router(above.get(name)) for name in ("b0", *above)}
        self.advertising = all(isinstance(router, AdvertisingRouter) for router in self.routers.values())
        self.asked: Held = {name: {} for name in self.routers}
        self.offered: Held = {name: {} for name in self.routers}
        self.finished: Clients = {}
        self.finished_offers: Clients = {}
        self.records: list[AnyRecord] = []
        self.wrong: list[Violation] = []
        self.now = 0.0
        self._links: dict[tuple[NodeId, NodeId], deque[AdminS | AdminA | Forward]] = {}
        self._numbers: dict[Source, int] = {}
        self._published: dict[NodeId, int] = {}
        self._visited: set[tuple[NodeId, str]] = set()
        for child, parent in above.items():
            self.routers[child].connect(parent)
            self.routers[parent].connect(child)
            self._links[child, parent], self._links[parent, child] = deque(), deque()
        self._rest()

    # --- what clients do ---

    def subscribe(self, client: NodeId, name: str, wanted: Filter) -> None:
        """Subscribe, or give the subscription of this name another filter."""
        broker, source = home(client), Source(client, name)
        before = self.asked[broker].get(source)
        self.routers[broker].subscribe(source, wanted, self.now + LEASES.length)
        if before is not None and before != wanted:
            self.routers[broker].unsubscribe(source, before)
        if before != wanted:
            self._forget(source)
            self.asked[broker][source] = wanted
            self.records.append(Subscribed(self.now, client, name, wanted))
        self._tell(broker)

    def unsubscribe(self, client: NodeId, name: str) -> None:
        broker, source = home(client), Source(client, name)
        if source in self.asked[broker]:
            self._forget(source)
            self.routers[broker].unsubscribe(source, self.asked[broker].pop(source))
            self.records.append(Unsubscribed(self.now, client, name))
            self._numbers.pop(source, None)
            self._tell(broker)

    def advertise(self, client: NodeId, name: str, offered: Filter) -> None:
        broker, source = home(client), Source(client, name)
        self.routers[broker].advertise(source, offered, self.now + LEASES.length)
        if self.offered[broker].get(source) != offered:
            self._forget_offer(source)
            self.offered[broker][source] = offered
            self.records.append(Advertised(self.now, client, name, offered))
        self._tell(broker)

    def unadvertise(self, client: NodeId, name: str) -> None:
        broker, source = home(client), Source(client, name)
        if source in self.offered[broker]:
            self._forget_offer(source)
            self.routers[broker].unadvertise(source)
            del self.offered[broker][source]
            self.records.append(Unadvertised(self.now, client, name))
            self._tell(broker)

    def publish(self, client: NodeId, event: Event) -> None:
        """Publish what is in `event`, as the next of its client's stream, if the broker takes it."""
        broker = home(client)
        number = self._published[client] = self._published.get(client, 0) + 1
        event = event.replace(source=client, id=f"e{number}", stream=(broker, client), seq=number)
        conforms = self.routers[broker].conforms(client, event)
        self._check_admission(broker, client, event, conforms)
        if conforms:
            self.records.append(Published(self.now, client, event))
            self._route(broker, client, event)
        else:
            self.records.append(Rejected(self.now, client, event, "not advertised"))
        self._rest()

    def lapse(self, client: NodeId, name: str) -> None:
        """Let so much time pass that what a client holds under a name expires; it is not renewed, all else is."""
        gone = Source(client, name)
        self.settle()
        for _ in range(ROUNDS):
            self.now += RENEWAL
            self._renew(gone)
            self.settle()
            for broker, router in self.routers.items():
                router.expire(self.now)
                self._tell(broker)
            self.settle()
        self._end(gone)
        self._rest()

    # --- what happens to messages ---

    @property
    def is_quiet(self) -> bool:
        return not any(self._links.values())

    def arrive(self, choice: float) -> None:
        """One message arrives: the first on one of the links, which is chosen by a number from 0 to below 1."""
        busy = [link for link, waiting in self._links.items() if waiting]
        if busy:
            sender, receiver = busy[int(choice * len(busy))]
            message = self._links[sender, receiver].popleft()
            if isinstance(message, Forward):
                for event in message.events:
                    self._route(receiver, sender, event)
            else:
                self.routers[receiver].take(sender, message, self.now)
                self._tell(receiver)
            self._rest()

    def settle(self) -> None:
        """All messages arrive."""
        while not self.is_quiet:
            self.arrive(0.0)

    def _rest(self) -> None:
        """Where nothing is on its way, every update has finished."""
        if self.is_quiet and not (self.records and isinstance(self.records[-1], Settled)):
            self.records.append(Settled(self.now))
            self.finished = {broker: dict(asked) for broker, asked in self.asked.items()}
            offers = self.offered if self.advertising else advertised(self.routers)
            self.finished_offers = {broker: dict(offered) for broker, offered in offers.items()}

    def _tell(self, broker: NodeId) -> None:
        for neighbour, message in self.routers[broker].flush(self.now):
            self._links[broker, neighbour].append(message)
        self._rest()

    def _route(self, broker: NodeId, sender: NodeId, event: Event) -> None:
        if (broker, f"{event.source}/{event.id}") in self._visited:
            said = f"{named(event)} came to {broker} a second time, from {sender}"
            self.wrong.append(Violation("forwarding", said, event=event, records=tuple(self.records)))
            return
        self._visited.add((broker, f"{event.source}/{event.id}"))
        neighbours, subscriptions = self.routers[broker].targets(event, sender)
        for neighbour in neighbours:
            self._links[broker, neighbour].append(Forward((event,)))
        given: dict[NodeId, list[tuple[str, int]]] = {}
        for source in subscriptions:
            self._numbers[source] = self._numbers.get(source, 0) + 1
            given.setdefault(source.node, []).append((source.name, self._numbers[source]))
        for client, numbers in given.items():
            self.records.append(Notified(self.now, client, event, tuple(numbers)))

    # --- what clients hold ---

    def _renew(self, gone: Source) -> None:
        for broker, router in self.routers.items():
            for source, wanted in self.asked[broker].items():
                if source != gone:
                    router.subscribe(source, wanted, self.now + LEASES.length)
            for source, offered in self.offered[broker].items():
                if source != gone:
                    router.advertise(source, offered, self.now + LEASES.length)
            self._tell(broker)

    def _end(self, gone: Source) -> None:
        """A client holds no longer what has expired."""
        broker = home(gone.node)
        if self.asked[broker].pop(gone, None) is not None:
            self.records.append(Unsubscribed(self.now, *gone))
            self._numbers.pop(gone, None)
        if self.offered[broker].pop(gone, None) is not None:
            self.records.append(Unadvertised(self.now, *gone))

    def _forget(self, source: Source) -> None:
        self.finished = {at: _without(held, source) for at, held in self.finished.items()}

    def _forget_offer(self, source: Source) -> None:
        if self.advertising:
            self.finished_offers = {at: _without(held, source) for at, held in self.finished_offers.items()}

    def _check_admission(self, broker: NodeId, client: NodeId, event: Event, conforms: bool) -> None:
        offers = [offer for source, offer in self.offered[broker].items() if source.node == client]
        if self.advertising and not conforms and any(offer.matches(event) for offer in offers):
            said = f"{broker} refuses {named(event)}, which {client} advertised"
            self.wrong.append(Violation("admission", said, client, event=event, records=tuple(self.records)))


def home(client: NodeId) -> NodeId:
    """The broker of a client."""
    return f"b{client[1:]}"


def _without(held: Mapping[Source, Filter], source: Source) -> dict[Source, Filter]:
    return {other: wanted for other, wanted in held.items() if other != source}
