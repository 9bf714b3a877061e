"""A market: quotes of a symbol are published while somebody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final

from vestnik.client.factories import Factory, Producer
from vestnik.client.services import ServiceBus
from vestnik.errors import Disconnected
from vestnik.model.events import Event

OPENING: Final = {"ACME": 100.0, "HOLI": 20.0, "INIT": 50.0}
QUOTES: Final = "type IS market.quote AND symbol IN ('ACME', 'HOLI', 'INIT')"
PAUSE: Final = 0.2
"""Seconds between two quotes of a symbol."""
LINGER: Final = 1.0
"""Seconds for which quotes go on when nobody wants them any more."""


class Market:
    """`published` is all that its broker has acknowledged, in order; the `watchers` are called with each.

    While `held` is locked, nothing is being published; while it is not `is_open`, nothing will be.
    """

    def __init__(self, bus: ServiceBus, say: Callable[[str, str], None]) -> None:
        self.published: list[Event] = []
        self.watchers: list[Callable[[Event], None]] = []
        self.prices: dict[str, float] = {}  # of the symbols that are quoted
        self.held = asyncio.Lock()
        self.is_open = asyncio.Event()
        self.bus = bus
        self._say = say
        self._random = Random(7)

    def open(self) -> Factory:
        """Have a producer for each symbol that anybody wants."""
        self.is_open.set()
        return self.bus.factory(QUOTES, key="symbol", linger=LINGER, warm=1)(self._quote)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is quoted, and nothing is still being published."""
        return not self.prices and not self.held.locked()

    async def _quote(self, producer: Producer) -> None:
        symbol = producer.key
        opening = OPENING[symbol]
        price = producer.past[-1].data["price"] if producer.past else opening
        self._say("market", f"somebody wants {symbol}: quotes begin at {price:.2f}")
        try:
            while True:
                price = round(price + self._random.gauss(0, 0.01 * opening) + 0.1 * (opening - price), 2)
                self.prices[symbol] = price
                await asyncio.shield(asyncio.ensure_future(self._publish(symbol, price)))
                await asyncio.sleep(PAUSE)
        finally:
            del self.prices[symbol]
            self._say("market", f"nobody within reach wants {symbol} any more: quotes end")

    async def _publish(self, symbol: str, price: float) -> None:
        """Also where the quotes end meanwhile; unless the demo does."""
        await self.is_open.wait()
        with suppress(Disconnected):
            async with self.held:
                number = len(self.published) + 1
                quote = {"symbol": symbol, "price": price}
                event = Event("market.quote", quote, source="market", id=f"q{number}")
                await self.bus.publish(event)
                self.published.append(event)
                for watcher in self.watchers:
                    watcher(event)
