"""The state of a broker, changed behind its back: its tables, and what it believes it told its neighbours."""

from __future__ import annotations

from random import Random

from vestnik.routing.propagation import Propagation, Source
from vestnik.routing.reductions import Entry
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.verify.scripts import random_filter
from vestnik.wire.messages import AdminA, AdminS, Interest, NodeId

NOBODY = Source("nobody", "n")
LIE = 1e9
"""A time that no lease reaches."""


def corrupt(router: Router, rng: Random, now: float) -> None:
    """Half of the time neighbours are not even told what they would be, had all this happened."""
    _corrupt_clients(router, rng)
    for neighbour in router.neighbours:
        _corrupt_table(router, neighbour, rng, now)
        _corrupt_told(router.subscriptions, neighbour, rng)
        if isinstance(router, AdvertisingRouter):
            _corrupt_told(router.advertisements, neighbour, rng)
    if rng.random() < 0.5:
        list(router.flush(now))


def _corrupt_clients(router: Router, rng: Random) -> None:
    """Lose what local clients want and offer, and take in what nobody does."""
    for table in (router.subscriptions, *_offers(router)):
        for entry, source in [(entry, source) for entry, sources in table for source in sources if source.name]:
            if rng.random() < 0.3:
                table.remove(entry, source)
    if rng.random() < 0.5:
        router.subscribe(NOBODY, random_filter(rng), LIE)
    if rng.random() < 0.5:
        router.advertise(NOBODY, random_filter(rng), LIE)


def _corrupt_table(router: Router, neighbour: NodeId, rng: Random, now: float) -> None:
    """Lose what a neighbour wants and offers, and take in what it does not."""
    router.take(neighbour, AdminS((), _some(router.subscriptions, neighbour, rng)), now)
    if rng.random() < 0.5:
        router.subscriptions.add(Entry(random_filter(rng)), Source(neighbour), LIE)
    for table in _offers(router):
        lies = (Interest(random_filter(rng)),) if rng.random() < 0.5 else ()
        router.take(neighbour, AdminA(lies, _some(table, neighbour, rng)), now)


def _corrupt_told(table: Propagation, neighbour: NodeId, rng: Random) -> None:
    """Forget what a neighbour was told, believe what it was not, and that it believes it for longer than it does."""
    told = table.told(neighbour)
    for entry in list(told):
        match rng.randrange(3):
            case 0:
                del told[entry]
            case 1:
                told[entry] = LIE
    if rng.random() < 0.5:
        told[Entry(random_filter(rng))] = LIE


def _some(table: Propagation, neighbour: NodeId, rng: Random) -> tuple[Interest, ...]:
    known = [entry for entry, sources in table if Source(neighbour) in sources]
    return tuple([Interest(entry.filter, entry.tag) for entry in known if rng.random() < 0.3])


def _offers(router: Router) -> list[Propagation]:
    return [router.advertisements] if isinstance(router, AdvertisingRouter) else []
