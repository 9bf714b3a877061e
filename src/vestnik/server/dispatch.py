"""Has events routed, at once if they are few, and otherwise in turns: nobody waits for all that others publish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from vestnik.routing.router import Router
from vestnik.server.backlog import Backlog, Events, events_of
from vestnik.server.credit import FEWEST, Credit
from vestnik.wire.messages import NodeId

TURN: Final = 0.01
"""Seconds for which events are routed before something else has its turn."""
PART: Final = 20_000
"""Steps that routing some events may cost before the clock is looked at; a few milliseconds, mostly."""


class Dispatch:
    """`handle` routes events; `go_on` is called with the client or the neighbour that had to wait and may go on."""

    def __init__(
        self, router: Router, handle: Callable[[Events, NodeId], None], go_on: Callable[[NodeId], None]
    ) -> None:
        self._router = router
        self._handle = handle
        self._go_on = go_on
        self._loop = asyncio.get_running_loop()
        self._backlog = Backlog()
        self._credits: dict[NodeId, Credit] = {}
        self._waiting: set[NodeId] = set()  # those who are told when they may go on
        self._idle: dict[NodeId, list[Callable[[], None]]] = {}  # what is done when nothing of somebody is under way
        self._left: set[NodeId] = set()  # clients that are not here any more
        self._ends: float | None = None  # when this turn of the loop has to

    def close(self) -> None:
        """Route nothing more. The next life routes the events that are stored."""
        self._backlog = Backlog()

    def room(self, client: NodeId) -> int:
        """Return how many events of a client can be taken now. If there is no room, it is told to go on later."""
        credit = self._credits.get(client) or Credit()
        room = credit.room(self._router.load(client))
        if room <= 0:
            self._waiting.add(client)
        return room

    def is_behind(self, neighbour: NodeId) -> bool:
        """Return whether events of a neighbour wait. If so, it is told to go on later."""
        is_behind = self._backlog.is_behind(neighbour)
        if is_behind:
            self._waiting.add(neighbour)
        return is_behind

    def is_idle(self, node: NodeId) -> bool:
        """Return whether nothing of a client or a neighbour is under way."""
        credit = self._credits.get(node)
        return not self._backlog.is_behind(node) and (credit is None or not credit.under_way)

    def when_idle(self, node: NodeId, then: Callable[[], None]) -> None:
        """Do something, in a later turn of the loop, when nothing of a client or a neighbour is under way."""
        self._idle.setdefault(node, []).append(then)
        self._tell(node)

    def took(self, client: NodeId, events: int) -> None:
        """Events of a client are being stored."""
        self._left.discard(client)
        self._credits.setdefault(client, Credit()).took(events)

    def dropped(self, client: NodeId, events: int) -> None:
        """They could not be."""
        if client in self._credits:
            self._credits[client].dropped(events)
        self._tell(client)

    def left(self, client: NodeId) -> None:
        """A client is not here any more. Its credit is forgotten when nothing of it is under way."""
        self._waiting.discard(client)
        self._left.add(client)
        self._tell(client)

    def route(self, message: Events, sender: NodeId, position: int | None = None) -> None:
        """Route events: at once, or in turns with those of others if that may take long.

        All that is stored up to `position` is routed, or waits before them.
        """
        if not self._backlog and self._has_time() and len(events_of(message)) <= self._part(sender):
            self._route(message, sender)
        else:
            if not self._backlog:
                self._loop.call_soon(self._route_on)
            self._backlog.put(message, sender, position)

    def link_down(self, neighbour: NodeId) -> None:
        """Drop the events of a neighbour that are not routed: when it is back, it is asked for them again."""
        self._backlog.drop(neighbour)
        self._waiting.discard(neighbour)
        self._tell(neighbour)

    def position(self, stored: int) -> int:
        """Return up to where all has been routed, if it is stored up to `stored`."""
        return self._backlog.routed(stored)

    def after(self, then: Callable[[], None]) -> None:
        """Do something when all is routed that waits now."""
        if self._backlog:
            self._backlog.after(then)
        else:
            then()

    def _route(self, message: Events, sender: NodeId) -> None:
        count, begun = len(events_of(message)), time.perf_counter()
        try:
            self._handle(message, sender)
        finally:
            if sender in self._credits:
                self._credits[sender].routed(count, time.perf_counter() - begun)
            self._tell(sender)

    def _route_on(self) -> None:
        """Route what waits in one lane, until its turn is over."""
        until = time.perf_counter() + TURN
        lane = self._backlog.turn()
        try:
            while lane.waiting:
                message, sender = self._backlog.take(lane, self._part(lane.waiting[0].sender))
                self._route(message, sender)
                if time.perf_counter() > until:
                    break
        finally:
            if self._backlog:
                self._loop.call_soon(self._route_on)
            for then in self._backlog.ripe():
                then()

    def _tell(self, node: NodeId) -> None:
        """Let somebody go on that has waited, in a later turn of the loop."""
        if node in self._waiting and not self._backlog.is_behind(node):
            self._waiting.remove(node)
            self._loop.call_soon(self._go_on, node)
        if node in self._idle or node in self._left:
            self._tell_idle(node)

    def _tell_idle(self, node: NodeId) -> None:
        if self.is_idle(node):
            for then in self._idle.pop(node, ()):
                self._loop.call_soon(then)
            if node in self._left:
                self._left.remove(node)
                self._credits.pop(node, None)

    def _part(self, sender: NodeId) -> int:
        """Return how many events of a client or a neighbour can be routed before the clock is looked at."""
        return max(FEWEST, PART // (1 + self._router.load(sender)))

    def _has_time(self) -> bool:
        """Return whether events can still be routed in this turn of the loop."""
        now = time.perf_counter()
        if self._ends is None:
            self._ends = now + TURN
            self._loop.call_soon(self._end)
        return now < self._ends

    def _end(self) -> None:
        self._ends = None
