"""The links of a broker, and which logs can be reached over them."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeAlias

from vestnik.broker.effects import CYCLE, Effect, Joined, Joining, LinkDown, LinkUp, Part, Tell, Wake
from vestnik.broker.outlet import Outlet
from vestnik.model.times import FOREVER
from vestnik.recovery.recovery import Act, Recovery
from vestnik.routing.router import Router
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Frontiers, OriginGone, OriginHere, OriginOffers

REPORT_AFTER = 1.0
"""Seconds after an event was routed in which neighbours are told how far it has been sent to them."""

Met: TypeAlias = Callable[[Set[NodeId], Set[NodeId], float], list[Effect]]
"""Tells local clients which brokers were within reach, and which are."""


class Neighbourhood:
    """Keeps neighbours informed of the logs on this side of their link, and how far these were sent."""

    def __init__(self, router: Router, recovery: Recovery, outlet: Outlet, tell: Tell, met: Met) -> None:
        self._router = router
        self._recovery = recovery
        self._topology = recovery.topology
        self._outlet = outlet
        self._tell = tell
        self._met = met
        self._next_report = FOREVER

    def link_up(self, message: LinkUp, sender: NodeId, now: float) -> list[Effect]:
        """Tell a neighbour what is wanted and offered first, and then which logs are here: they may be fetched."""
        self._router.connect(message.neighbour)
        return [*self._tell(now), *self._outlet.perform(self._recovery.link_up(message.neighbour))]

    def link_down(self, message: LinkDown, sender: NodeId, now: float) -> list[Effect]:
        self._router.disconnect(message.neighbour)
        return self._changed(lambda: self._recovery.link_down(message.neighbour), now)

    def joining(self, message: Joining, sender: NodeId, now: float) -> list[Effect]:
        self._recovery.meeting.joining(message.at, now)
        return []

    def joined(self, message: Joined, sender: NodeId, now: float) -> list[Effect]:
        self._recovery.meeting.joined(message.at)
        return []

    def here(self, message: OriginHere, sender: NodeId, now: float) -> list[Effect]:
        broker, topology = message.origin.broker, self._topology
        if broker == topology.own.broker or (broker != sender and broker in topology.neighbours):
            return [Part(sender, f"it closes a cycle: {broker} can be reached without it", CYCLE)]
        if topology.next_hop(message.origin) == sender:  # neighbours say it again and again
            return [*self._tell(now), *self._outlet.perform(self._recovery.origin_here(message, sender))]
        return self._changed(lambda: self._recovery.origin_here(message, sender), now)

    def gone(self, message: OriginGone, sender: NodeId, now: float) -> list[Effect]:
        return self._changed(lambda: self._recovery.origin_gone(message, sender), now)

    def offers(self, message: OriginOffers, sender: NodeId, now: float) -> list[Effect]:
        return [*self._tell(now), *self._outlet.perform(self._recovery.origin_offers(message, sender))]

    def _changed(self, change: Callable[[], list[Act]], now: float) -> list[Effect]:
        """Perform a change of what can be reached, after neighbours were told what is wanted by now."""
        before = self._topology.brokers()
        effects = [*self._tell(now), *self._outlet.perform(change())]
        return effects + self._met(before, self._topology.brokers(), now)

    # --- frontiers ---

    def frontiers(self, message: Frontiers, sender: NodeId, now: float) -> list[Effect]:
        return self.report_soon(now) if self._recovery.frontiers(message, sender) else []

    def report_soon(self, now: float) -> list[Effect]:
        """Report frontiers in a while; there may be more of them."""
        if self._next_report < FOREVER or not self._topology.neighbours:
            return []
        self._next_report = now + REPORT_AFTER
        return [Wake(self._next_report)]

    def tick(self, now: float) -> list[Effect]:
        """Report frontiers, if it is time for it."""
        if now < self._next_report:
            return []
        self._next_report = FOREVER
        return self._outlet.perform(self._recovery.report())

    def shift(self, by: float) -> None:
        """Move the time of the next report, as the clock was."""
        self._next_report += by

    def sweep(self) -> list[Effect]:
        """Say again which logs are here, to neighbours that may have been told wrong things."""
        return self._outlet.perform(self._topology.repeat())
