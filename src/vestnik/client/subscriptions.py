"""A subscription, as the application holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Final

from vestnik.client.arguments import check_timeout
from vestnik.client.calling import Callback, Calling
from vestnik.client.notifications import Gap, Notification, Overflow, Waiting
from vestnik.errors import Disconnected
from vestnik.model.events import Event
from vestnik.model.filters import Filter

if TYPE_CHECKING:
    from vestnik.client.bus import Bus

QUEUE: Final = 1000
"""How many notifications of a subscription wait here, unless told otherwise."""

TOLD_AFTER: Final = 250
"""Notifications that are taken before the broker is told: it bounds what is in flight in bytes, too."""


class Subscription(AsyncIterator[Notification]):
    """What was subscribed to. Iterate over it, or `get` from it; `async with` unsubscribes at the end.

    `limit` notifications wait to be taken. What happens if more come is its `overflow`: with `block` the broker sends
    no more until some are taken, and reads on in its log then; `drop-oldest` leaves a gap; `disconnect` ends the
    subscription. More urgent notifications are taken first.
    """

    def __init__(self, bus: Bus, name: str, wanted: Filter, limit: int, overflow: Overflow, handback: object) -> None:
        self.name = name
        self.filter = wanted
        self.handback = handback
        self.dropped = 0
        self.window = limit if overflow == "block" else max(limit, QUEUE)
        self._bus = bus
        self._limit = limit
        self._overflow = overflow
        self._waiting = Waiting()
        self._gap: Gap | None = None
        self._seen: Mapping[str, int] = {}
        self._last = 0  # the last number that came
        self._current = 0  # the number that the application has taken and is not done with; 0 if there is none
        self._untold = 0  # how many it was done with since the broker was told
        self._told_at_once = max(1, min(self.window // 4, TOLD_AFTER))
        self._calling: Calling | None = None
        self.when_missed: Callable[[], None] | None = None  # called when something was missed, or may have been

    def __repr__(self) -> str:
        return f"<Subscription {self.name} of {self._bus.name}: {self.filter}; {len(self._waiting)} waiting>"

    # --- taking ---

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Notification:
        self._finish()
        return self._taken(await self._waiting.next())

    async def get(self, timeout: float | None = None) -> Notification:
        """Return the next notification; TimeoutError if none comes in `timeout` seconds."""
        check_timeout("the timeout of get", timeout)
        async with asyncio.timeout(timeout):
            try:
                return await self.__anext__()
            except StopAsyncIteration:
                raise Disconnected(f"subscription {self.name} is over") from None

    def try_get(self) -> Notification | None:
        """Return the next notification, if one is here."""
        self._finish()
        item = self._waiting.pop()
        return None if item is None else self._taken(item)

    def fetch(self) -> list[Notification]:
        """Return all notifications that are here."""
        found: list[Notification] = []
        while (item := self.try_get()) is not None:
            found.append(item)
        return found

    @property
    def seen(self) -> Mapping[str, int]:
        """For each log, as "broker/log", the offset below which everything wanted was taken from here.

        As it was when last nothing was `waiting`. Another subscription may go on from there. It is empty until the
        broker of a replay has found where to start.
        """
        self._look()
        return self._seen

    @property
    def begun(self) -> Mapping[str, int]:
        """The cursors at which live events start after a replay that picks; empty if the broker did not say."""
        return self._bus.begun(self)

    def _look(self) -> None:
        """Note how far this has come, if nothing waits."""
        if self._gap is None and not self._waiting:
            self._seen = self._bus.seen(self) or self._seen

    def take_gap(self) -> Gap | None:
        """Return the gap that the next notification would tell; it will not tell it any more."""
        gap, self._gap = self._gap, None
        return gap

    @property
    def waiting(self) -> int:
        """How many came and were not taken."""
        return len(self._waiting)

    @property
    def left(self) -> int:
        """How many came and are not done with: who asks for the next one is done with the last."""
        return len(self._waiting) + bool(self._current)

    @property
    def first_left(self) -> int:
        """The lowest number that the application is not done with: everything below is acknowledged.

        What may be dropped here is acknowledged when it comes.
        """
        if self._overflow != "block":
            return self._last + 1
        left = [number for number in (self._current, self._waiting.lowest) if number]
        return min(left, default=self._last + 1)

    def _taken(self, item: Notification) -> Notification:
        self._current = item.number
        if not self._waiting:
            self._look()
        return item

    def _finish(self) -> None:
        """The application is done with what it took last."""
        if self._current:
            self._current = 0
            if self._overflow == "block":
                self._tell()

    def _tell(self) -> None:
        """Have the broker told that there is room: after a quarter of the window or TOLD_AFTER events, else soon."""
        self._untold += 1
        if self._untold >= self._told_at_once:
            self._bus.tell_taken(self)
        elif self._untold == 1:
            self._bus.tell_soon()

    def told(self) -> bool:
        """Note that the broker is told what was taken; return whether there was anything to tell."""
        untold, self._untold = self._untold, 0
        return bool(untold)

    # --- changing ---

    async def change(self, wanted: Filter | str) -> None:
        """Want something else from now on. What was on its way may still come; nothing is lost or repeated."""
        await self._bus.change(self, wanted)

    async def unsubscribe(self) -> None:
        await self._bus.unsubscribe(self)

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.unsubscribe()

    # --- what the client calls ---

    def call(self, callback: Callback, tasks: set[asyncio.Task[None]]) -> None:
        """Call back with all that comes, and with what is here; `tasks` are those that await what is returned."""
        self._calling = Calling(self, callback, tasks)

    def give(self, event: Event, number: int, subscriptions: tuple[str, ...], *, replayed: bool = False) -> None:
        """Take in a notification that has come."""
        if self._overflow == "disconnect" and len(self._waiting) >= self._limit:
            self._disconnect()
            return
        self._last = number
        gap = None if self._gap is None else self.take_gap()
        notification = Notification(event, number, subscriptions, replayed, gap, self.handback)
        calling = self._calling
        if calling is not None and not calling.is_busy:
            self._current = number
            calling.call(notification)
            if not calling.is_busy:
                self._finish()
        else:
            self._waiting.put(notification)
        if self._overflow != "block":
            self._tell()
            if len(self._waiting) > self._limit:
                self._drop()

    def miss(self, lost: int | None, reason: str, last: int = 0) -> None:
        """Note for the next notification that some will not come, up to number `last` if they had numbers."""
        gap = Gap(lost, reason)
        self._gap = gap if self._gap is None else self._gap.joined(gap)
        self.pass_over(last)
        if self.when_missed is not None:
            self.when_missed()

    def pass_over(self, last: int = 0) -> None:
        """Have the broker told of numbers for which nothing comes: they filled its window, too."""
        self._last = max(last, self._last)
        self._tell()

    def _drop(self) -> None:
        self.dropped += 1
        gap = self._waiting.drop(f"they were not taken: at most {self._limit} wait")
        if gap is not None:
            self._gap = gap if self._gap is None else gap.joined(self._gap)

    def _disconnect(self) -> None:
        reason = Disconnected(f"subscription {self.name} was ended: more than {self._limit} were not taken")
        self._bus.give_up(self, reason)

    def end(self, error: Exception | None = None) -> None:
        """There will be no more notifications."""
        self._waiting.end(error)
