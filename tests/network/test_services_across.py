"""Services whose clients are at different brokers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from network.worlds import broker, client, until
from vestnik import Event, Filter, Replay
from vestnik.client.factories import Producer
from vestnik.client.subscriptions import Subscription
from vestnik.errors import NotAccepted
from vestnik.server.process import Broker
from vestnik.transport.addresses import read_address


@asynccontextmanager
async def chain(count: int = 3, **settings: Any) -> AsyncIterator[list[Broker]]:
    """Brokers in a row, each within reach of all."""
    brokers: list[Broker] = []
    try:
        for number in range(count):
            brokers.append(await broker(f"b{number}", tuple(brokers[-1:]), **settings).__aenter__())
        await all_reach(brokers, count)
        yield brokers
    finally:
        for one in reversed(brokers):
            await one.__aexit__()


async def all_reach(brokers: list[Broker], count: int) -> None:
    await until(lambda: all(len(b.host.core.topology.brokers()) == count for b in brokers))


@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("routing", ["flooding", "simple", "identity", "covering", "merging"])
async def test_the_open_ones_of_all_brokers_are_told(routing: str, advertisements: bool) -> None:
    way = chain(routing=routing, advertisements=advertisements)
    async with way as (a, _, c), client(a, "near") as near, client(c, "far") as far:
        await far.subscribe("price > 10", replay=Replay(last=3))
        await near.subscribe("price < 20")
        told = await near.subscribe("type IS vestnik.subscription AND OVERLAPS(filter, 'price = 15')")
        first = [await told.get(10) for _ in range(2)]
        assert all(n.replayed for n in first)
        assert sorted((n.event.data["client"], n.event.data["broker"]) for n in first) == [
            ("far", "b2"),
            ("near", "b0"),
        ]
        assert [n.event.data["replay"] for n in first if n.event.data["client"] == "far"] == [{"last": 3}]
        later = await far.subscribe("price = 15")
        made = await told.get(10)
        await later.unsubscribe()
        ended = await told.get(10)
        assert (made.replayed, made.event.type) == (False, "vestnik.subscription.made")
        assert (ended.event.type, ended.event.data["name"]) == ("vestnik.subscription.ended", made.event.data["name"])


async def test_demand_is_known_across_brokers_as_they_come_and_go() -> None:
    async with broker("a") as a, client(a) as producer, await producer.wanted("type IS market") as wanted:
        b = broker("b", (a,))
        async with b, client(b) as consumer:
            await consumer.subscribe("price > 10")
            await wanted.wait(timeout=10)
        await wanted.wait(False, timeout=10)
        c = broker("c")
        async with c, client(c) as consumer:
            await consumer.subscribe("price > 10")
            await a.link(read_address(c.address))
            await wanted.wait(timeout=10)
            a.unlink(read_address(c.address))
            await wanted.wait(False, timeout=10)


async def test_who_subscribed_before_a_factory_is_served_and_misses_nothing() -> None:
    async with chain(advertisements=True) as (a, _, c), client(a) as maker, client(c) as consumer:
        subscription = await consumer.subscribe("symbol IN ('A', 'B')")

        @maker.factory("type IS market", key="symbol", linger=0)
        async def produce(producer: Producer) -> None:
            for price in range(1, 4):
                await producer.publish(Event("market", {"symbol": producer.key, "price": price}))
            await asyncio.Event().wait()

        found: dict[str, list[int]] = {"A": [], "B": []}
        for _ in range(6):
            data = (await subscription.get(10)).event.data
            found[data["symbol"]].append(data["price"])
        assert found == {"A": [1, 2, 3], "B": [1, 2, 3]}
        await subscription.unsubscribe()
        await until(lambda: not produce.producers)


async def test_a_producer_is_warm_from_what_was_published_elsewhere() -> None:
    async with chain() as (a, _, c), client(a) as maker, client(c) as consumer:
        await consumer.publish(Event("market", {"symbol": "A", "price": 7}))
        past: list[int] = []

        @maker.factory("type IS market", key="symbol", linger=0)
        async def produce(producer: Producer) -> None:
            past.extend(event.data["price"] for event in producer.past)

        await consumer.subscribe("symbol = 'A'")
        await until(lambda: past == [7])


async def test_requests_are_answered_from_afar() -> None:
    async with chain() as (a, _, c), client(a) as asking, client(c) as server:

        async def answer(n: Any) -> None:
            await server.reply(n, {"to": n.event.data["number"]})

        await server.subscribe("type = 'question'", answer)
        await until(lambda: len(a.host.core.router.subscriptions) == 1)
        replies = await asyncio.gather(*[asking.request(Event("question", {"number": n})) for n in range(5)])
        assert [reply.data["to"] for reply in replies] == [0, 1, 2, 3, 4]


async def test_a_view_of_what_is_published_everywhere() -> None:
    async with chain() as (a, _, c), client(a) as reader, client(c) as writer:
        await writer.publish_many([Event("room", {"name": name, "light": True}) for name in "xy"])
        async with await reader.view("type IS room", key="name") as view:
            assert sorted(view) == ["x", "y"]
            await reader.publish(Event("room", {"name": "x", "light": False}))
            change = await anext(view)
            assert change.event is not None and (change.key, change.event.data["light"]) == ("x", False)


async def test_a_lease_that_runs_out_ends_demand() -> None:
    async with (
        broker("a", lease=0.5, sweep=0.1) as a,
        client(a) as maker,
        await maker.wanted("type IS market") as wanted,
    ):
        async with client(a, "named") as consumer:
            await consumer.subscribe("type IS market")
            await wanted.wait(timeout=10)
        await wanted.wait(False, timeout=10)


async def test_demand_that_ended_while_the_broker_was_away_is_forgotten() -> None:
    async with broker("a") as a:
        where = a.address
        async with client(a) as maker, await maker.wanted("type IS market") as wanted:
            told = await maker.subscribe("type IS vestnik.subscription")
            async with client(a) as consumer:
                await consumer.subscribe("type IS market")
                await wanted.wait(timeout=10)
                assert not (await told.get(10)).gap
                await a.__aexit__()
            async with broker("a", listen=read_address(where)) as again:
                await wanted.wait(False, timeout=10)
                async with client(again) as consumer:
                    await consumer.subscribe("price > 3")
                    await wanted.wait(timeout=10)
                    made = await told.get(10)
                    assert made.gap is not None and made.event.data["filter"] == "price > 3"


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_demand_is_right_whatever_links_did(seed: int) -> None:
    """Clients subscribe, change and unsubscribe anywhere while links are cut and made; then all is known."""
    chance = random.Random(seed)
    async with chain() as brokers, client(brokers[0]) as maker:
        links = [(brokers[1], read_address(brokers[0].address)), (brokers[2], read_address(brokers[1].address))]
        wanted = await maker.wanted("price > 10")
        clients = [await client(b).__aenter__() for b in brokers]
        open: dict[tuple[str, str], Subscription] = {}
        for _ in range(60):
            match chance.choice(["open", "open", "change", "end", "cut", "heal"]):
                case "open":
                    made = await chance.choice(clients).subscribe(f"price = {chance.randrange(20)}")
                    open[made._bus.name, made.name] = made
                case "change" if open:
                    await chance.choice(list(open.values())).change(f"price = {chance.randrange(20)}")
                case "end" if open:
                    await open.pop(chance.choice(list(open))).unsubscribe()
                case "cut":
                    b, at = chance.choice(links)
                    with suppress(NotAccepted):  # it is cut already
                        b.unlink(at)
                case "heal":
                    b, at = chance.choice(links)
                    await b.link(at)
            await asyncio.sleep(chance.choice([0, 0, 0.01]))
        for b, at in links:
            await b.link(at)
        await all_reach(brokers, 3)
        truth = {key for key, made in open.items() if made.filter.overlaps(Filter.parse("price > 10"))}
        await until(lambda: {(interest.client, interest.name) for interest in wanted.interests} == truth)
        for one in clients:
            await one.close()
        await until(lambda: not wanted)
