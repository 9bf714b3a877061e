"""When a network is in order.

A state is legitimate when neighbours know what they were told, were told what they should know, and what they should
know makes the configuration valid; and when there is nothing in the tables that no client asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from vestnik.routing.propagation import Propagation, Source
from vestnik.routing.router import AdvertisingRouter
from vestnik.verify.agreement import agreement
from vestnik.verify.validity import Clients, Routers, validity


def illegitimate(routers: Routers, asked: Clients, offered: Clients | None = None) -> Iterator[str]:
    """What is not in order, in sentences, the cheap questions first."""
    yield from agreement(routers)
    yield from strangers(routers, asked, offered)
    yield from (wrong.said for wrong in validity(routers, asked, offered))


def strangers(routers: Routers, asked: Clients, offered: Clients | None = None) -> Iterator[str]:
    """What is in the tables for clients that did not ask for it, in sentences."""
    wanted = {source for wants in asked.values() for source in wants}
    for broker, router in routers.items():
        yield from (f"{broker} knows of {s}, who asked for nothing" for s in _local(router.subscriptions) - wanted)
        if offered is not None and isinstance(router, AdvertisingRouter):
            known = {source for offers in offered.values() for source in offers}
            unknown = _local(router.advertisements) - known
            yield from (f"{broker} knows of {s}, who advertised nothing" for s in unknown)


def brevity(routers: Routers) -> Iterator[str]:
    """What neighbours were told for a shorter time than its reasons last, by more than the slack, in sentences."""
    for me, router in routers.items():
        tables = [router.subscriptions, *([router.advertisements] if isinstance(router, AdvertisingRouter) else [])]
        for table, neighbour in product(tables, router.neighbours):
            entries, reduction, told = dict(table), table.reduction(neighbour), table.told(neighbour)
            for known in reduction.entries():
                lasts = [
                    expiry
                    for entry in reduction.reasons(known)
                    for source, expiry in entries.get(entry, {}).items()
                    if source.node != neighbour
                ]
                if known in told and max(lasts, default=0.0) > told[known] + router.leases.slack:
                    yield f"{me} told {neighbour} ({known.filter}) until {told[known]:g}; it lasts until {max(lasts):g}"


def _local(table: Propagation) -> set[Source]:
    return {source for _, sources in table for source in sources if source.name}
