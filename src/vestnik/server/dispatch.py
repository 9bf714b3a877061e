"""The dispatch handles messages at once if that is quick, and otherwise in turns: nobody waits for a flood."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Final

from vestnik.broker.effects import Appended, NotAppended
from vestnik.routing.router import Router
from vestnik.server.backlog import OWN, Backlog, events_of
from vestnik.server.credit import FEWEST, Credit
from vestnik.wire.messages import Message, NodeId
from vestnik.wire.origins import Routed

FLUSH_EVERY: Final = 0.005
"""Seconds for which what is sent is collected while events wait for their turns, unless it is much."""
TURN: Final = 0.01
"""Seconds for which events are routed before something else has its turn."""
SHORT: Final = 0.001
"""Seconds of routing after which the loop is asked to say when its turn ends; less is added up over several turns."""
LOOK_EVERY: Final = 0.02
"""Seconds after which publishers that have to wait for slow readers are looked at again."""
OUTCOMES: Final = frozenset({Appended, NotAppended})
"""The outcomes of events that were to be stored."""
PART: Final = 20_000
"""Steps that routing some events may cost before the clock is looked at; a few milliseconds, mostly."""


class Sender:
    """A client or a neighbour, as long as it is here or events of it are under way."""

    def __init__(self) -> None:
        self.credit = Credit()
        self.is_here = False
        self.is_waiting = False  # it is told when it may go on
        self.followers: deque[tuple[int, Callable[[], None]]] = deque()  # what is to be done, and when
        self.finished = 0  # events that were routed, or dropped

    @property
    def is_idle(self) -> bool:
        """Return whether nothing of it is under way."""
        return not self.credit.under_way

    @property
    def is_forgotten(self) -> bool:
        return self.is_idle and not (self.is_here or self.is_waiting or self.followers)

    def follow(self, then: Callable[[], None]) -> None:
        """Have something done when all is finished that is under way now."""
        self.followers.append((self.finished + self.credit.under_way, then))

    def due(self) -> Iterator[Callable[[], None]]:
        """Yield what can be done by now."""
        while self.followers and self.followers[0][0] <= self.finished:
            yield self.followers.popleft()[1]


class Dispatch:
    """`handle` handles a message, and `flush` sends what follows.

    `go_on` is called with the client or the neighbour that had to wait and may go on.
    While `is_pressed` for a client, its publications wait: a slow reader would lose events otherwise.
    """

    def __init__(
        self,
        router: Router,
        handle: Callable[[Message, NodeId], None],
        flush: Callable[[], None],
        go_on: Callable[[NodeId], None],
        is_pressed: Callable[[NodeId], bool],
    ) -> None:
        self._router = router
        self._handle = handle
        self._flush = flush
        self._go_on = go_on
        self._is_pressed = is_pressed
        self._pressed: set[NodeId] = set()  # publishers that wait for slow readers
        self._loop = asyncio.get_running_loop()
        self._backlog = Backlog()
        self._senders: defaultdict[NodeId, Sender] = defaultdict(Sender)
        self._is_scheduled = False
        # Seconds of this turn of the loop for which events were routed; short times of several turns may add up.
        self._spent = 0.0
        self._is_ending = False
        self._flushed_at = 0.0
        self._flushing: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Route nothing more. The next life routes the events that are stored."""
        self._backlog = Backlog()
        if self._flushing is not None:
            self._flushing.cancel()

    @property
    def waiting(self) -> int:
        """How many events wait to be routed."""
        return self._backlog.events

    def room(self, client: NodeId) -> int:
        """Return how many events of a client can be taken now. If there is no room, it is told to go on later."""
        sender = self._senders[client]
        if self._is_pressed(client):
            if not self._pressed:
                self._loop.call_later(LOOK_EVERY, self._look)
            self._pressed.add(client)
            sender.is_here = True
            return 0
        room = sender.credit.room(self._router.load(client))
        sender.is_here, sender.is_waiting = True, room <= 0
        return room

    def takes(self, client: NodeId, events: int) -> bool:
        """Return whether a client may send this number of events now. If not, it is told to go on later."""
        if events + self._senders[client].credit.under_way > FEWEST or self._is_pressed(client):
            return events <= self.room(client)
        self._senders[client].is_here = True
        return True

    def _look(self) -> None:
        """Let publishers go on that waited for slow readers; they may have to wait again."""
        pressed, self._pressed = self._pressed, set()
        for client in pressed:
            self._go_on(client)

    def is_behind(self, neighbour: NodeId) -> bool:
        """Return whether messages of a neighbour wait. If so, it is told to go on later."""
        is_behind = self._backlog.has(neighbour)
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
        sender.finished += events
        self._advance(node)

    def left(self, client: NodeId) -> None:
        """Forget a client that is not here any more, when nothing of it is under way."""
        if client in self._senders:
            self._senders[client].is_here = self._senders[client].is_waiting = False
            self._advance(client)

    def take(self, message: Message, sender: NodeId) -> None:
        """Handle what the own log has stored, or a message of a neighbour: at once, or in turns if that takes long."""
        count = len(events_of(message))
        lane = OWN if type(message) in OUTCOMES else sender
        if isinstance(message, Routed):
            self.took(sender, count)
        is_short = count <= FEWEST or count <= self._part(sender)
        if lane not in self._backlog.lanes and (not count or (is_short and self._has_time())):
            self._do(message, sender, count)
            self._flush()
        else:
            self._backlog.put(lane, message, sender)
            self._schedule()

    def link_down(self, neighbour: NodeId) -> None:
        """Drop what a neighbour has sent: when it is back, its events are fetched."""
        self._backlog.drop(neighbour)
        if neighbour in self._senders:
            self._senders[neighbour].is_waiting = False
            self.dropped(neighbour, self._senders[neighbour].credit.under_way)

    def _do(self, message: Message, sender: NodeId, count: int) -> None:
        """Handle a message with `count` events."""
        begun = time.perf_counter()
        try:
            self._handle(message, sender)
        finally:
            if count:
                seconds = time.perf_counter() - begun
                self._spent += seconds
                if self._spent > SHORT and not self._is_ending:
                    self._is_ending = True
                    self._loop.call_soon(self._end)
                one = self._senders[sender]
                one.credit.routed(count, seconds)
                one.finished += count
            if count or sender in self._senders:
                self._advance(sender)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._route_on)

    def _route_on(self) -> None:
        """Handle what waits in one lane, until its turn is over."""
        self._is_scheduled = False
        now = time.perf_counter()
        until = now + TURN
        lane = self._backlog.turn()
        try:
            while lane is not None and now <= until and (first := self._backlog.first(lane)) is not None:
                message, sender = self._backlog.take(lane, self._part(first.sender))
                try:
                    self._do(message, sender, len(events_of(message)))
                finally:
                    now = time.perf_counter()
                    self._flush_now_or_soon(now)
        finally:
            if self._backlog:
                self._schedule()

    def _flush_now_or_soon(self, now: float) -> None:
        """Flush at most every FLUSH_EVERY seconds: now, or by a timer. Clients wake less often in a flood."""
        wait = self._flushed_at + FLUSH_EVERY - now
        if wait <= 0:
            self._flushed_at = now
            self._flush()
        elif self._flushing is None:
            self._flushing = self._loop.call_later(wait, self._flush_in_time)

    def _flush_in_time(self) -> None:
        self._flushing, self._flushed_at = None, time.perf_counter()
        self._flush()

    def _advance(self, node: NodeId) -> None:
        """Let a client or a neighbour go on that has waited, in a later turn of the loop; forget one that has left."""
        sender = self._senders[node]
        if sender.is_here and not sender.is_waiting and not sender.followers:
            return
        if sender.is_waiting and not self._backlog.has(node):
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
        return self._spent < TURN

    def _end(self) -> None:
        self._spent, self._is_ending = 0.0, False
