"""A small network of routers in memory, whose links keep their order, and the trace of what happens in it.

Brokers are `b0`, `b1`, ...; the clients of `b1` are `c1` and `d1`. Messages wait on their link until they are made to
arrive. Time passes only when it is said to. What is due then happens by itself: messages arrive that were on their way
for the longest time that there is, clients renew what they hold, and brokers look for what has expired.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from random import Random
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.routing.propagation import Leases, Source
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.routing.timing import Timing
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Corrupted,
    Cut,
    Linked,
    Notified,
    Published,
    Rejected,
    Settled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from vestnik.verify.corruption import corrupt
from vestnik.verify.validity import Clients, advertised
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import AdminA, AdminS, NodeId

TIMING = Timing(refresh=4.0, lease=16.0, sweep=2.0, least_delay=0.0, most_delay=0.5, hops=4)
LEASES = Leases(TIMING.lease, TIMING.slack)

MakeRouter: TypeAlias = Callable[[NodeId | None], Router]
"""A router for a broker below the one that is given; None for the root."""
Held: TypeAlias = dict[NodeId, dict[Source, Filter]]
Link: TypeAlias = tuple[NodeId, NodeId]


class Carried(NamedTuple):
    """An event on its way to a neighbour."""

    event: Event


class Lapsed(NamedTuple):
    """What somebody wants or offers who is gone, and when it is to be gone, too."""

    filter: Filter
    end: float


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
        self.right_since = float("-inf")  # nothing that was corrupted is left
        self.in_order_since = float("-inf")  # nor anything that has lapsed
        self._lapsed: dict[Source, Lapsed] = {}
        self._lapsed_offers: dict[Source, Lapsed] = {}
        self._links: dict[Link, deque[tuple[float, AdminS | AdminA | Carried]]] = {}  # with the times of sending
        self._down: list[Link] = []
        self._renewed: dict[Source, float] = {}
        self._swept = dict.fromkeys(self.routers, 0.0)
        self._numbers: dict[Source, int] = {}
        self._published: dict[NodeId, int] = {}
        self._visited: set[tuple[NodeId, str]] = set()
        for link in above.items():
            self._connect(*link)
        self._rest()

    # --- what clients do ---

    def subscribe(self, client: NodeId, name: str, wanted: Filter, lease: float = TIMING.lease) -> None:
        """Subscribe, or give the subscription of this name another filter."""
        broker, source = home(client), Source(client, name)
        current = self.asked[broker].get(source)
        lapsed = self._lapsed.pop(source, None)
        before = lapsed.filter if lapsed is not None else current
        self.routers[broker].subscribe(source, wanted, self.now + lease)
        if before is not None and before != wanted:
            self.routers[broker].unsubscribe(source, before)
        if current != wanted:
            self._forget(source)
            self.asked[broker][source] = wanted
            self.records.append(Subscribed(self.now, client, name, wanted))
        self._renewed.setdefault(source, self.now)
        self._tell(broker)

    def unsubscribe(self, client: NodeId, name: str) -> None:
        broker, source = home(client), Source(client, name)
        if source in self.asked[broker]:
            self.routers[broker].unsubscribe(source, self._end_subscription(source))
            self._tell(broker)

    def advertise(self, client: NodeId, name: str, offered: Filter) -> None:
        broker, source = home(client), Source(client, name)
        self._lapsed_offers.pop(source, None)
        self.routers[broker].advertise(source, offered, self.now + TIMING.lease)
        if self.offered[broker].get(source) != offered:
            self._forget_offer(source)
            self.offered[broker][source] = offered
            self.records.append(Advertised(self.now, client, name, offered))
        self._renewed.setdefault(source, self.now)
        self._tell(broker)

    def unadvertise(self, client: NodeId, name: str) -> None:
        broker, source = home(client), Source(client, name)
        if source in self.offered[broker]:
            self._end_offer(source)
            self.routers[broker].unadvertise(source)
            self._tell(broker)

    def publish(self, client: NodeId, event: Event) -> None:
        """Publish what is in `event`, as the next of its client's stream, if the broker takes it.

        Who is gone does not publish what it offered.
        """
        broker = home(client)
        gone = [offer for source, offer in self._lapsed_offers.items() if source.node == client]
        if any(offer.filter.matches(event) and self.now < offer.end for offer in gone):
            return
        number = self._published[client] = self._published.get(client, 0) + 1
        event = event.replace(source=client, id=f"e{number}", stream=(broker, client), seq=number)
        conforms = self.routers[broker].conforms(client)(event)
        self._check_admission(broker, client, event, conforms)
        if conforms:
            self.records.append(Published(self.now, client, event))
            self._route(broker, client, event)
        else:
            self.records.append(Rejected(self.now, client, event, "not advertised"))
        self._rest()

    def lapse(self, client: NodeId, name: str) -> None:
        """Go away: what the client holds under a name is not renewed, and gone when the lease is."""
        broker, source = home(client), Source(client, name)
        end = self.now + TIMING.lease + TIMING.sweep
        if source in self.asked[broker]:
            self._lapsed[source] = Lapsed(self._end_subscription(source), end)
        if source in self.offered[broker]:
            self._lapsed_offers[source] = Lapsed(self._end_offer(source), end)
        self.in_order_since = max(self.in_order_since, end + TIMING.travel)
        self._rest()

    def visit(self, client: NodeId, name: str, wanted: Filter, lease: float) -> None:
        """Subscribe for a while, and go away."""
        self.subscribe(client, name, wanted, lease)
        self.lapse(client, name)

    # --- what happens to links, brokers and messages ---

    @property
    def is_quiet(self) -> bool:
        return not any(self._links.values())

    def arrive(self, choice: float) -> None:
        """One message arrives: the first on one of the links, which is chosen by a number from 0 to below 1."""
        busy = [link for link, waiting in self._links.items() if waiting]
        if busy:
            self._arrive(_chosen(busy, choice))

    def settle(self) -> None:
        """All messages arrive."""
        while not self.is_quiet:
            self.arrive(0.0)

    def wait(self, seconds: float) -> None:
        """Time passes."""
        end = self.now + seconds
        time, act = self._next()
        while time <= end:
            self.now = max(self.now, time)
            act()
            time, act = self._next()
        self.now = end
        self._rest()

    def sweep(self, broker: NodeId) -> None:
        """A broker drops what has expired, and heals what its neighbours were told."""
        self._swept[broker] = self.now
        for source, wanted in self.routers[broker].expire(self.now).subscriptions:
            if source in self._lapsed and self._lapsed[source].filter == wanted:
                del self._lapsed[source]
        self._tell(broker)

    def cut(self, choice: float) -> None:
        """A link goes down, and what is on it is lost."""
        up = [link for link in self._links if link[0] > link[1]]
        if up:
            one, other = link = _chosen(up, choice)
            self._down.append(link)
            del self._links[one, other], self._links[other, one]
            self.routers[one].disconnect(other)
            self.routers[other].disconnect(one)
            self.records.append(Cut(self.now, one, other))
            self._tell(one, other)

    def join(self, choice: float) -> None:
        """A link that is down is up again."""
        if self._down:
            link = _chosen(self._down, choice)
            self._down.remove(link)
            self.records.append(Linked(self.now, *link))
            self._connect(*link)

    def corrupt(self, broker: NodeId, seed: int) -> None:
        """Change the state of a broker behind its back; until that has healed, nothing is right."""
        self.records.append(Corrupted(self.now, broker, "tables, and what neighbours were told"))
        corrupt(self.routers[broker], Random(seed), self.now)
        self.right_since = self.now + TIMING.bound(advertisements=self.advertising)
        self.in_order_since = max(self.in_order_since, self.right_since)
        self._tell(broker)

    def recover(self) -> None:
        """All links are up, and so much time passes that everything is in order."""
        while self._down:
            self.join(0.0)
        self.settle()
        self.wait(max(0.0, self.in_order_since - self.now))
        self.settle()

    @property
    def holding(self) -> Clients:
        """What local clients are to be handed: also those that are gone, until their leases are."""
        found = {broker: dict(asked) for broker, asked in self.asked.items()}
        for source, lapsed in self._lapsed.items():
            if self.now < lapsed.end:
                found[home(source.node)][source] = lapsed.filter
        return found

    def _next(self) -> tuple[float, Callable[[], None]]:
        """What is due next, and when."""
        return min(self._chores(), key=itemgetter(0))

    def _chores(self) -> Iterator[tuple[float, Callable[[], None]]]:
        for link, waiting in self._links.items():
            if waiting:
                yield waiting[0][0] + TIMING.most_delay, partial(self._arrive, link)
        for source, time in self._renewed.items():
            yield time + TIMING.refresh, partial(self._renew, source)
        for broker, time in self._swept.items():
            yield time + TIMING.sweep, partial(self.sweep, broker)

    def _arrive(self, link: Link) -> None:
        sender, receiver = link
        _, message = self._links[link].popleft()
        if isinstance(message, Carried):
            self._route(receiver, sender, message.event)
        else:
            self.routers[receiver].take(sender, message, self.now)
            self._tell(receiver)
        self._rest()

    def _connect(self, one: NodeId, other: NodeId) -> None:
        self._links[one, other], self._links[other, one] = deque(), deque()
        self.routers[one].connect(other)
        self.routers[other].connect(one)
        self.finished = {}
        self._tell(one, other)

    def _rest(self) -> None:
        """Where nothing is on its way, every update has finished; and if nothing is down or wrong, all has settled."""
        if self.is_quiet:
            self.finished = {broker: dict(asked) for broker, asked in self.asked.items()}
            offers = self.offered if self.advertising else advertised(self.routers)
            self.finished_offers = {broker: dict(offered) for broker, offered in offers.items()}
            is_right = not self._down and self.now >= self.right_since
            if is_right and not (self.records and isinstance(self.records[-1], Settled)):
                self.records.append(Settled(self.now))

    def _tell(self, *brokers: NodeId) -> None:
        for broker in brokers:
            for neighbour, message in self.routers[broker].flush(self.now):
                self._links[broker, neighbour].append((self.now, message))
        self._rest()

    def _route(self, broker: NodeId, sender: NodeId, event: Event) -> None:
        if (broker, f"{event.source}/{event.id}") in self._visited:
            said = f"{named(event)} came to {broker} a second time, from {sender}"
            self.wrong.append(Violation("forwarding", said, event=event, records=tuple(self.records)))
            return
        self._visited.add((broker, f"{event.source}/{event.id}"))
        neighbours, subscriptions = self.routers[broker].targets(event, sender)
        for neighbour in neighbours:
            self._links[broker, neighbour].append((self.now, Carried(event)))
        given: dict[NodeId, list[tuple[str, int]]] = {}
        for source in subscriptions:
            if source in self._lapsed:
                continue
            self._numbers[source] = self._numbers.get(source, 0) + 1
            given.setdefault(source.node, []).append((source.name, self._numbers[source]))
        for client, numbers in given.items():
            self.records.append(Notified(self.now, client, event, tuple(numbers)))

    # --- what clients hold ---

    def _renew(self, source: Source) -> None:
        broker, expiry = home(source.node), self.now + TIMING.lease
        wanted, offered = self.asked[broker].get(source), self.offered[broker].get(source)
        if wanted is not None:
            self.routers[broker].subscribe(source, wanted, expiry)
        if offered is not None:
            self.routers[broker].advertise(source, offered, expiry)
        if wanted is not None or offered is not None:
            self._renewed[source] = self.now
        else:
            del self._renewed[source]
        self._tell(broker)

    def _end_subscription(self, source: Source) -> Filter:
        self._forget(source)
        self._numbers.pop(source, None)
        self.records.append(Unsubscribed(self.now, *source))
        return self.asked[home(source.node)].pop(source)

    def _end_offer(self, source: Source) -> Filter:
        self._forget_offer(source)
        self.records.append(Unadvertised(self.now, *source))
        return self.offered[home(source.node)].pop(source)

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


def _chosen(links: Sequence[Link], choice: float) -> Link:
    return links[int(choice * len(links))]
