"""The last event for each value of a path, and how that changes."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from vestnik.client.notifications import Notification
from vestnik.client.subscriptions import Subscription
from vestnik.errors import VestnikError
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import EVENT
from vestnik.model.times import MICROS
from vestnik.wire.replays import Replay

if TYPE_CHECKING:
    from vestnik.client.services import ServiceBus

LOG: Final = logging.getLogger(__name__)


class Change(NamedTuple):
    """The event that a key has now, None where it has none any more, and the one that it had."""

    key: Any
    event: Event | None
    before: Event | None


class View(Mapping[Any, Event], AsyncIterator[Change]):
    """Read it as a mapping from keys to events; `async for` gives its changes from now on.

    Of several changes of a key that nobody has taken yet, they are one: so it waits for nobody, and does not grow. An
    event that expires goes away. Keys are strings, numbers and booleans: what has no such value is in no view.
    """

    def __init__(self, bus: ServiceBus, wanted: Filter, key: str) -> None:
        self._bus = bus
        self._wanted = wanted
        self._key = key
        self._path = Replay(latest_by=key).key()
        self._subscription: Subscription | None = None
        self._events: dict[Any, Event] = {}
        self._before: dict[Any, Event | None] = {}  # of keys with changes that nobody has taken
        self._expiring: list[tuple[int, int, Any]] = []
        self._alarm: asyncio.TimerHandle | None = None
        self._refilling: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        self._is_over = False

    async def start(self) -> None:
        """Returns when it holds what there is of the past."""
        self._subscription = await self._bus.subscribe(self._wanted, self._take, queue=10_000)
        self._subscription.when_missed = self._refill_soon
        await self._fill()
        self._before.clear()

    # --- as a mapping ---

    def __getitem__(self, key: Any) -> Event:
        return self._events[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._events))

    def __len__(self) -> int:
        return len(self._events)

    # --- its changes ---

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while not self._is_over:
            while self._before:
                key = next(iter(self._before))
                before, now = self._before.pop(key), self._events.get(key)
                if now is not before:
                    return Change(key, now, before)
            self._looked.clear()
            await self._looked.wait()
        raise StopAsyncIteration

    # --- what is heard ---

    def _take(self, notification: Notification) -> None:
        self._put(notification.event)

    def _refill_soon(self) -> None:
        if self._refilling is None or self._refilling.done():
            self._refilling = asyncio.create_task(self._refill())

    async def _fill(self) -> None:
        """What has come of other streams meanwhile is newer than what was fetched, unless their times say otherwise."""
        for event in await self._bus.fetch(self._wanted, limit=None, latest_by=self._key):
            key = self._key_of(event)
            known = self._events.get(key)
            if known is None or known.stream == event.stream or (known.time or 0) < (event.time or 0):
                self._put(event)

    async def _refill(self) -> None:
        try:
            await self._fill()
        except VestnikError as error:
            LOG.warning("what is missing in the view of %s could not be fetched: %s", self._wanted, error)

    def _key_of(self, event: Event) -> Any:
        """The key of an event; None where it has none."""
        found = EVENT.read(event, self._path)
        return found if isinstance(found, str | int | float) else None

    def _put(self, event: Event) -> None:
        key = self._key_of(event)
        known = self._events.get(key)
        if key is None:
            return
        if known is not None and known.stream == event.stream and (known.seq or 0) >= (event.seq or 0):
            return
        if event.expires is not None:
            if event.expires <= time.time() * MICROS:
                return
            heapq.heappush(self._expiring, (event.expires, id(event), key))
            self._wake()
        self._set(key, event)

    def _set(self, key: Any, event: Event | None) -> None:
        self._before.setdefault(key, self._events.get(key))
        if event is None:
            del self._events[key]
        else:
            self._events[key] = event
        self._looked.set()

    def _wake(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._expiring:
            left = max(0.0, self._expiring[0][0] / MICROS - time.time())
            self._alarm = asyncio.get_running_loop().call_later(left, self._expire)

    def _expire(self) -> None:
        while self._expiring and self._expiring[0][0] <= time.time() * MICROS:
            expires, _, key = heapq.heappop(self._expiring)
            event = self._events.get(key)
            if event is not None and event.expires == expires:
                self._set(key, None)
        self._wake()

    # --- its end ---

    async def close(self) -> None:
        """It changes no more, and can still be read."""
        self._is_over = True
        self._looked.set()
        if self._alarm is not None:
            self._alarm.cancel()
        if self._refilling is not None:
            self._refilling.cancel()
            await asyncio.gather(self._refilling, return_exceptions=True)
        self._bus.detach(self)
        if self._subscription is not None:
            self._bus.give_up(self._subscription)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
