"""When a network is in order.

A state is legitimate when neighbours know what they were told, were told what they should know, and what they should
know makes the configuration valid; and when there is nothing in the tables that no client asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def _local(table: Propagation) -> set[Source]:
    return {source for _, sources in table for source in sources if source.name}
