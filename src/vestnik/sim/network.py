"""Brokers, clients and the links between them, in virtual time. Equal seeds give equal traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from vestnik.broker.core import OwnLog
from vestnik.broker.effects import Drained, Full, Gone, LinkDown, LinkUp
from vestnik.broker.stored import StoredEvent
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import FOREVER
from vestnik.session.checking import Checking
from vestnik.session.session import Session
from vestnik.sim.hosts import BrokerHost, ClientHost, Core, Disk, Host, World
from vestnik.sim.kernel import Kernel
from vestnik.sim.links import Channel, Constant, Delay, Link
from vestnik.sim.topologies import Topology
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Crashed,
    Cut,
    Detached,
    Linked,
    Restarted,
    Resumed,
    Settled,
    Stalled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from vestnik.wire.messages import NodeId
from vestnik.wire.replays import Replay

MakeCore: TypeAlias = Callable[[NodeId, Sequence[StoredEvent], OwnLog], Core]
"""Makes a broker by its name, with what it stored in earlier lives, and its log."""
MakeSession: TypeAlias = Callable[[NodeId], Session]

LINKED_AGAIN = 0.1
"""Seconds after which brokers that have ended a link make it again."""
PERFECT = Link()
QUICK = Constant(0.001)


class Network:
    """A network that is up and told nothing yet.

    `link` is between brokers, `access` between a client and its broker, `disk` how long storing takes. What happens
    goes to `record`, or to the list `trace` where there is none; every message, too, if `all_sent`.
    """

    def __init__(
        self,
        topology: Topology,
        make_core: MakeCore,
        make_session: MakeSession,
        *,
        seed: int = 0,
        link: Link = PERFECT,
        access: Link = PERFECT,
        disk: Delay = QUICK,
        record: Callable[[AnyRecord], None] | None = None,
        all_sent: bool = False,
    ) -> None:
        self.topology = topology
        self.kernel = Kernel()
        self.trace: list[AnyRecord] = []
        self.world = World(self.kernel, record or self.trace.append, all_sent=all_sent)
        self.brokers: dict[NodeId, BrokerHost] = {}
        self.clients: dict[NodeId, ClientHost] = {}
        self.homes: dict[NodeId, NodeId] = {}  # the broker of each client
        self._make_core = make_core
        self._make_session = make_session
        self._rng = Random(f"{seed} links")
        self._link, self._access = link, access
        self._disk_delay = disk.sampler(Random(f"{seed} disks"))
        self._disks: dict[NodeId, Disk] = {name: Disk() for name in topology.nodes}
        self._cuts: set[frozenset[NodeId]] = set()
        self._away: set[NodeId] = set()
        self._paused: set[NodeId] = set()
        self.wanted: dict[tuple[NodeId, str], Filter] = {}  # by client and name
        self.offered: dict[tuple[NodeId, str], Filter] = {}
        for name in topology.nodes:
            self._start(name)
        for one, other in topology.edges:
            self._join(one, other)

    @property
    def now(self) -> float:
        return self.kernel.now

    # --- time ---

    def run(self, until: float) -> None:
        """Let everything happen up to this time."""
        self.kernel.run(until)

    def settle(self, at_least: float = 0.0, at_most: float = FOREVER) -> None:
        """Run for `at_least` so many seconds, then until nothing is on its way, `at_most` so many in all.

        Where leases are renewed all the time, something is always on its way: say by `at_least` how long the network
        takes to stabilize, and by `at_most` that this is enough.
        """
        start = self.now
        if at_least:
            self.run(start + at_least)
        self.kernel.settle(start + at_most)
        self.world.record(Settled(self.now))

    # --- clients ---

    def attach(self, client: NodeId, broker: NodeId) -> None:
        """Connect a client, a new one or one that was detached, to a broker; if that is down, once it is up again."""
        host = self.clients.get(client)
        if host is not None and host.channel is not None and self.homes[client] != broker:
            raise ValueError(f"{client} is attached to {self.homes[client]}: detach it first")
        if host is None:
            host = self.clients[client] = ClientHost(client, self.world, self._make_session(client))
        self.homes[client] = broker
        self._away.discard(client)
        home = self.brokers.get(broker)
        if home is None or host.channel is not None:
            return
        host.channel = self._channel(self._access, host, home)
        home.channels[client] = self._channel(self._access, home, host)
        self.world.record(Attached(self.now, client, broker))
        if client in self._paused:
            self.world.record(Stalled(self.now, client, broker))
        host.perform(host.session.resume(self.now))

    def detach(self, client: NodeId) -> None:
        """Cut a client off from its broker. It goes on as it was when it is attached again."""
        self._away.add(client)
        host = self.clients[client]
        if host.channel is None:
            return
        broker = self.homes[client]
        self._disconnect(host, broker)
        self.brokers[broker].channels.pop(client).close()
        self.brokers[broker].take(Gone(client), broker)

    def move(self, client: NodeId, broker: NodeId) -> None:
        """Connect a client to another broker."""
        if self.homes[client] != broker:
            self.detach(client)
        self.attach(client, broker)

    def subscribe(
        self,
        client: NodeId,
        name: str,
        wanted: Filter,
        *,
        lease: float = FOREVER,
        window: int = 1000,
        checking: Checking | None = None,
        replay: Replay | None = None,
    ) -> None:
        if self.wanted.get((client, name)) != wanted:
            self.wanted[client, name] = wanted
            self.world.record(Subscribed(self.now, client, name, wanted, replay))
        host = self.clients[client]
        session, now = host.session, self.now
        host.perform(session.subscribe(name, wanted, now, lease=lease, window=window, checking=checking, replay=replay))

    def unsubscribe(self, client: NodeId, name: str) -> None:
        del self.wanted[client, name]
        self.world.record(Unsubscribed(self.now, client, name))
        host = self.clients[client]
        host.perform(host.session.unsubscribe(name, self.now))

    def advertise(self, client: NodeId, name: str, offered: Filter, *, lease: float = FOREVER) -> None:
        if self.offered.get((client, name)) != offered:
            self.offered[client, name] = offered
            self.world.record(Advertised(self.now, client, name, offered))
        host = self.clients[client]
        host.perform(host.session.advertise(name, offered, self.now, lease=lease))

    def unadvertise(self, client: NodeId, name: str) -> None:
        del self.offered[client, name]
        self.world.record(Unadvertised(self.now, client, name))
        host = self.clients[client]
        host.perform(host.session.unadvertise(name, self.now))

    def publish(self, client: NodeId, *events: Event) -> None:
        host = self.clients[client]
        host.perform(host.session.publish(events, self.now))

    # --- faults ---

    def cut(self, one: NodeId, other: NodeId) -> None:
        """Cut a link. What is on it is lost."""
        if frozenset((one, other)) not in self._cuts:
            self._cuts.add(self._edge(one, other))
            self._part(one, other)

    def restore(self, one: NodeId, other: NodeId) -> None:
        """Let there be a link again that was cut."""
        if frozenset((one, other)) in self._cuts:
            self._cuts.remove(frozenset((one, other)))
            self._join(one, other)

    def crash(self, broker: NodeId) -> None:
        """A broker loses its state but what is stored, and its links."""
        host = self.brokers.get(broker)
        if host is None:
            return
        self.world.record(Crashed(self.now, broker))
        host.is_up = False
        for neighbour in self.topology.neighbours[broker]:
            self._part(broker, neighbour)
        del self.brokers[broker]
        for channel in host.channels.values():
            channel.close()
        for client in self._at(broker):
            self._disconnect(self.clients[client], broker)

    def restart(self, broker: NodeId) -> None:
        """A broker that crashed is there again, and so are its links and its clients."""
        if broker in self.brokers:
            return
        self.world.record(Restarted(self.now, broker))
        self._start(broker)
        for neighbour in self.topology.neighbours[broker]:
            self._join(broker, neighbour)
        for client in self._at(broker):
            self.attach(client, broker)

    def crash_client(self, client: NodeId) -> None:
        """A client forgets everything: its subscriptions and advertisements are over."""
        self.world.record(Crashed(self.now, client))
        for owner, name in [key for key in self.wanted if key[0] == client]:
            del self.wanted[owner, name]
            self.world.record(Unsubscribed(self.now, owner, name))
        for owner, name in [key for key in self.offered if key[0] == client]:
            del self.offered[owner, name]
            self.world.record(Unadvertised(self.now, owner, name))
        self.detach(client)
        self._paused.discard(client)
        self.clients.pop(client).is_up = False

    def pause(self, client: NodeId) -> None:
        """A client takes nothing of its subscriptions for now."""
        self.clients[client].is_paused = True
        self._paused.add(client)
        self.world.record(Stalled(self.now, client, self.homes[client]))

    def unpause(self, client: NodeId) -> None:
        """It takes them again."""
        self._paused.discard(client)
        self.world.record(Resumed(self.now, client, self.homes[client]))
        self.clients[client].unpause()

    def fill(self, client: NodeId) -> None:
        """A client does not read what its broker sends, as long as they stay connected."""
        broker = self.homes[client]
        if self.clients[client].channel is not None:
            self.brokers[broker].take(Full(client), broker)
            self.world.record(Stalled(self.now, client, broker))

    def drain(self, client: NodeId) -> None:
        """It has read all."""
        broker = self.homes[client]
        if self.clients[client].channel is not None:
            self.world.record(Resumed(self.now, client, broker))
            self.brokers[broker].take(Drained(client), broker)

    def spoil(self, broker: NodeId, *, fails: bool) -> None:
        """Nothing can be stored at a broker, or it can again."""
        self._disks[broker].fails = fails

    # --- inside ---

    def _start(self, broker: NodeId) -> None:
        disk = self._disks[broker]
        core = self._make_core(broker, tuple(disk.stored()), disk.log)
        host = self.brokers[broker] = BrokerHost(broker, self.world, core, disk, self._disk_delay, self._end_link)
        host.wake()

    def _join(self, one: NodeId, other: NodeId) -> None:
        """Make a link where both ends are up and it is not cut."""
        first, second = self.brokers.get(one), self.brokers.get(other)
        if first is None or second is None or other in first.channels or frozenset((one, other)) in self._cuts:
            return
        first.channels[other] = self._channel(self._link, first, second)
        second.channels[one] = self._channel(self._link, second, first)
        self.world.record(Linked(self.now, one, other))
        first.take(LinkUp(other), one)
        second.take(LinkUp(one), other)

    def _part(self, one: NodeId, other: NodeId) -> None:
        """Unmake a link, if there is one, and tell whoever is up."""
        first, second = self.brokers.get(one), self.brokers.get(other)
        if first is None or second is None or other not in first.channels:
            return
        first.channels.pop(other).close()
        second.channels.pop(one).close()
        self.world.record(Cut(self.now, one, other))
        for host, neighbour in ((first, other), (second, one)):
            if host.is_up:
                host.take(LinkDown(neighbour), host.name)

    def _end_link(self, one: NodeId, other: NodeId, is_made_again: bool) -> None:
        """Unmake a link that a broker does not want, or does not trust any more: then make it again soon."""
        self._part(one, other)
        if is_made_again:
            self.kernel.at(self.now + LINKED_AGAIN, self._join_both, (one, other))

    def _join_both(self, ends: tuple[NodeId, NodeId]) -> None:
        self._join(*ends)

    def _channel(self, link: Link, sender: Host, receiver: Host) -> Channel:
        names = sender.name, receiver.name
        return Channel(self.kernel, link, self._rng, *names, receiver.take, self.world.drop_on_way)

    def _edge(self, one: NodeId, other: NodeId) -> frozenset[NodeId]:
        if other not in self.topology.neighbours[one]:
            raise ValueError(f"there is no link between {one} and {other}")
        return frozenset((one, other))

    def _at(self, broker: NodeId) -> list[NodeId]:
        """The clients that are connected to a broker whenever it is up."""
        return [client for client, home in self.homes.items() if home == broker and client not in self._away]

    def _disconnect(self, host: ClientHost, broker: NodeId) -> None:
        if host.channel is not None:
            host.channel.close()
            host.channel = None
            self.world.record(Detached(self.now, host.name, broker))
