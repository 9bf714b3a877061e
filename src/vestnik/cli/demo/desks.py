"""Who wants to know what: desks, at different brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vestnik.cli.demo.market import Market
from vestnik.client.notifications import Notification
from vestnik.client.services import ServiceBus
from vestnik.client.subscriptions import Subscription
from vestnik.client.views import View
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.replays import Replay

NOTHING: Final = Filter.parse("FALSE")


class Desk:
    """A client with one subscription. It knows the ids of what it has `seen`, and of what is `due` to it.

    It subscribes and changes its mind while the market is held, so that it is plain from which quote on.
    """

    def __init__(self, bus: ServiceBus, market: Market, broker: str, *, last: int = 0) -> None:
        self.name = bus.name
        self.broker = broker
        self.filter = NOTHING
        self.seen: list[str] = []
        self.due: list[str] = []
        self.replayed = 0
        self.shown = ""  # what it got last
        self._bus = bus
        self._market = market
        self._last = last
        self._subscription: Subscription | None = None
        market.watchers.append(self._expect)

    async def want(self, wanted: str) -> None:
        """Subscribe, with the past if it is to begin with that; or change what is subscribed to."""
        async with self._market.held:
            if self._subscription is None:
                replay = Replay(last=self._last) if self._last else None
                self._subscription = await self._bus.subscribe(wanted, self.take, replay=replay, settled=True)
                self.due = [event.id for event in self._market.published[-self._last :] if self._last]
            else:
                await self._subscription.change(wanted)
            self.filter = self._subscription.filter

    async def close(self) -> None:
        assert self._subscription is not None
        async with self._market.held:
            await self._subscription.unsubscribe()
            self.filter = NOTHING

    async def take(self, notification: Notification) -> None:
        data = notification.event.data
        self.seen.append(notification.event.id)
        self.replayed += notification.replayed
        self.shown = f"{data['symbol']} {data['price']:.2f}"

    def _expect(self, event: Event) -> None:
        if self.filter.matches(event):
            self.due.append(event.id)

    @property
    def is_up_to_date(self) -> bool:
        """Whether it has seen just what was due, in that order; before that maybe what was on its way when it came."""
        return self.seen[len(self.seen) - len(self.due) :] == self.due

    @property
    def missing(self) -> set[str]:
        """What is due, and has not come."""
        return set(self.due) - set(self.seen)


class Mover(Desk):
    """Wants to know when the price of ACME has moved by more than 1 since it heard of it: its filter goes with it."""

    async def follow(self, price: float) -> None:
        await self.want(f"symbol = 'ACME' AND (price < {price - 1:.2f} OR price > {price + 1:.2f})")

    async def take(self, notification: Notification) -> None:
        await super().take(notification)
        await self.follow(notification.event.data["price"])


class Board:
    """Shows the last price of each symbol: a view."""

    def __init__(self, bus: ServiceBus, market: Market, broker: str) -> None:
        self.name = bus.name
        self.broker = broker
        self._bus = bus
        self._market = market
        self._view: View | None = None

    async def want(self, wanted: str) -> None:
        async with self._market.held:
            self._view = await self._bus.view(wanted, key="symbol")

    async def close(self) -> None:
        assert self._view is not None
        await self._view.close()

    @property
    def shown(self) -> str:
        prices = {symbol: event.data["price"] for symbol, event in self._events.items()}
        return ", ".join(f"{symbol} {prices[symbol]:.2f}" for symbol in sorted(prices))

    @property
    def is_up_to_date(self) -> bool:
        """Whether it shows what was published last."""
        latest = {event.data["symbol"]: event.id for event in self._market.published}
        return {symbol: event.id for symbol, event in self._events.items()} == latest

    @property
    def _events(self) -> Mapping[str, Event]:
        return {} if self._view is None else self._view
