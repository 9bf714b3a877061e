"""What brokers say of themselves, also through others, and links that come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from network.worlds import broker, client, quote, taken, until
from vestnik import Replay
from vestnik.errors import NotAccepted
from vestnik.observe.lags import lags


async def test_a_broker_says_what_it_has() -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, client(b1, "p") as p, client(b2, "c") as c:
        subscription = await c.subscribe("price > 1", name="s")
        await p.advertise("price > 0", name="a")
        await until(lambda: len(b1.host.core.router.subscriptions) == 1)
        await p.publish(quote(7))
        assert await taken(subscription, 1) == [7]
        status = await c.inspect("status")
        assert (status["broker"], status["brokers"], status["neighbours"]) == ("b2", ["b1", "b2"], {"b1": ["b1"]})
        assert (status["taken"], status["passed"], status["notified"], status["subscriptions"]) == (0, 1, 1, 1)
        (known,) = await c.inspect("clients")
        assert known["client"] == "c" and known["connected"] and not known["full"]
        assert known["subscriptions"] == [
            {"name": "s", "filter": "price > 1", "leased": True, "last": 1, "kept": 1, "lag": 0}
        ]
        other = await c.inspect("status", "b1")
        assert (other["broker"], other["taken"], other["advertisements"]) == ("b1", 1, 1)
        assert [one["client"] for one in await c.inspect("clients", to="b1", name="p")] == ["p"]


async def test_a_subscription_that_lags_is_seen() -> None:
    async with broker("b1") as b1, client(b1, "p") as p, client(b1, "c") as c:
        subscription = await c.subscribe("price > 0", name="s", queue=3)
        await p.publish_many([quote(price) for price in range(1, 11)])
        status = await p.inspect("status")
        assert status["lagging"] == 1 and 0 < status["lag"] < 10
        ((known,),) = [one["subscriptions"] for one in await p.inspect("clients", name="c")]
        assert known["lag"] == status["lag"]
        assert status["queues"] == {"storing": 0, "routing": 0, "client_bytes": 0, "neighbour_bytes": 0}
        assert status["fsync"] is None and status["loop_lag"] >= 0
        assert await taken(subscription, 10) == list(range(1, 11))
        await until(lambda: not lags(b1.host.core))
        assert (await p.inspect("status"))["lag"] == 0


async def test_a_log_that_was_never_read_is_no_lag() -> None:
    """Logs in memory begin at a large offset."""
    async with broker("b1") as b1, client(b1, "c") as c:
        async with broker("b2", (b1,)):
            await until(lambda: "b2" in b1.host.core.topology.brokers())
        await until(lambda: "b2" not in b1.host.core.topology.brokers())
        await c.subscribe("TRUE", replay=Replay(all=True))
        assert (await c.inspect("status"))["lag"] == 0


async def test_questions_that_cannot_be_answered() -> None:
    async with broker("b1") as b1, client(b1) as c:
        with pytest.raises(NotAccepted, match="b9 is not within reach; b1 are"):
            await c.inspect("status", "b9")
        with pytest.raises(NotAccepted, match="b1 answers status, clients"):
            await c.inspect("nonsense")
        with pytest.raises(NotAccepted, match="not about that"):
            await c.inspect("clients", size=3)
        with pytest.raises(NotAccepted, match="port without a host"):
            await c.inspect("link.add", address="8021")


async def test_who_asks_again_while_it_is_being_answered_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = 0, asyncio.Event()
    monkeypatch.setattr("vestnik.session.session.PATIENCE", 0.05)
    async with broker("b1") as b1, client(b1) as c:

        async def slowly(about: dict[str, Any]) -> str:
            nonlocal begun
            begun += 1
            await go_on.wait()
            return "done"

        b1.host.engine._desk._answers["slow"] = slowly
        asking = asyncio.create_task(c.inspect("slow"))
        await until(lambda: begun == 1)
        await asyncio.sleep(0.3)
        assert begun == 1
        go_on.set()
        assert await asking == "done"


async def test_links_are_made_and_ended_while_brokers_run() -> None:
    async with broker("b1") as b1, broker("b2") as b2, client(b1) as p, client(b2) as c:
        subscription = await c.subscribe("price > 0")
        assert "is linked with" in (await c.inspect("link.add", address=b1.address))["said"]
        assert "has a link" in (await c.inspect("link.add", address=b1.address))["said"]
        await until(lambda: len(b1.host.core.router.subscriptions) == 1)
        await p.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        assert "ends the link" in (await c.inspect("link.remove", address=b1.address))["said"]
        await until(lambda: b1.host.core.router.neighbours == [] == b2.host.core.router.neighbours)
        with pytest.raises(NotAccepted, match="b2 made no such link; it made none at all"):
            await c.inspect("link.remove", address=b1.address)


async def test_whoever_asks_for_a_link_is_told_what_came_of_it() -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, broker("b3", (b2,)) as b3, client(b3) as c:
        await until(lambda: "b1" in b3.host.core.topology.brokers())
        with pytest.raises(NotAccepted, match="would close a cycle"):
            await c.inspect("link.add", address=b1.address)
        with pytest.raises(NotAccepted, match="that is b3 itself"):
            await c.inspect("link.add", address=b3.address)
        assert b3.missing == []
        said = (await c.inspect("link.add", address="127.0.0.1:1"))["said"]
        assert "cannot make a link to 127.0.0.1:1 yet" in said and "vestnik link remove 127.0.0.1:1" in said
        await c.inspect("link.remove", address="127.0.0.1:1")
        assert b3.missing == []
