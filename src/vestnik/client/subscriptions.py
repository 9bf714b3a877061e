"""A subscription, as the application holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING

from vestnik.client.arguments import check_timeout
from vestnik.client.calling import Callback, Calling
from vestnik.client.notifications import Gap, Notification, Overflow, Waiting
from vestnik.errors import Disconnected
from vestnik.model.events import Event
from vestnik.model.filters import Filter

if TYPE_CHECKING:
    from vestnik.client.bus import Bus


class Subscription(AsyncIterator[Notification]):
    """What was subscribed to. Iterate over it, or `get` from it; `async with` unsubscribes at the end.

    When `limit` notifications wait to be taken, what happens with more is its `overflow`: `block` lets the broker keep
    them and fetches them later, `drop-oldest` leaves a gap, `disconnect` ends the subscription.
    """

    def __init__(self, bus: Bus, name: str, wanted: Filter, limit: int, overflow: Overflow, handback: object) -> None:
        self.name = name
        self.filter = wanted
        self.handback = handback
        self.dropped = 0
        self._bus = bus
        self._limit = limit
        self._overflow = overflow
        self._waiting = Waiting()
        self._gap: Gap | None = None
        self._seen: Mapping[str, int] = {}
        self._is_paused = False
        self._has_one = False  # the application has taken one and not asked for the next
        self._calling: Calling | None = None
        self.when_missed: Callable[[], None] | None = None  # called when something was missed, or may have been

    def __repr__(self) -> str:
        return f"<Subscription {self.name} of {self._bus.name}: {self.filter}; {len(self._waiting.items)} waiting>"

    # --- taking ---

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Notification:
        self._has_one = False
        return self._taken(await self._waiting.next())

    async def get(self, timeout: float | None = None) -> Notification:
        """The next notification; TimeoutError where none comes in so many seconds."""
        check_timeout("the timeout of get", timeout)
        async with asyncio.timeout(timeout):
            try:
                return await self.__anext__()
            except StopAsyncIteration:
                raise Disconnected(f"subscription {self.name} is over") from None

    def try_get(self) -> Notification | None:
        """The next notification, if one is here."""
        self._has_one = False
        return self._taken(self._waiting.items.popleft()) if self._waiting.items else None

    def fetch(self) -> list[Notification]:
        """All notifications that are here."""
        found: list[Notification] = []
        while (item := self.try_get()) is not None:
            found.append(item)
        return found

    @property
    def seen(self) -> Mapping[str, int]:
        """The position of each broker up to which all that it took, and that is wanted here, was taken from here.

        As it was when last nothing was `waiting`; brokers tell it now and then. Another subscription may go on from
        there. It is empty until the past was replayed.
        """
        self._look()
        return self._seen

    def _look(self) -> None:
        """See how far this has come, if nothing waits."""
        if not self._waiting.items and self._gap is None:
            self._seen = self._bus.seen(self) or self._seen

    def take_gap(self) -> Gap | None:
        """What the next notification would say of those that will not come; it says so no more."""
        gap, self._gap = self._gap, None
        return gap

    @property
    def waiting(self) -> int:
        """How many came and were not taken."""
        return len(self._waiting.items)

    @property
    def left(self) -> int:
        """How many came and are not done with: who asks for the next one is done with the last."""
        return self.waiting + self._has_one

    def _taken(self, item: Notification) -> Notification:
        self._has_one = True
        if not self._waiting.items:
            self._look()
        if self._is_paused and len(self._waiting.items) <= self._limit // 2:
            self._is_paused = False
            self._bus.unpause(self)
        return item

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
        """A notification has come."""
        waiting = self._waiting
        if len(waiting.items) >= self._limit and self._overflow != "block":
            if self._overflow == "disconnect":
                self._disconnect()
                return
            self._drop_oldest()
        notification = Notification(event, number, subscriptions, replayed, self.take_gap(), self.handback)
        if self._calling is not None:
            self._has_one = True
            if self._calling.takes(notification):
                self._has_one = self._calling.is_busy
                return
        waiting.put(notification)
        if len(waiting.items) >= self._limit and self._overflow == "block" and not self._is_paused:
            self._is_paused = True
            self._bus.pause(self)

    def miss(self, lost: int | None, reason: str) -> None:
        """Note for the next notification that some will not come."""
        before = self._gap
        if before is not None:
            lost = None if lost is None or before.lost is None else lost + before.lost
            reason = before.reason if reason in before.reason else f"{before.reason}; {reason}"
        self._gap = Gap(lost, reason)
        if self.when_missed is not None:
            self.when_missed()

    def _drop_oldest(self) -> None:
        oldest = self._waiting.items.popleft()
        self.dropped += 1
        lost = 1 + (oldest.gap.lost or 0 if oldest.gap is not None else 0)
        if self._waiting.items:
            first = self._waiting.items[0]
            more = first.gap.lost or 0 if first.gap is not None else 0
            gap = Gap(lost + more, f"they were not taken: at most {self._limit} wait")
            self._waiting.items[0] = Notification(
                first.event, first.number, first.subscriptions, first.replayed, gap, first.handback
            )
        else:
            self.miss(lost, f"they were not taken: at most {self._limit} wait")

    def _disconnect(self) -> None:
        reason = Disconnected(f"subscription {self.name} was ended: more than {self._limit} were not taken")
        self._bus.give_up(self, reason)

    def end(self, error: Exception | None = None) -> None:
        """There will be no more notifications."""
        self._waiting.end(error)
