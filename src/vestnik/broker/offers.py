"""What clients of a broker advertise, and when other brokers learn of it.

An advertisement stays until all events that were accepted under it are routed: one that is withdrawn earlier would let
neighbours forget who wants these events.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from vestnik.model.filters import Filter
from vestnik.recovery.answers import Offered
from vestnik.recovery.recovery import Act, Recovery
from vestnik.routing.propagation import Source
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Origin

PROLONGED: Final = 60.0
"""Seconds for which an advertisement stays whose lease has ended too early, at most."""


class Offers:
    """The advertisements of local clients. `holds_for` says whether events of a client wait for their time."""

    def __init__(self, router: Router, recovery: Recovery, holds_for: Callable[[NodeId], bool]) -> None:
        self._router = router
        self._recovery = recovery
        self._holds_for = holds_for
        self._restricts = isinstance(router, AdvertisingRouter)
        self._numbers = count(1)
        self._offered: dict[Source, tuple[int, Filter]] = {}
        self._leaving: dict[Source, int] = {}  # with the offset up to which all must be routed before
        self._replayed: dict[Source, Origin] = {}  # those of which clients answer replays
        self._acts: list[Act] = []

    def advertise(self, source: Source, offered: Filter, expiry: float, *, replays: bool = False) -> None:
        """Advertise, renew or change. If the client `replays` it, it is asked for the past while it is connected."""
        self._leaving.pop(source, None)
        if replays:
            origin = self._replayed[source] = Origin.of_client(self._recovery.topology.own.broker, *source)
            self._acts += self._recovery.host(origin, Offered(*source, offered))
        else:
            self._unhost(source)
        self._router.advertise(source, offered, expiry)
        before = self._offered.get(source)
        if self._restricts and (before is None or before[1] != offered):
            number = next(self._numbers)
            self._offered[source] = number, offered
            self._acts += self._recovery.offer(number, offered)
            if before is not None:
                self._acts += self._recovery.withdraw(before[0])

    def withdraw(self, source: Source) -> None:
        """Withdraw an advertisement, now or when all is routed."""
        self._unhost(source)
        if source in self._router.advertised:
            self._leaving[source] = self._recovery.tail.next
            self.routed()

    def prolong(self, now: float) -> None:
        """Renew advertisements whose lease has ended while events wait that may have been accepted under them."""
        tail = self._recovery.tail
        for source in self._router.lapsing(now):
            if tail.next > tail.routed or self._holds_for(source.node):
                until = now + min(PROLONGED, self._router.leases.length)
                self._router.advertise(source, self._router.advertised[source], until)

    def routed(self) -> bool:
        """Withdraw what waited until all is routed that was accepted under it; return whether there was any."""
        has_withdrawn = False
        if not self._leaving:
            return has_withdrawn
        for source in [one for one, upto in self._leaving.items() if upto <= self._recovery.tail.routed]:
            if not self._holds_for(source.node):
                del self._leaving[source]
                self._router.unadvertise(source)
                self.lapsed(source)
                has_withdrawn = True
        return has_withdrawn

    def lapsed(self, source: Source) -> None:
        """Forget an advertisement that the router has not any more."""
        self._unhost(source)
        number, _ = self._offered.pop(source, (0, None))
        if number:
            self._acts += self._recovery.withdraw(number)

    def left(self, client: NodeId) -> None:
        """Ask a client for nothing while it is not connected. It advertises again when it returns."""
        for source in [one for one in self._replayed if one.node == client]:
            self._unhost(source)

    def _unhost(self, source: Source) -> None:
        origin = self._replayed.pop(source, None)
        if origin is not None:
            self._acts += self._recovery.unhost(origin)

    def told(self) -> list[Act]:
        """Return what neighbours are to be told since the last time."""
        acts, self._acts = self._acts, []
        return acts
