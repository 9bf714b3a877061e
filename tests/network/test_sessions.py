"""Clients with a name: what was not taken is there for whoever has the name next."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import vestnik
from network.worlds import broker, client, quote, taken, until
from vestnik.broker.effects import Append
from vestnik.errors import Disconnected, TurnedAway
from vestnik.server.memory import MemoryStore
from vestnik.server.store import WhenStored

PRICES = [1, 2, 3, 4, 5]


async def test_a_later_life_goes_on_with_what_was_not_taken() -> None:
    async with broker() as b, client(b) as p:
        async with client(b, "desk") as c:
            subscription = await c.subscribe("price > 0")
            await p.publish_many(map(quote, PRICES))
            assert await taken(subscription, 3) == [1, 2, 3]
            await until(lambda: subscription.left == 3)
        await p.publish(quote(6))
        async with client(b, "desk") as c:
            again = await c.subscribe("price > 0")
            found = [await again.get(10) for _ in range(4)]
            assert [n.event.data["price"] for n in found] == [3, 4, 5, 6], (
                "of the third nobody knows whether it is done"
            )
            assert [n.number for n in found] == [3, 4, 5, 6] and not any(n.gap for n in found)
            await p.publish(quote(7))
            assert await taken(again, 1) == [7]


async def test_what_is_done_does_not_come_again() -> None:
    async with broker() as b, client(b) as p:
        async with client(b, "desk") as c:
            subscription = await c.subscribe("price > 0", name="all")
            await p.publish_many(map(quote, PRICES))
            assert await taken(subscription, 5) == PRICES
            assert subscription.try_get() is None
        await p.publish(quote(6))
        async with client(b, "desk") as c:
            assert await taken(await c.subscribe("price > 0", name="all"), 1) == [6]


async def test_who_wants_something_else_begins_anew() -> None:
    async with broker() as b, client(b) as p:
        async with client(b, "desk") as c:
            await c.subscribe("price > 0")
            await p.publish_many(map(quote, PRICES))
        async with client(b, "desk") as c:
            other = await c.subscribe("price > 1")
            await p.publish(quote(6))
            found = await other.get(10)
            assert (found.event.data["price"], found.number) == (6, 1)


async def test_a_client_without_a_name_leaves_nothing() -> None:
    async with broker() as b, client(b) as p:
        async with client(b) as c:
            await c.subscribe("price > 0")
            await p.publish_many(map(quote, PRICES))
            name = c.name
        await until(lambda: name not in b.host.core.clients)


async def test_a_second_connection_of_the_name_takes_the_session_over() -> None:
    async with broker() as b, client(b) as p, client(b, "desk") as first:
        one = await first.subscribe("price > 0")
        await p.publish(quote(1))
        await until(lambda: one.left == 1)
        async with client(b, "desk") as second:
            other = await second.subscribe("price > 0")
            assert await taken(other, 1) == [1]
            assert await taken(one, 1) == [1], "it was here"
            with pytest.raises(TurnedAway, match="taken-over"):
                await one.get(10)


CONSUMER = """
import asyncio, sys, vestnik

async def main(url):
    async with vestnik.connect(url, name="worker") as bus:
        async for n in await bus.subscribe("price > 0", name="work"):
            print(n.event.data["price"], flush=True)

asyncio.run(main(sys.argv[1]))
"""


async def test_a_consumer_that_is_killed_misses_nothing(tmp_path: Path) -> None:
    def start(url: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CONSUMER, url]
        return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")

    def read(consumer: subprocess.Popen[str], upto: int) -> list[int]:
        assert consumer.stdout is not None
        found: list[int] = []
        while not found or found[-1] < upto:
            found.append(int(consumer.stdout.readline()))
        return found

    async with broker(data=tmp_path) as b, vestnik.connect(b.address) as p:
        with start(b.address) as first:
            await until(lambda: bool(b.host.core.clients.get("worker") and b.host.core.clients["worker"].subscriptions))
            await p.publish_many(map(quote, range(1, 1001)))
            done = await asyncio.to_thread(read, first, 500)
            first.send_signal(signal.SIGKILL)
            assert first.stdout is not None
            done += [int(line) for line in first.stdout if line.endswith("\n")]
        await p.publish_many(map(quote, range(1001, 2001)))
        with start(b.address) as second:
            rest = await asyncio.to_thread(read, second, 2000)
            second.kill()
    assert done == list(range(1, done[-1] + 1))
    assert rest[0] <= done[-1] + 1 and rest == list(range(rest[0], 2001))


async def test_what_an_earlier_life_is_answered_is_no_answer_to_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    storing: list[tuple[Append, WhenStored]] = []
    monkeypatch.setattr(MemoryStore, "append", lambda _, what, done: storing.append((what, done)))
    async with broker() as b:
        async with client(b, "desk") as c:
            first = asyncio.create_task(c.publish(quote(1)))
            await until(lambda: len(storing) == 1)
        with pytest.raises(Disconnected):
            await first
        async with client(b, "desk") as c:
            second = asyncio.create_task(c.publish(quote(2)))
            await until(lambda: len(storing) == 2)
            for what, done in storing:
                assert not second.done()
                done(what, "")
                await c.inspect("status")  # the answer is here
            await second


async def test_a_later_life_gets_nothing_again_when_a_neighbour_was_away(tmp_path: Path) -> None:
    async with broker("b3") as b3:
        b1 = await broker("b1", (b3,), data=tmp_path).__aenter__()
        await until(lambda: len(b3.host.core.topology.brokers()) == 2)
        async with client(b3, "desk") as c, client(b1) as p:
            subscription = await c.subscribe("price > 0", settled=True)
            await p.publish_many(map(quote, PRICES))
            assert await taken(subscription, 5) == PRICES
            assert subscription.try_get() is None
        await b1.__aexit__()
        async with broker("b1", (b3,), data=tmp_path) as again, client(again) as p:
            await until(lambda: len(b3.host.core.topology.brokers()) == 2)
            await p.publish(quote(6))
            async with client(b3, "desk") as c:
                assert await taken(await c.subscribe("price > 0"), 1) == [6]
