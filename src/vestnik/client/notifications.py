"""What a subscriber is given, and where it waits until it is taken."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from vestnik.model.events import Event

Overflow: TypeAlias = Literal["block", "drop-oldest", "disconnect"]
"""What becomes of a subscription whose notifications are not taken as fast as they come."""
OVERFLOWS: Final[tuple[Overflow, ...]] = ("block", "drop-oldest", "disconnect")


class Gap(Struct, frozen=True):
    """Notifications that will not come: how many, and why. Where that is not known it is None, and may be none."""

    lost: int | None
    reason: str


class Notification(Struct, frozen=True):
    """An event for a subscription, with its number there, which counts from 1.

    `subscriptions` are the names of all subscriptions of this client that wanted it; `gap` is what was lost just
    before it; `handback` is what was given to `subscribe`.
    """

    event: Event
    number: int
    subscriptions: tuple[str, ...]
    replayed: bool = False
    gap: Gap | None = None
    handback: Any = None


class Waiting:
    """Notifications in order. Whoever waits for one is woken when it comes, or when there will be none any more."""

    def __init__(self) -> None:
        self.items: deque[Notification] = deque()
        self._end: Exception | None = None
        self._is_over = False
        self._waiters: deque[asyncio.Future[None]] = deque()

    def put(self, item: Notification) -> None:
        self.items.append(item)
        if self._waiters:
            self._wake()

    def end(self, error: Exception | None = None) -> None:
        """There will be no more, because of an error or without one."""
        self._is_over, self._end = True, error
        self._wake()

    async def next(self) -> Notification:
        """The first; StopAsyncIteration, or the error, when there will be none."""
        while not self.items:
            if self._is_over:
                raise self._end or StopAsyncIteration
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        return self.items.popleft()

    def _wake(self) -> None:
        """Let all who wait look again."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
