"""Consumers that lag: they do not take what they are sent, for longer than a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from vestnik.wire.messages import NodeId

MOMENT: Final = 1.0
"""Seconds for which a consumer is full before it lags, and drained before it has caught up."""

Begins: TypeAlias = Callable[[NodeId], None]
Ends: TypeAlias = Callable[[NodeId, float], None]


class Lagging:
    """Calls `begins` when a consumer begins to lag, and `ends`, with the seconds that it lagged, when it has caught up.

    It lags if it is full, and still or again full a moment later. It has caught up when it was drained for a moment:
    a buffer that is full and drained many times a second is one lag.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, begins: Begins, ends: Ends) -> None:
        self._loop = loop
        self._begins = begins
        self._ends = ends
        self._full: set[NodeId] = set()
        self._since: dict[NodeId, float] = {}  # when it became full
        self._lagging: set[NodeId] = set()
        self._timers: dict[NodeId, asyncio.TimerHandle] = {}  # until the next look at it

    def full(self, consumer: NodeId) -> None:
        self._full.add(consumer)
        if consumer not in self._since:
            self._since[consumer] = self._loop.time()
            self._look_later(consumer)

    def drained(self, consumer: NodeId) -> None:
        self._full.discard(consumer)
        if consumer in self._lagging:
            self._look_later(consumer)

    def left(self, consumer: NodeId) -> None:
        """Forget a consumer that is not connected any more."""
        self._cancel(consumer)
        self._since.pop(consumer, None)
        for group in (self._full, self._lagging):
            group.discard(consumer)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _look(self, consumer: NodeId) -> None:
        del self._timers[consumer]
        if consumer not in self._full:
            seconds, lagged = self._loop.time() - self._since[consumer], consumer in self._lagging
            self.left(consumer)
            if lagged:
                self._ends(consumer, seconds)
        elif consumer not in self._lagging:
            self._lagging.add(consumer)
            self._begins(consumer)

    def _look_later(self, consumer: NodeId) -> None:
        self._cancel(consumer)
        self._timers[consumer] = self._loop.call_later(MOMENT, self._look, consumer)

    def _cancel(self, consumer: NodeId) -> None:
        timer = self._timers.pop(consumer, None)
        if timer is not None:
            timer.cancel()
