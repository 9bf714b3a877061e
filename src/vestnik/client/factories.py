"""Factories: producers that run while somebody wants what they publish."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from vestnik.client.interests import Interest, Interests
from vestnik.client.pool import ALL, Pool
from vestnik.client.subscriptions import Subscription
from vestnik.errors import FilterTooComplex, VestnikError
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.keys import having, values_at
from vestnik.wire.replays import Replay

if TYPE_CHECKING:
    from vestnik.client.services import ServiceBus

LOG: Final = logging.getLogger(__name__)


class Producer:
    """One that runs: `key` is the value that it is for, None where it is for all; `past` is what was published before.

    What it subscribes to ends with it.
    """

    def __init__(self, bus: ServiceBus, offered: Filter, key: Any, names: Callable[[], str]) -> None:
        self.bus = bus
        self.filter = offered
        self.key = key
        self.past: list[Event] = []
        self._names = names
        self._subscriptions: list[Subscription] = []

    async def publish(self, event: Event, *, durable: bool = True) -> None:
        await self.bus.publish(event, durable=durable)

    async def publish_many(self, events: Iterable[Event], *, durable: bool = True) -> None:
        await self.bus.publish_many(events, durable=durable)

    async def subscribe(self, wanted: Filter | str, **options: Any) -> Subscription:
        """As the client does."""
        made = await self.bus.subscribe(wanted, name=self._names(), **options)
        self._subscriptions.append(made)
        return made

    def end(self) -> None:
        for subscription in self._subscriptions:
            self.bus.give_up(subscription)


Make: TypeAlias = Callable[[Producer], Awaitable[None]]


class Factory:
    """Runs `make` for each key that somebody wants, or once for all; made by `Bus.factory`."""

    def __init__(self, bus: ServiceBus, offered: Filter, make: Make, key: str | None, linger: float, warm: int) -> None:
        self.filter = offered
        self._bus = bus
        self._make = make
        self._path = None if key is None else Replay(latest_by=key).key()
        self._warm = warm
        self._pool = Pool(linger)
        self._interests = Interests(bus, offered, self._look_soon)
        self._prefix = f"producer-{secrets.token_hex(4)}-"  # of the names of its own subscriptions: they are no demand
        self._names = count(1)
        self._keys_of: dict[Filter, frozenset[Any]] = {}
        self._looking: asyncio.Handle | None = None
        self._tasks: dict[Any, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None
        self._advertisement = ""
        self.producers: dict[Any, Producer] = {}

    def begin(self) -> None:
        """Start without waiting for it."""
        self._starting = asyncio.create_task(self._start())
        self._starting.add_done_callback(self._started)

    def _started(self, starting: asyncio.Task[None]) -> None:
        if not starting.cancelled() and (error := starting.exception()) is not None:
            LOG.error("the factory of %s could not start: %s", self.filter, error)

    async def ready(self) -> None:
        """Returns when the factory knows who wants what it offers."""
        if self._starting is not None:
            await asyncio.shield(self._starting)

    async def _start(self) -> None:
        """Say what is offered, and look who wants it. Others may have wanted it before."""
        self._advertisement = await self._bus.advertise(self.filter)
        await self._interests.start()

    async def close(self) -> None:
        """Stop all producers, and offer nothing any more."""
        self._bus.detach(self)
        for waiting in (self._alarm, self._looking):
            if waiting is not None:
                waiting.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._interests.stop()
        for key in list(self._tasks):
            self._stop(key)
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._advertisement:
            self._bus.withdraw(self._advertisement)

    # --- demand ---

    def _look_soon(self) -> None:
        """Somebody wants something else, and others may at once."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._looking = None
        others = [interest for interest in self._interests.all if not self._is_own(interest)]
        filters = {interest.filter for interest in others if interest.filter is not None}
        self._keys_of = {wanted: self._keys_of.get(wanted) or self._keys(wanted) for wanted in filters}
        self._obey(self._pool.want(frozenset().union(*self._keys_of.values()), time.monotonic()))

    def _is_own(self, interest: Interest) -> bool:
        return interest.name.startswith(self._prefix)

    def _keys(self, wanted: Filter) -> frozenset[Any]:
        if self._path is None:
            return frozenset({ALL})
        try:
            found = values_at(self.filter & wanted, self._path)
        except FilterTooComplex:
            found = None
        return frozenset({ALL}) if found is None else found

    def _obey(self, orders: tuple[list[Any], list[Any]]) -> None:
        stop, start = orders
        for key in stop:
            self._stop(key)
        for key in start:
            self._tasks[key] = asyncio.create_task(self._run(key, list(self._ending)))
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._pool.next is not None:
            left = max(0.0, self._pool.next - time.monotonic())
            self._alarm = asyncio.get_running_loop().call_later(left, self._ring)

    def _ring(self) -> None:
        self._obey(self._pool.look(time.monotonic()))

    # --- producers ---

    def _stop(self, key: Any) -> None:
        task = self._tasks.pop(key)
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _run(self, key: Any, before: list[asyncio.Task[None]]) -> None:
        """A producer starts when those that were stopped before it are over."""
        if before:
            await asyncio.wait(before)
        offered = self.filter if key is ALL or self._path is None else self.filter & having(self._path, key)
        producer = self.producers[key] = Producer(self._bus, offered, key, self._name)
        try:
            producer.past = await self._past(offered)
            await self._make(producer)
        except Exception:
            LOG.exception("the producer of %s failed", offered)
        finally:
            producer.end()
            if self.producers.get(key) is producer:
                del self.producers[key]
        if key is ALL and self._path is not None and self._tasks.get(key) is asyncio.current_task():
            del self._tasks[key]
            self._obey(self._pool.declined(time.monotonic()))

    async def _past(self, offered: Filter) -> list[Event]:
        try:
            return await self._bus.fetch(offered, limit=self._warm) if self._warm else []
        except VestnikError as error:
            LOG.warning("the producer of %s knows nothing of the past: %s", offered, error)
            return []

    def _name(self) -> str:
        return f"{self._prefix}{next(self._names)}"
