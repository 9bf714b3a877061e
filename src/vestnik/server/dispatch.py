"""The dispatch routes events at once if they are few, and otherwise in turns: nobody waits for a flood of others."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Final

from vestnik.routing.router import Router
from vestnik.server.backlog import Backlog, Events, events_of
from vestnik.server.credit import FEWEST, Credit
from vestnik.wire.messages import Forward, NodeId

TURN: Final = 0.01
"""Seconds for which events are routed before something else has its turn."""
PART: Final = 20_000
"""Steps that routing some events may cost before the clock is looked at; a few milliseconds, mostly."""


class Sender:
    """A client or a neighbour, as long as it is here or events of it are under way."""

    def __init__(self) -> None:
        self.credit = Credit()
        self.is_here = False
        self.is_waiting = False  # it is told when it may go on
        self._finished = 0  # events that were routed, or dropped
        self._followers: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def is_idle(self) -> bool:
        """Return whether nothing of it is under way."""
        return not self.credit.under_way

    @property
    def is_forgotten(self) -> bool:
        return self.is_idle and not (self.is_here or self.is_waiting or self._followers)

    def finished(self, events: int) -> None:
        self._finished += events

    def follow(self, then: Callable[[], None]) -> None:
        """Have something done when all is finished that is under way now."""
        self._followers.append((self._finished + self.credit.under_way, then))

    def due(self) -> Iterator[Callable[[], None]]:
        """Yield what can be done by now."""
        while self._followers and self._followers[0][0] <= self._finished:
            yield self._followers.popleft()[1]


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
        self._senders: defaultdict[NodeId, Sender] = defaultdict(Sender)
        self._is_scheduled = False
        self._ends: float | None = None  # when this turn of the loop has to

    def close(self) -> None:
        """Route nothing more. The next life routes the events that are stored."""
        self._backlog = Backlog()

    def room(self, client: NodeId) -> int:
        """Return how many events of a client can be taken now. If there is no room, it is told to go on later."""
        sender = self._senders[client]
        room = sender.credit.room(self._router.load(client))
        sender.is_here, sender.is_waiting = True, room <= 0
        return room

    def is_behind(self, neighbour: NodeId) -> bool:
        """Return whether events of a neighbour wait. If so, it is told to go on later."""
        is_behind = self._backlog.is_behind(neighbour)
        if is_behind:
            self._senders[neighbour].is_waiting = True
        return is_behind

    def is_idle(self, node: NodeId) -> bool:
        """Return whether nothing of a client or a neighbour is under way."""
        return node not in self._senders or self._senders[node].is_idle

    def when_routed(self, node: NodeId, then: Callable[[], None]) -> None:
        """Do something, in a later turn of the loop, when all is routed that a client or a neighbour sent until now."""
        self._senders[node].follow(then)
        self._advance(node)

    def took(self, client: NodeId, events: int) -> None:
        """Count events that are being stored."""
        self._senders[client].credit.took(events)

    def dropped(self, node: NodeId, events: int) -> None:
        """Count events that will not be routed."""
        sender = self._senders[node]
        sender.credit.dropped(events)
        sender.finished(events)
        self._advance(node)

    def left(self, client: NodeId) -> None:
        """Forget a client that is not here any more, when nothing of it is under way."""
        if client in self._senders:
            self._senders[client].is_here = self._senders[client].is_waiting = False
            self._advance(client)

    def route(self, message: Events, sender: NodeId, position: int | None = None) -> None:
        """Route events: at once, or in turns with those of others if that may take long.

        All that is stored up to `position` is routed, or waits before them.
        """
        count = len(events_of(message))
        if isinstance(message, Forward):
            self.took(sender, count)
        if not self._backlog and self._has_time() and count <= self._part(sender):
            self._route(message, sender)
        else:
            self._backlog.put(message, sender, position)
            self._schedule()

    def link_down(self, neighbour: NodeId) -> None:
        """Drop the events of a neighbour that are not routed: when it is back, it is asked for them again."""
        self._backlog.drop(neighbour)
        if neighbour in self._senders:
            self._senders[neighbour].is_waiting = False
            self.dropped(neighbour, self._senders[neighbour].credit.under_way)
        self._do_followers()

    def position(self, stored: int) -> int:
        """Return up to where all has been routed, if it is stored up to `stored`."""
        return self._backlog.routed(stored)

    def after(self, then: Callable[[], None]) -> None:
        """Do something when all is routed that waits now, in the order of the calls."""
        if self._backlog or self._backlog.has_followers:
            self._backlog.after(then)
        else:
            then()

    def _route(self, message: Events, sender: NodeId) -> None:
        count, begun = len(events_of(message)), time.perf_counter()
        try:
            self._handle(message, sender)
        finally:
            one = self._senders[sender]
            one.credit.routed(count, time.perf_counter() - begun)
            one.finished(count)
            self._advance(sender)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._route_on)

    def _route_on(self) -> None:
        """Route what waits in one lane, until its turn is over."""
        self._is_scheduled = False
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
                self._schedule()
            self._do_followers()

    def _do_followers(self) -> None:
        for then in self._backlog.ripe():
            then()

    def _advance(self, node: NodeId) -> None:
        """Let a client or a neighbour go on that has waited, in a later turn of the loop; forget one that has left."""
        sender = self._senders[node]
        if sender.is_waiting and not self._backlog.is_behind(node):
            sender.is_waiting = False
            self._loop.call_soon(self._go_on, node)
        for then in sender.due():
            self._loop.call_soon(then)
        if sender.is_forgotten:
            del self._senders[node]

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
