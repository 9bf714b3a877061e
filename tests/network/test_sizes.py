"""Large events, alone and together: every message has a size that can be sent."""

from __future__ import annotations

import asyncio

import pytest

from network.worlds import broker, client, quote, taken
from vestnik import Event, Filter
from vestnik.errors import FilterTooComplex, InvalidEvent
from vestnik.wire.packing import pack
from vestnik.wire.pages import LARGEST_EVENT

MANY = 200
"""Events of LARGE bytes that are more than a message holds."""
LARGE = 100_000


def large(price: float, size: int = LARGE) -> Event:
    return Event("market.quote", {"price": price, "text": "x" * size})


async def test_what_waits_at_the_broker_is_fetched_in_messages_of_a_size_that_can_be_sent() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price >= 0", queue=10)
        for price in range(MANY):
            await p.publish(large(price), durable=False)
        await p.publish(quote(MANY))
        found = [await subscription.get(10) for _ in range(MANY + 1)]
        assert [n.event.data["price"] for n in found] == list(range(MANY + 1)) and not any(n.gap for n in found)


async def test_many_large_events_are_published_at_once() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price >= 0")
        async with asyncio.timeout(20):
            await p.publish_many([large(price) for price in range(MANY)])
        assert await taken(subscription, MANY) == list(range(MANY))


async def test_the_largest_event_arrives_and_a_larger_one_is_refused() -> None:
    room = LARGEST_EVENT - len(pack(large(1, 0))) - 4
    name = "b" * 128
    async with broker(name) as b, broker("a", join=(b,)) as a, client(a) as p, client(b) as c:
        subscription = await c.subscribe("price >= 0", settled=True)
        with pytest.raises(InvalidEvent, match="bytes; at most"):
            await p.publish_many([quote(0), large(1, LARGEST_EVENT)])
        await p.publish(large(1, room))
        await p.publish(quote(2))
        assert await taken(subscription, 2) == [1, 2]
        assert len(await c.fetch("price >= 0")) == 2


async def test_what_is_too_large_is_refused_where_it_is_published_and_the_connection_stays() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price >= 0")
        await p.publish(quote(0), durable=False)
        with pytest.raises(InvalidEvent, match="bytes; at most"):
            await p.publish(large(1, LARGEST_EVENT), durable=False)
        with pytest.raises(InvalidEvent, match="bytes; at most"):
            await p.publish_many([quote(1), large(1, LARGEST_EVENT), quote(9)], durable=False)
        await p.publish(quote(2), durable=False)
        assert await taken(subscription, 3) == [0, 1, 2] and p.is_connected


async def test_a_filter_that_is_too_large_is_refused_and_the_connection_stays() -> None:
    text = "x" * LARGEST_EVENT
    small = Filter.parse("name = 'x'").to_dict()
    small["boxes"][0]["sets"][0][1]["strings"] = [text, f"{text}\0"]
    enormous = Filter.from_dict(small, limits=None)
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price >= 0")
        for ask in (c.subscribe, c.advertise, c.fetch, subscription.change):
            with pytest.raises(FilterTooComplex, match="bytes as it is sent"):
                await ask(enormous)
        await c.publish(quote(1))
        assert await taken(subscription, 1) == [1]
