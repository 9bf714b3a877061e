"""What goes wrong, and when: links, brokers, disks, clients, and state that is changed behind a broker's back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import TypeAlias

from msgspec import Struct

from vestnik.broker.core import BrokerCore
from vestnik.model.filters import Filter
from vestnik.routing.propagation import Source
from vestnik.routing.reductions import Entry
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.sim.network import Network
from vestnik.trace.records import Corrupted
from vestnik.wire.messages import AdminA, AdminS, Interest, NodeId

GARBAGE = 3
"""How many wrong entries each neighbour of a corrupted broker is good for."""
LONGEST_LIE = 1e9
"""A lease that no broker gave."""


class CutLink(Struct, frozen=True, tag="cut", tag_field="kind", forbid_unknown_fields=True):
    """A link is down from `at` on, for `lasting` seconds."""

    at: float
    lasting: float
    between: tuple[NodeId, NodeId]


class Crash(Struct, frozen=True, tag="crash", tag_field="kind", forbid_unknown_fields=True):
    """A broker loses all but what is stored, and is back after `lasting` seconds."""

    at: float
    lasting: float
    broker: NodeId


class Away(Struct, frozen=True, tag="away", tag_field="kind", forbid_unknown_fields=True):
    """A client is not connected for `lasting` seconds."""

    at: float
    lasting: float
    client: NodeId


class Move(Struct, frozen=True, tag="move", tag_field="kind", forbid_unknown_fields=True):
    """A client leaves its broker, and is at broker `to` after `lasting` seconds."""

    at: float
    lasting: float
    client: NodeId
    to: NodeId


class CrashClient(Struct, frozen=True, tag="crash-client", tag_field="kind", forbid_unknown_fields=True):
    """A client forgets everything, and begins anew after `lasting` seconds."""

    at: float
    lasting: float
    client: NodeId


class Corrupt(Struct, frozen=True, tag="corrupt", tag_field="kind", forbid_unknown_fields=True):
    """The tables of a broker are garbage, what it believes it has told its neighbours, and what is on its links."""

    at: float
    broker: NodeId

    @property
    def lasting(self) -> float:
        return 0.0


class Pause(Struct, frozen=True, tag="pause", tag_field="kind", forbid_unknown_fields=True):
    """A client takes no notifications for `lasting` seconds."""

    at: float
    lasting: float
    client: NodeId


class Stall(Struct, frozen=True, tag="stall", tag_field="kind", forbid_unknown_fields=True):
    """The connection of a client is full for `lasting` seconds: its broker does not send it notifications."""

    at: float
    lasting: float
    client: NodeId


class BadDisk(Struct, frozen=True, tag="disk", tag_field="kind", forbid_unknown_fields=True):
    """A broker can store nothing for `lasting` seconds, and refuses what is published there."""

    at: float
    lasting: float
    broker: NodeId


Fault: TypeAlias = CutLink | Crash | Away | Move | CrashClient | Corrupt | Pause | Stall | BadDisk


def corrupt(network: Network, broker: NodeId, garbage: Iterator[Filter], rng: Random) -> None:
    """Change the state of a broker that is up, and what is on its way from it, at random."""
    host = network.brokers.get(broker)
    if host is None or not isinstance(host.core, BrokerCore):
        return
    router = host.core.router
    corrupt_clients(router, garbage, rng)
    for neighbour in router.neighbours:
        corrupt_table(router, neighbour, garbage, rng, network.now)
        corrupt_told(router, neighbour, garbage, rng)
        for kind in _kinds(router):
            host.channels[neighbour].send(kind(tuple(_lies(garbage, rng)), tuple(_lies(garbage, rng))))
    network.world.record(Corrupted(network.now, broker, "tables, what neighbours were told, and messages"))


def corrupt_clients(router: Router, garbage: Iterator[Filter], rng: Random) -> None:
    """Make a table lack what local clients want, and hold what clients want that never were."""
    table = router.subscriptions
    local = [(entry, source) for entry, sources in table for source in sources if source.name]
    for entry, source in local:
        if rng.random() < 0.5:
            table.remove(entry, source)
    for number, lie in enumerate(_lies(garbage, rng)):
        router.subscribe(Source("nobody", str(number)), lie.filter, lie.lease)


def corrupt_table(router: Router, neighbour: NodeId, garbage: Iterator[Filter], rng: Random, now: float) -> None:
    """Make a table hold what a neighbour did not say, and lack what it did. Half the time nobody is told of it."""
    known = [entry for entry, sources in router.subscriptions if Source(neighbour) in sources]
    forgotten = tuple([Interest(entry.filter, entry.tag) for entry in known if rng.random() < 0.5])
    router.take(neighbour, AdminS(tuple(_lies(garbage, rng)), forgotten), now)
    if isinstance(router, AdvertisingRouter):
        router.take(neighbour, AdminA(tuple(_lies(garbage, rng))), now)
    if rng.random() < 0.5:
        list(router.flush(now))


def corrupt_told(router: Router, neighbour: NodeId, garbage: Iterator[Filter], rng: Random) -> None:
    """Make a broker believe that it told a neighbour what it did not, and did not tell what it did."""
    tables = [router.subscriptions, *([router.advertisements] if isinstance(router, AdvertisingRouter) else [])]
    for table in tables:
        told = table.told(neighbour)
        for entry in [entry for entry in told if rng.random() < 0.5]:
            del told[entry]
        for lie in _lies(garbage, rng):
            told[Entry(lie.filter, lie.tag)] = lie.lease


def _lies(garbage: Iterator[Filter], rng: Random) -> Iterable[Interest]:
    return [Interest(next(garbage), "", LONGEST_LIE * rng.random()) for _ in range(rng.randint(0, GARBAGE))]


def _kinds(router: Router) -> list[type[AdminS] | type[AdminA]]:
    return [AdminS, AdminA] if isinstance(router, AdvertisingRouter) else [AdminS]
