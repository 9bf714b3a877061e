"""The links of a broker, and who is within reach over them."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeAlias

from vestnik.broker.bearings import Bearings
from vestnik.broker.catchup import CatchUp
from vestnik.broker.effects import Effect, LinkDown, LinkUp, Part, Send, Wake
from vestnik.broker.reach import Surroundings
from vestnik.broker.reception import Tell
from vestnik.model.times import FOREVER
from vestnik.routing.router import Router
from vestnik.wire.messages import NodeId, Reach

REPORT_AFTER = 1.0
"""Seconds after something was taken in which neighbours are told how far it has been sent to them."""

Met: TypeAlias = Callable[[Set[NodeId], Set[NodeId], float], list[Effect]]
"""Tells local clients who was within reach, and who is."""


class Neighbourhood:
    """Keeps neighbours informed of who is on this side of their link, and up to where they were sent what is new."""

    def __init__(
        self,
        router: Router,
        surroundings: Surroundings,
        catch_up: CatchUp,
        bearings: Bearings,
        tell: Tell,
        met: Met,
    ) -> None:
        self._router = router
        self._surroundings = surroundings
        self._catch_up = catch_up
        self._bearings = bearings
        self._tell = tell
        self._met = met
        self._reported: dict[NodeId, Reach] = {}
        self._next_report = FOREVER

    def link_up(self, message: LinkUp, sender: NodeId, now: float) -> list[Effect]:
        """What is wanted and offered is told first, and who is there then: they may be asked for what was missed."""
        self._router.connect(message.neighbour)
        self._surroundings.joined(message.neighbour)
        self._reported.pop(message.neighbour, None)
        return [*self._tell(now), *self._report([message.neighbour])]

    def link_down(self, message: LinkDown, sender: NodeId, now: float) -> list[Effect]:
        before = self._surroundings.positions
        self._router.disconnect(message.neighbour)
        self._surroundings.parted(message.neighbour)
        after = self._surroundings.positions
        told = [*self._tell(now), *self._report(self._surroundings.neighbours()), *self._compare(before, after, now)]
        return told + self._catch_up.parted(message.neighbour, now)

    def reach(self, message: Reach, sender: NodeId, now: float) -> list[Effect]:
        before = self._surroundings.positions
        twice = self._surroundings.told(sender, message.brokers)
        if twice:
            return [Part(sender, f"it closes a cycle: {', '.join(sorted(twice))} can be reached without it")]
        after = self._surroundings.positions
        compared = self._compare(before, after, now)
        if after.keys() == before.keys():
            return self.report_soon(now)
        return [*self._report(self._surroundings.neighbours(but=sender)), *compared]

    def _compare(self, before: dict[NodeId, int], after: dict[NodeId, int], now: float) -> list[Effect]:
        """Who has come within reach is asked for what was missed."""
        gone = {broker: position for broker, position in before.items() if broker not in after}
        effects = self._met(before.keys(), after.keys(), now)
        effects += self._catch_up.vanished(gone, now) if gone else []
        appeared = after.keys() - before.keys()
        effects += self._catch_up.appeared(appeared, now)
        return effects + (self._bearings.appeared(now) if appeared else [])

    def _report(self, neighbours: list[NodeId]) -> list[Effect]:
        """Tell neighbours who is on this side, unless they know."""
        reports = {neighbour: self._surroundings.report(neighbour) for neighbour in neighbours}
        news = {neighbour: report for neighbour, report in reports.items() if self._reported.get(neighbour) != report}
        self._reported |= news
        return [Send(neighbour, report) for neighbour, report in news.items()]

    def report_soon(self, now: float) -> list[Effect]:
        """Positions have changed; there may be more of that."""
        if self._next_report < FOREVER or not self._surroundings.neighbours():
            return []
        self._next_report = now + REPORT_AFTER
        return [Wake(self._next_report)]

    def tick(self, now: float) -> list[Effect]:
        """Report what has changed, if it is time for it."""
        if now < self._next_report:
            return []
        self._next_report = FOREVER
        return self._report(self._surroundings.neighbours())

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._next_report += by

    def sweep(self) -> list[Effect]:
        """Report all, to those who may have been told wrong things."""
        self._reported.clear()
        return self._report(self._surroundings.neighbours())
