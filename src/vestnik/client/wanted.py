"""Whether anybody wants what a producer would publish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Self

from vestnik.client.interests import Interest, Interests
from vestnik.errors import Disconnected
from vestnik.model.filters import Filter

if TYPE_CHECKING:
    from vestnik.client.services import ServiceBus


class Wanted(AsyncIterator[bool]):
    """True while some subscription, at any broker, overlaps a filter. Iterate over it: as it is, and as it changes.

    `async with` ends it; it ends with its client.
    """

    def __init__(self, bus: ServiceBus, offered: Filter) -> None:
        self._bus = bus
        self._interests = Interests(bus, offered, self._look)
        self._looked = asyncio.Event()
        self._said: bool | None = None
        self._is_over = False

    async def start(self) -> None:
        await self._interests.start()

    def __bool__(self) -> bool:
        return bool(self._interests.all)

    @property
    def interests(self) -> list[Interest]:
        """The subscriptions that want it."""
        return self._interests.all

    async def wait(self, value: bool = True, timeout: float | None = None) -> None:
        """Return when it is wanted, or with False when it is not; TimeoutError where that takes longer."""
        async with asyncio.timeout(timeout):
            while bool(self) is not value:
                if self._is_over:
                    raise Disconnected("it is not known any more whether anybody wants it: the client has left")
                await self._next_look()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bool:
        while (now := bool(self)) is self._said and not self._is_over:
            await self._next_look()
        if self._is_over:
            raise StopAsyncIteration
        self._said = now
        return now

    async def _next_look(self) -> None:
        self._looked.clear()
        await self._looked.wait()

    def _look(self) -> None:
        self._looked.set()

    async def close(self) -> None:
        self._is_over = True
        self._look()
        self._bus.detach(self)
        await self._interests.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
