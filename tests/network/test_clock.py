"""A clock that is set, forward or back, ends no lease and makes none longer."""

from __future__ import annotations

import time
from typing import cast

import pytest

from network.worlds import broker, client, quote, taken, until
from vestnik.broker.effects import Tick
from vestnik.model.times import MICROS
from vestnik.routing.propagation import Source
from vestnik.routing.router import AdvertisingRouter
from vestnik.server.process import Broker
from vestnik.wire.messages import Subscribe

DAY = 86_400.0
both_ways = pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds by which the clock is wrong are the sum of these."""
    wrong = [0.0]
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + sum(wrong))
    return wrong


def tick(b: Broker) -> None:
    b.host.engine.do(Tick())


@both_ways
@pytest.mark.parametrize("advertised", [False, True], ids=["plain", "advertised"])
async def test_what_has_a_lease_lasts_as_long_as_before(clock: list[float], jump: float, advertised: bool) -> None:
    async with (
        broker("a", advertisements=advertised) as a,
        broker(join=(a,), advertisements=advertised) as b,
        client(a, "p") as p,
        client(b, "c") as c,
    ):
        await p.advertise("price > 0")
        subscription = await c.subscribe("price > 0", settled=True)
        await until(lambda: len(a.host.core.router.subscriptions) == 1)
        clock.append(jump)
        core = b.host.core
        for one in (a, b):
            tick(one)
            assert one.host.core._next_sweep <= time.time() + one.settings.sweep
            one.host.core._next_sweep = 0.0
            tick(one)
        source = Source("c", next(iter(core.clients["c"].subscriptions)))
        (held,) = [held for _, held in core.router.subscriptions if source in held]
        lease = held[source] - time.time()
        assert b.settings.lease - 30 < lease <= b.settings.lease
        assert len(a.host.core.router.subscriptions) == 1 and a.host.core.router.advertised
        assert not advertised or len(cast(AdvertisingRouter, core.router).advertisements) == 1
        await p.publish(quote(5))
        notification = await subscription.get(10)
        assert notification.event.data["price"] == 5 and notification.gap is None


@both_ways
async def test_a_client_goes_on_renewing(clock: list[float], jump: float, monkeypatch: pytest.MonkeyPatch) -> None:
    async with broker(lease=0.6, sweep=0.2) as b, client(b) as c:
        subscription = await c.subscribe("price > 0")
        renewed: list[str] = []
        take = b.host.engine.take

        def count(message: object, sender: str) -> None:
            renewed.extend([sender] if isinstance(message, Subscribe) else [])
            take(message, sender)  # type: ignore[arg-type]

        monkeypatch.setattr(b.host.engine, "take", count)
        clock.append(jump)
        await until(lambda: len(renewed) > 3)
        await c.publish(quote(1))
        assert await taken(subscription, 1) == [1]


async def test_what_waits_for_its_time_goes_by_the_clock(clock: list[float]) -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0")
        await c.publish(quote(1, not_before=int((time.time() + DAY) * MICROS)))
        tick(b)
        clock.append(DAY)
        tick(b)
        assert await taken(subscription, 1) == [1]
