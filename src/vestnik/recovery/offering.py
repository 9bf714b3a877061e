"""The offers at the log of one broker: what its clients advertise, as its neighbours know it.

An advertisement is withdrawn when all is routed that was accepted under it: without it, neighbours would forget who
wants these events.
"""

from __future__ import annotations

from vestnik.model.filters import Filter
from vestnik.recovery.tail import Tail
from vestnik.recovery.topology import Say, Topology
from vestnik.wire.origins import Offer


class Offering:
    """The offers at the own log of a broker, which ends with `tail`."""

    def __init__(self, tail: Tail, topology: Topology) -> None:
        self._tail = tail
        self._topology = topology
        self._offers: dict[int, Filter] = {}
        # What neighbours were not told to be withdrawn, with the offset up to which all must be routed before.
        self.withdrawn: list[tuple[int, int]] = []

    def offer(self, number: int, offered: Filter) -> list[Say]:
        """Advertise at this broker; `number` was not used before."""
        self._offers[number] = offered
        return self.told()

    def withdraw(self, number: int) -> list[Say]:
        """Withdraw an advertisement when all is routed that was accepted under it."""
        self.withdrawn.append((number, self._tail.next))
        return self.told()

    def told(self) -> list[Say]:
        """Return what neighbours are told of what is offered by now."""
        due = [number for number, upto in self.withdrawn if upto <= self._tail.routed]
        self.withdrawn = [one for one in self.withdrawn if one[1] > self._tail.routed]
        for number in due:
            self._offers.pop(number, None)
        offers = frozenset([Offer(number, offered) for number, offered in self._offers.items()])
        return [] if offers == self._topology.offers else self._topology.offer(offers)
