"""Who publishes faster than it may is slowed down, and nobody else is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from network.worlds import broker, client, quote, taken, until
from vestnik.client.services import ServiceBus
from vestnik.server.limits import Limits
from vestnik.server.pacing import Pace
from vestnik.server.process import Broker
from vestnik.services.local import within

WAYS: dict[str, Callable[[Broker], ServiceBus]] = {"by TCP": client, "in the process": within}


def test_a_pace_in_the_long_run_and_at_once() -> None:
    pace = Pace(rate=10, burst=20, now=0.0)
    assert pace.take(20, 0.0) == 0.0, "a burst"
    assert pace.take(5, 0.0) == 0.5
    assert pace.take(5, 0.5) == 0.5
    assert pace.take(5, 100.0) == 0.0 and pace.take(16, 100.0) == pytest.approx(0.1), "it saves no more than a burst"


@pytest.mark.parametrize("way", WAYS)
async def test_who_is_ahead_waits_alone(way: str) -> None:
    async with broker(limits=Limits(publish_rate=1, publish_burst=10)) as b, client(b) as other, client(b) as c:
        subscription = await c.subscribe("TRUE")
        async with WAYS[way](b) as fast:
            await fast.publish_many([quote(1) for _ in range(100)])
            waiting = asyncio.create_task(fast.publish(quote(2)))
            await asyncio.sleep(0)
            await other.publish(quote(3))
            assert await taken(subscription, 101) == [*[1] * 100, 3] and not waiting.done()
            waiting.cancel()


@pytest.mark.parametrize("way", WAYS)
async def test_all_of_it_comes_in_time(way: str) -> None:
    async with broker(limits=Limits(publish_rate=2000, publish_burst=1)) as b, client(b) as c, WAYS[way](b) as fast:
        subscription = await c.subscribe("TRUE")
        for price in range(40):
            await fast.publish(quote(price))
        for price in range(40, 80):
            await fast.publish(quote(price), durable=False)
        assert await taken(subscription, 80) == list(range(80))
        await until(lambda: not b.host._pacing._ahead)


async def test_who_is_not_listened_to_is_not_taken_for_dead() -> None:
    async with broker(heartbeat=0.1, limits=Limits(publish_rate=10, publish_burst=1)) as b, client(b) as fast:
        before = list(b.host._guests)
        await fast.publish_many([quote(price) for price in range(6)])
        await fast.publish(quote(6))
        assert list(b.host._guests) == before
