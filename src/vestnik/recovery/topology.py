"""Which origins can be reached, and through which neighbour.

Each origin has one next hop, a neighbour. Events, frontiers and pages of the origin count only if they come from there,
so one cursor is enough against duplicates, also while links are moved. If a next hop is lost, the broker tells its
neighbours before it uses another one, so that they notice the break.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from typing import NamedTuple, TypeAlias

from vestnik.wire.messages import Message, NodeId
from vestnik.wire.origins import Offer, Origin, OriginGone, OriginHere, OriginOffers

Offers: TypeAlias = frozenset[Offer]


class Say(NamedTuple):
    """A message for a neighbour."""

    to: NodeId
    message: Message


class Rerouted(NamedTuple):
    """Origins that lost their next hop, origins that have a new one, and what neighbours are told of it, in order."""

    lost: list[Origin]
    found: list[Origin]
    told: list[Say]


class Topology:
    """The next hops of one broker, whose own log is `own`. The log of a history has copies."""

    def __init__(self, own: Origin, *, is_history: bool = False) -> None:
        self.own = own
        self.offers: Offers = frozenset()  # of clients of this broker
        self._reach: dict[NodeId, dict[Origin, Offers]] = {}  # what each neighbour says
        self._said: dict[NodeId, dict[Origin, Offers]] = {}  # what each neighbour was told
        self._next_hop_of: dict[Origin, NodeId] = {}
        self.histories = {own} if is_history else set[Origin]()  # logs of copies
        self._hosted: dict[Origin, None] = {}  # histories for which clients of this broker answer

    @property
    def neighbours(self) -> KeysView[NodeId]:
        return self._reach.keys()

    def next_hop(self, origin: Origin) -> NodeId | None:
        """Return the neighbour through which an origin is reached."""
        return self._next_hop_of.get(origin)

    def brokers(self, without: NodeId | None = None) -> frozenset[NodeId]:
        """Return this broker and all that can be reached, but those through one neighbour."""
        return frozenset([self.own.broker, *[one.broker for one, hop in self._next_hops() if hop != without]])

    def linked(self, without: NodeId | None = None) -> frozenset[NodeId]:
        """Return the same with the neighbours that have not said yet which logs they have."""
        return self.brokers(without) | (self._reach.keys() - {without})

    def through(self, neighbour: NodeId) -> frozenset[NodeId]:
        """Return the brokers that are reached through a neighbour."""
        return frozenset([one.broker for one, hop in self._next_hops() if hop == neighbour])

    def next_hop_to(self, broker: NodeId) -> NodeId | None:
        """Return the neighbour through which a broker is reached."""
        return next((hop for one, hop in self._next_hops() if one.broker == broker), None)

    def _next_hops(self) -> Iterator[tuple[Origin, NodeId]]:
        """Yield the logs of brokers that can be reached, and the next hops to them."""
        return ((origin, hop) for origin, hop in self._next_hop_of.items() if not origin.is_of_client)

    def repeat(self) -> list[Say]:
        """Say once more to all neighbours which origins are here, the own log last."""
        return [
            Say(neighbour, self._here(origin, said[origin]))
            for neighbour, said in self._said.items()
            for origin in sorted(said, key=lambda origin: origin == self.own)
        ]

    def link_up(self, neighbour: NodeId) -> list[Say]:
        """Add a link, and tell the neighbour what can be reached on this side.

        The own log comes last: a neighbour that has heard of it has heard of all.
        """
        self._reach[neighbour], self._said[neighbour] = {}, {}
        told: list[Say] = []
        for origin in self._hosted:
            told += self._say(neighbour, origin, frozenset())
        for origin, hop in self._next_hop_of.items():
            told += self._say(neighbour, origin, self._reach[hop][origin])
        return told + self._say(neighbour, self.own, self.offers)

    def link_down(self, neighbour: NodeId) -> Rerouted:
        self._reach.pop(neighbour, None)
        self._said.pop(neighbour, None)
        return self._reroute()

    def here(self, neighbour: NodeId, origin: Origin, offers: Offers, *, history: bool = False) -> Rerouted:
        if history:
            self.histories.add(origin)
        if neighbour in self._reach:
            self._reach[neighbour][origin] = offers
        return self._reroute()

    def gone(self, neighbour: NodeId, origin: Origin) -> Rerouted:
        self._reach.get(neighbour, {}).pop(origin, None)
        return self._reroute()

    def offered(self, neighbour: NodeId, origin: Origin, offers: Offers) -> tuple[Offers | None, list[Say]]:
        """Take in the offers at an origin; return those before if they count here, and what others are told."""
        before = self._reach.get(neighbour, {}).get(origin)
        if before is None:
            return None, []
        self._reach[neighbour][origin] = offers
        if self._next_hop_of.get(origin) != neighbour:
            return None, []
        return before, self._say_others(neighbour, origin, offers)

    def offer(self, offers: Offers) -> list[Say]:
        """Tell all neighbours what the clients of this broker advertise now."""
        self.offers = offers
        return [say for neighbour in self._reach for say in self._say(neighbour, self.own, offers)]

    def host(self, origin: Origin) -> list[Say]:
        """Tell all neighbours of a history for which a client of this broker answers."""
        self._hosted[origin] = None
        self.histories.add(origin)
        return [say for neighbour in self._reach for say in self._say(neighbour, origin, frozenset())]

    def unhost(self, origin: Origin) -> list[Say]:
        self._hosted.pop(origin, None)
        self.histories.discard(origin)
        return [say for neighbour in self._reach for say in self._unsay(neighbour, origin)]

    def _reroute(self) -> Rerouted:
        """First give up all next hops that are lost, and then look for others."""
        lost = [origin for origin, hop in self._next_hop_of.items() if origin not in self._reach.get(hop, {})]
        told: list[Say] = []
        for origin in lost:
            del self._next_hop_of[origin]
            for neighbour in self._reach:
                told += self._unsay(neighbour, origin)
        found: list[Origin] = []
        for neighbour, reach in self._reach.items():
            for origin, offers in reach.items():
                if origin not in self._next_hop_of and origin.broker != self.own.broker:
                    self._next_hop_of[origin] = neighbour
                    told += [*self._unsay(neighbour, origin), *self._say_others(neighbour, origin, offers)]
                    found.append(origin)
        self.histories.difference_update([origin for origin in lost if origin not in self._next_hop_of])
        return Rerouted(lost, found, told)

    def _say_others(self, neighbour: NodeId, origin: Origin, offers: Offers) -> list[Say]:
        return [say for other in self._reach if other != neighbour for say in self._say(other, origin, offers)]

    def _say(self, neighbour: NodeId, origin: Origin, offers: Offers) -> list[Say]:
        """Tell a neighbour that an origin is here and what is offered there, unless it knows, or is the next hop."""
        said = self._said[neighbour]
        if self._next_hop_of.get(origin) == neighbour or said.get(origin) == offers:
            return []
        message = OriginOffers(origin, offers) if origin in said else self._here(origin, offers)
        said[origin] = offers
        return [Say(neighbour, message)]

    def _here(self, origin: Origin, offers: Offers) -> OriginHere:
        return OriginHere(origin, offers, origin in self.histories)

    def _unsay(self, neighbour: NodeId, origin: Origin) -> list[Say]:
        if self._said[neighbour].pop(origin, None) is None:
            return []
        return [Say(neighbour, OriginGone(origin))]
