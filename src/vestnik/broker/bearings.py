"""Tells clients up to which position they have seen what each broker took. By these they resume, at any broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vestnik.broker.clients import Client, Subscription
from vestnik.broker.effects import Effect, Send, Wake
from vestnik.broker.reach import Surroundings
from vestnik.model.times import FOREVER
from vestnik.wire.messages import Accepted, NodeId

TELL_AFTER = 1.0
"""Seconds after a broker has come within reach in which clients are told its position."""


class Bearings:
    """Clients are told when they subscribe or renew, and also where that was too early to tell all."""

    def __init__(self, clients: Mapping[NodeId, Client], surroundings: Surroundings) -> None:
        self._clients = clients
        self._surroundings = surroundings
        self._untold: set[NodeId] = set()
        self._awaiting: set[NodeId] = set()  # those of them for whom something is on its way
        self._next = FOREVER

    def seen(self, client: Client, subscription: Subscription) -> tuple[tuple[NodeId, int], ...]:
        """What a client has seen that has all of a subscription; nothing while something is on its way to it.

        Who is out of reach comes first, the longest before all: by that a broker it comes to knows whom to forget.
        """
        is_kept = client.behind is not None and client.behind.keeps_for(subscription)
        return () if subscription.replaying or client.making_up or is_kept else self.begun(subscription)

    def begun(self, subscription: Subscription) -> tuple[tuple[NodeId, int], ...]:
        """The positions with which a subscription begins that is new; where it is replaying, but for the past."""
        lacks = subscription.lacks
        return tuple((lacks | self._surroundings.positions | lacks).items())

    def tell_later(self, client: NodeId, now: float) -> list[Effect]:
        """A client is told when what is on its way has come, or soon."""
        self._awaiting.add(client)
        return self.tell_soon([client], now)

    def arrived(self) -> list[Effect]:
        """Something has come that may have been the last that was on its way: tell those who wait for nothing more.

        Were the broker to forget them now, they could go on without a gap.
        """
        effects: list[Effect] = []
        for name in sorted(self._awaiting):
            client = self._clients.get(name)
            if client is None or not (client.making_up or any(one.replaying for one in client.subscriptions.values())):
                self._awaiting.discard(name)
                effects += self._tell(name, client) if client is not None and client.connected else []
        return effects

    def tell_soon(self, clients: Iterable[NodeId], now: float) -> list[Effect]:
        self._untold.update(clients)
        if not self._untold or self._next < FOREVER:
            return []
        self._next = now + TELL_AFTER
        return [Wake(self._next)]

    def appeared(self, now: float) -> list[Effect]:
        """Brokers are within reach whose positions clients do not know."""
        return self.tell_soon(self._clients, now)

    def tick(self, now: float) -> list[Effect]:
        """Tell, if it is time for it. Who waits for something is told when that has come."""
        if now < self._next:
            return []
        told, self._untold, self._next = sorted(self._untold), set(), FOREVER
        effects: list[Effect] = []
        for name in told:
            client = self._clients.get(name)
            if client is not None and client.connected:
                effects += self._tell(name, client)
        return effects + self.tell_soon((), now)

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._next += by

    def _tell(self, name: NodeId, client: Client) -> Iterable[Effect]:
        for subscription in client.subscriptions.values():
            seen = self.seen(client, subscription) if client.takes else ()
            if not seen:
                self._untold.add(name)
                continue
            epoch, last, taken = subscription.epoch, subscription.last, subscription.taken
            yield Send(name, Accepted(0, epoch=epoch, last=last, seen=seen, taken=taken))
