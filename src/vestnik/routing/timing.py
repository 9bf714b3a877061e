"""The times of a network whose entries have leases: how long they must be, and how long it takes until all is in order.

Who reaches whom in how many hops is counted between brokers. The link of a client to its broker makes no hop: what
varies in its delay makes the time between two renewals longer.
"""

from __future__ import annotations

from typing import NamedTuple

from vestnik.routing.registry import make_strategy


class Timing(NamedTuple):
    """Times in seconds. Renewals reach a client's broker every `refresh`; no two brokers are more `hops` apart."""

    refresh: float
    lease: float
    sweep: float
    least_delay: float
    most_delay: float
    hops: int

    @property
    def least_lease(self) -> float:
        """A lease must be longer, or what is renewed expires."""
        return self.refresh + self.hops * (self.most_delay - self.least_delay)

    @property
    def slack(self) -> float:
        """What the renewal of a local client must gain to be passed on: half of what the lease has above its bound."""
        return (self.lease - self.least_lease) / 2

    @property
    def travel(self) -> float:
        """How long it takes to tell everybody, where it is noticed at a sweep."""
        return (self.hops + 1) * self.most_delay + self.sweep

    @property
    def wrong_until(self) -> float:
        """After this time, nothing that was wrong is left in a table or on its way."""
        return self.lease + self.sweep + self.travel

    @property
    def renewed_until(self) -> float:
        """After this time, every client has renewed what it wants, and who was not misled knows it."""
        return self.refresh + self.slack + self.travel

    def bound(self, *, hides: bool = True, advertisements: bool = True) -> float:
        """How long a network takes until it is in order, from whatever state, at most.

        Where a strategy hides entries under others, a right one may be hidden by a wrong one until that is gone, and
        only then begins to travel. With advertisements subscriptions travel once these are right.
        """
        right = self.wrong_until + self.travel if hides else max(self.wrong_until, self.renewed_until)
        return right + self.travel if advertisements else right


def bound(strategy: str, timing: Timing, *, advertisements: bool = False) -> float:
    """The same for the strategy of this name."""
    return timing.bound(hides=make_strategy(strategy).hides, advertisements=advertisements)


def printed_bound(timing: Timing) -> float:
    """Formula (16) as it is printed: the lease is not in it."""
    return timing.most_delay + timing.hops * (timing.most_delay - timing.least_delay) + timing.refresh
