"""Brokers and clients over real sockets, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import vestnik
from vestnik import Event
from vestnik.client.services import ServiceBus
from vestnik.client.subscriptions import Subscription
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address, read_address

ANYWHERE = Address("127.0.0.1", 0)
PATIENCE = 60.0
"""Seconds to wait for something that will be: a busy machine is slow, and no test is about that."""


def broker(name: str = "b", join: tuple[Broker, ...] = (), **settings: Any) -> Broker:
    """A broker on a free port, and a neighbour of others."""
    settings.setdefault("heartbeat", min(15.0, settings.get("lease", 60.0) / 3))
    addresses = tuple(read_address(other.address) for other in join)
    return Broker(Settings(name=name, listen=settings.pop("listen", ANYWHERE), join=addresses, **settings))


def client(at: Broker, name: str | None = None, **options: Any) -> ServiceBus:
    return vestnik.connect(at.address, name=name, **options)


def quote(price: float, **envelope: Any) -> Event:
    return Event("market.quote", {"price": price}, **envelope)


async def taken(subscription: Subscription, count: int) -> list[Any]:
    """The prices in the next notifications."""
    return [(await subscription.get(PATIENCE)).event.data["price"] for _ in range(count)]


def logged(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    """Return each message that was logged with this event, with its fields."""
    records = [record.__dict__ for record in caplog.records]
    return [f"{one['message']} {one['fields']}" for one in records if one.get("event") == event]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that will be."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)
