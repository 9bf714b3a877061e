"""What a subscriber is given, and where it waits until it is taken."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from vestnik.client.urgency import Urgency
from vestnik.model.envelope import MEDIUM
from vestnik.model.events import Event

Overflow: TypeAlias = Literal["block", "drop-oldest", "disconnect"]
"""What becomes of a subscription whose notifications are not taken as fast as they come."""
OVERFLOWS: Final[tuple[Overflow, ...]] = ("block", "drop-oldest", "disconnect")


class Gap(Struct, frozen=True):
    """Notifications that will not come: how many, and why. None says that nobody knows how many; it may be 0."""

    lost: int | None
    reason: str

    def joined(self, later: Gap) -> Gap:
        """Return one gap for this one and a later one."""
        lost = None if self.lost is None or later.lost is None else self.lost + later.lost
        reason = self.reason if later.reason in self.reason else f"{self.reason}; {later.reason}"
        return Gap(lost, reason)


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
    """The queue of a subscription: more urgent notifications first, equally urgent ones in order.

    Whoever waits for one is woken when it comes, or when there will be no more.
    """

    def __init__(self) -> None:
        self._items: deque[Notification] = deque()  # while all have the same priority
        self._priority = MEDIUM
        self._urgency: Urgency | None = None
        self._end: Exception | None = None
        self._is_over = False
        self._waiters: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._items) if self._urgency is None else len(self._urgency)

    def put(self, item: Notification) -> None:
        priority = item.event.priority
        if self._urgency is not None:
            self._urgency.put(item)
        elif priority == self._priority or not self._items:
            self._priority = priority
            self._items.append(item)
        else:
            self._urgency = Urgency([*self._items, item])
            self._items.clear()
        if self._waiters:
            self._wake()

    def pop(self) -> Notification | None:
        """Remove the next notification; return None if none is here."""
        if self._items:
            return self._items.popleft()
        if self._urgency is None:
            return None
        item = self._urgency.pop()
        if not self._urgency:
            self._urgency = None
        return item

    def drop(self, reason: str) -> Gap | None:
        """Drop the oldest notification of the lowest priority. The next one of that priority tells the gap.

        Return the gap if there is none.
        """
        if self._urgency is None:
            dropped = self._items.popleft()
            after = self._items[0] if self._items else None
        else:
            dropped = self._urgency.drop()
            after = self._urgency.first(dropped.event.priority)
        gap = Gap(1, reason) if dropped.gap is None else dropped.gap.joined(Gap(1, reason))
        if after is None:
            return gap
        told = replace(after, gap=gap if after.gap is None else gap.joined(after.gap))
        if self._urgency is None:
            self._items[0] = told
        else:
            self._urgency.replace_first(told)
        return None

    @property
    def lowest(self) -> int:
        """The lowest number that is here; 0 if none is."""
        if self._urgency is not None:
            return self._urgency.lowest
        return self._items[0].number if self._items else 0

    def end(self, error: Exception | None = None) -> None:
        """There will be no more, because of an error or without one."""
        self._is_over, self._end = True, error
        self._wake()

    async def next(self) -> Notification:
        """Return the next notification; StopAsyncIteration, or the error, if there will be none."""
        while (item := self.pop()) is None:
            if self._is_over:
                raise self._end or StopAsyncIteration
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        return item

    def _wake(self) -> None:
        """Let all who wait look again."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
