"""The advertisements of local clients: how long they last, and when other brokers learn of them.

An advertisement stays until all events that were accepted under it are routed: one that is withdrawn earlier would let
neighbours forget who wants these events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Final

from vestnik.broker.announcements import Announcements
from vestnik.broker.clients import Clients
from vestnik.broker.effects import Effect, OfferEnded, OfferMade, Send, Tell
from vestnik.broker.outlet import Outlet
from vestnik.broker.settling import Settling, answer
from vestnik.model.filters import Filter
from vestnik.model.reserved import ADVERTISEMENT
from vestnik.model.times import FOREVER
from vestnik.recovery.answers import Offered
from vestnik.recovery.recovery import Act, Recovery
from vestnik.routing.propagation import Source
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import Accepted, Advertise, NodeId, Refused, Unadvertise
from vestnik.wire.origins import Origin

PROLONGED: Final = 60.0
"""Seconds for which an advertisement stays whose lease has ended too early, at most."""


class Offers:
    """The advertisements of all local clients. `holds_for` says whether events of a client wait for their time."""

    def __init__(
        self,
        clients: Clients,
        router: Router,
        recovery: Recovery,
        outlet: Outlet,
        settling: Settling,
        announcements: Announcements | None,
        tell: Tell,
        holds_for: Callable[[NodeId], bool],
    ) -> None:
        self._clients = clients
        self._router = router
        self._recovery = recovery
        self._outlet = outlet
        self._settling = settling
        self._announcements = announcements
        self._tell = tell
        self._holds_for = holds_for
        self._restricts = isinstance(router, AdvertisingRouter)
        self._numbers = count(1)
        self._offered: dict[Source, tuple[int, Filter]] = {}
        self.leaving: dict[Source, int] = {}  # with the offset up to which all must be routed before
        self._replayed: dict[Source, Origin] = {}  # those of which clients answer replays
        self.acts: list[Act] = []

    # --- made and renewed ---

    def advertise(self, message: Advertise, client: NodeId, now: float) -> list[Effect]:
        unfit = self._clients.unfit(client, message.name, message.lease)
        if unfit:
            return answer(client, message, Refused(message.request, unfit))
        source, lease = Source(client, message.name), self._clients.granted(message.lease)
        before = self._router.advertised.get(source)
        self._clients.heard(client).advertise(message.name, leased=message.lease < FOREVER)
        self._offer(source, message.filter, now + lease, replays=message.replays)
        effects: list[Effect] = []
        if before != message.filter:
            self._announce(source, before, message)
            effects.append(OfferMade(*source, message.filter))
        effects += [*self._tell(now), *self.told()]
        if not (message.settled and message.request):
            return effects + answer(client, message, Accepted(message.request, lease))

        def accept(missing: Iterable[str]) -> list[Effect]:
            return [Send(client, Accepted(message.request, lease, missing=tuple(missing)))]

        return effects + self._settling.when_settled(accept, now)

    def _offer(self, source: Source, offered: Filter, expiry: float, *, replays: bool) -> None:
        """Advertise, renew or change. If the client `replays` it, it is asked for the past while it is connected."""
        self.leaving.pop(source, None)
        if replays:
            origin = self._replayed[source] = Origin.of_client(self._recovery.topology.own.broker, *source)
            self.acts += self._recovery.host(origin, Offered(*source, offered))
        else:
            self._unhost(source)
        self._router.advertise(source, offered, expiry)
        before = self._offered.get(source)
        if self._restricts and (before is None or before[1] != offered):
            number = next(self._numbers)
            self._offered[source] = number, offered
            self.acts += self._recovery.offering.offer(number, offered)
            if before is not None:
                self.acts += self._recovery.offering.withdraw(before[0])

    def prolong(self, now: float) -> None:
        """Renew advertisements whose lease has ended while events wait that may have been accepted under them."""
        tail = self._recovery.tail
        for source in self._router.lapsing(now):
            if tail.next > tail.routed or self._holds_for(source.node):
                until = now + min(PROLONGED, self._router.leases.length)
                self._router.advertise(source, self._router.advertised[source], until)

    # --- ended ---

    def unadvertise(self, message: Unadvertise, client: NodeId, now: float) -> list[Effect]:
        ended = self._drop(client, message.name)
        effects = [*ended, *self._tell(now), *self.told()]
        return effects + answer(client, message, Accepted(message.request))

    def left(self, client: NodeId) -> list[Effect]:
        """End the advertisements without a lease of a client that is not connected any more.

        Ask it for nothing of the others. It advertises again when it returns.
        """
        advertisements = self._clients.known[client].advertisements
        names = [name for name, leased in advertisements.items() if not leased]
        ended = [effect for name in names for effect in self._drop(client, name)]
        for source in [one for one in self._replayed if one.node == client]:
            self._unhost(source)
        return ended

    def _drop(self, client: NodeId, name: str) -> list[Effect]:
        """Withdraw an advertisement, now or when all is routed."""
        source = Source(client, name)
        was_there = self._clients.heard(client).unadvertise(name)
        self._announce(source, self._router.advertised.get(source))
        self._unhost(source)
        if source in self._router.advertised:
            self.leaving[source] = self._recovery.tail.next
            self.routed()
        return [OfferEnded(client, name)] if was_there else []

    def routed(self) -> bool:
        """Withdraw what waited until all is routed that was accepted under it; return whether there was any."""
        has_withdrawn = False
        for source in [one for one, upto in self.leaving.items() if upto <= self._recovery.tail.routed]:
            if not self._holds_for(source.node):
                del self.leaving[source]
                self._router.unadvertise(source)
                self._close(source)
                has_withdrawn = True
        return has_withdrawn

    def lapsed(self, source: Source, offered: Filter) -> list[Effect]:
        """End an advertisement that the router has not any more, because it was not renewed."""
        self._close(source)
        self._announce(source, offered)
        client = self._clients.known.get(source.node)
        if client is not None:
            client.unadvertise(source.name)
            self._clients.forget(source.node)
        return [OfferEnded(*source)]

    def _close(self, source: Source) -> None:
        self._unhost(source)
        number, _ = self._offered.pop(source, (0, None))
        if number:
            self.acts += self._recovery.offering.withdraw(number)

    def _unhost(self, source: Source) -> None:
        origin = self._replayed.pop(source, None)
        if origin is not None:
            self.acts += self._recovery.unhost(origin)

    def _announce(self, source: Source, before: Filter | None, after: Advertise | None = None) -> None:
        if self._announcements is not None:
            self._announcements.changed(ADVERTISEMENT, source, before, after)

    def told(self) -> list[Effect]:
        """Return what neighbours are to be told since the last time."""
        acts, self.acts = self.acts, []
        return self._outlet.perform(acts)
