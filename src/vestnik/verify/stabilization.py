"""When a network is in order, and how long it takes until it is, from whatever state.

A state is legitimate when neighbours know what they were told, were told what they should know, and what they should
know makes the configuration valid; and when there is nothing in the tables that no client asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vestnik.routing.propagation import Propagation, Source
from vestnik.routing.router import AdvertisingRouter
from vestnik.verify.agreement import agreement
from vestnik.verify.validity import Clients, Routers, validity


class Timing(NamedTuple):
    """Times in seconds. Clients renew every `refresh`; from a client to the farthest broker there are `hops` links."""

    refresh: float
    lease: float
    sweep: float
    least_delay: float
    most_delay: float
    hops: int

    @property
    def slack(self) -> float:
        """What the renewal of a local client must gain to be passed on: half of what the lease has above its bound."""
        return (self.lease - self.least_lease) / 2

    @property
    def least_lease(self) -> float:
        """A lease must be longer, or what is renewed expires."""
        return self.refresh + self.hops * (self.most_delay - self.least_delay)

    @property
    def wrong_until(self) -> float:
        """After this time, nothing that was wrong is left in a table or on its way."""
        return self.lease + (self.hops + 1) * self.most_delay + 2 * self.sweep

    @property
    def renewed_until(self) -> float:
        """After this time, every client has renewed what it wants, and who was not misled knows it."""
        return self.refresh + self.slack + self.sweep + self.hops * self.most_delay

    @property
    def travel(self) -> float:
        """How long it takes to tell everybody, where it is noticed at a sweep."""
        return (self.hops + 1) * self.most_delay + self.sweep


def bound(strategy: str, timing: Timing, *, advertisements: bool = False) -> float:
    """How long a network takes until it is in order, at most.

    Where a strategy hides entries under others, a right one may be hidden by a wrong one until that is gone, and only
    then begins to travel. With advertisements subscriptions travel once these are right.
    """
    hides = strategy.split()[-1] in HIDING
    time = timing.wrong_until + timing.travel if hides else max(timing.wrong_until, timing.renewed_until)
    return time + timing.travel if advertisements else time


HIDING = ("covering", "merging")


def printed_bound(timing: Timing) -> float:
    """Formula (16) as it is printed: the lease is not in it."""
    return timing.most_delay + timing.hops * (timing.most_delay - timing.least_delay) + timing.refresh


def illegitimate(routers: Routers, asked: Clients, offered: Clients | None = None) -> Iterator[str]:
    """What is not in order, in sentences, the cheap questions first."""
    yield from agreement(routers)
    wanted = {source for wants in asked.values() for source in wants}
    for broker, router in routers.items():
        yield from (f"{broker} knows of {s}, who asked for nothing" for s in _local(router.subscriptions) - wanted)
        if offered is not None and isinstance(router, AdvertisingRouter):
            known = {source for offers in offered.values() for source in offers}
            strangers = _local(router.advertisements) - known
            yield from (f"{broker} knows of {s}, who advertised nothing" for s in strangers)
    yield from (wrong.said for wrong in validity(routers, asked, offered))


def _local(table: Propagation) -> set[Source]:
    return {source for _, sources in table for source in sources if source.name}
