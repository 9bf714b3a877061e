"""Past events first, then those that come: no gap, none twice, in order."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import vestnik
from network.worlds import broker, client, quote, taken, until
from vestnik import Event, Replay
from vestnik.client import bus
from vestnik.errors import WrongType, WrongValue


def trade(symbol: str, price: int, **envelope: int) -> Event:
    return Event("trade", {"symbol": symbol, "price": price}, source="feed", **envelope)  # type: ignore[arg-type]


async def test_the_last_are_replayed_and_then_it_goes_on(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as p, client(b) as c:
        await p.publish_many([quote(price) for price in range(1, 31)])
        subscription = await c.subscribe("price > 10", replay=Replay(last=10))
        await p.publish_many([quote(5), quote(40)])
        found = [await subscription.get(10) for _ in range(11)]
        assert [n.event.data["price"] for n in found] == [*range(21, 31), 40]
        assert [n.number for n in found] == list(range(1, 12))
        assert [n.replayed for n in found] == [True] * 10 + [False]


async def test_who_asks_for_announcements_meanwhile_is_told_them_beside_the_past() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        await p.publish_many([quote(price) for price in range(9000)])
        await p.subscribe("price < 0", name="early")
        subscription = await c.subscribe("EXISTS price", replay=Replay(all=True), queue=10)
        await subscription.change("EXISTS price OR type IS vestnik.subscription")
        await p.subscribe("price < 0", name="late")
        found = [await subscription.get(10) for _ in range(9000 + 4)]
        past = [n for n in found if n.event.type == "market.quote"]
        assert [n.event.data["price"] for n in past] == list(range(9000)) and all(n.replayed for n in past)
        told = {(n.event.type, n.event.data["name"]): n.replayed for n in found if n not in past}
        assert told["vestnik.subscription.made", "early"] and not told["vestnik.subscription.made", "late"]
        assert [n.number for n in found] == list(range(1, len(found) + 1)) and not any(n.gap for n in found)


async def test_what_is_replayed_can_be_chosen(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish_many([trade(symbol, n, time=n) for n, symbol in enumerate("ABAB", start=1)])

        async def prices(wanted: str = "price > 0", **what: object) -> list[int]:
            past = await c.subscribe(wanted, replay=Replay(**what))  # type: ignore[arg-type]
            mark = Event("mark", {"price": 99})
            await c.publish(mark)
            found = []
            while (n := await past.get(10)).event.data["price"] != 99 or n.replayed:
                found += [n.event.data["price"]] if n.event.type == "trade" else []
            await past.unsubscribe()
            return found

        assert await prices(all=True) == [1, 2, 3, 4]
        assert await prices("price > 2", all=True) == [3, 4]
        assert await prices(since=3) == [3, 4]
        assert await prices("type = 'trade' OR type = 'mark'", latest_by="symbol") == [3, 4]
        assert await prices(since=datetime(2000, 1, 1, tzinfo=UTC)) == []


async def test_no_gap_and_none_twice_while_events_flow(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as p:
        stop = asyncio.Event()
        published = 0

        async def publish() -> None:
            nonlocal published
            while not stop.is_set():
                count = 20
                events = [quote(published + n, source="feed") for n in range(1, count + 1)]
                published += count
                await p.publish_many(events, durable=published % 3 > 0)
                await asyncio.sleep(0)

        publishing = asyncio.create_task(publish())
        async with client(b) as c:
            for _ in range(10):
                subscription = await c.subscribe("price > 0", replay=Replay(all=True), queue=100_000)
                seen = await taken(subscription, published + 200)
                assert seen == list(range(1, len(seen) + 1))
                await subscription.unsubscribe()
        stop.set()
        await publishing


async def test_what_was_stored_in_an_earlier_life_is_replayed(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish_many([quote(price) for price in range(1, 6)])
    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish(quote(6))
        assert await taken(await c.subscribe("price > 2", replay=Replay(all=True)), 4) == [3, 4, 5, 6]


async def test_a_subscription_goes_on_where_another_had_come_to(tmp_path: Path) -> None:
    """Though its broker was away meanwhile, and though times say otherwise."""
    async with broker("b1", data=tmp_path / "b1") as b1:
        async with broker("b2", (b1,), data=tmp_path / "b2") as b2, client(b1) as c:
            await until(lambda: len(b1.host.core.topology.brokers()) == 2)
            subscription = await c.subscribe("price > 0", settled=True)
            async with client(b2) as p:
                await p.publish(quote(1))
                assert await taken(subscription, 1) == [1]
                noted = dict(subscription.seen)
                assert {log.partition("/")[0] for log in noted} == {"b1", "b2"}
                await p.publish_many([quote(2, time=0), quote(3)])
            await c.publish(quote(4))
        async with client(b1) as c:
            subscription = await c.subscribe("price > 0", seen=noted)
            assert await taken(subscription, 1) == [4]
            async with broker("b2", (b1,), data=tmp_path / "b2"):
                assert await taken(subscription, 2) == [2, 3]
                await c.publish(quote(5))
                assert await taken(subscription, 1) == [5]


async def test_cursors_that_are_wrong_hide_no_event() -> None:
    """One is beyond the end of its log, as after a restored backup; another names a log that there never was."""
    async with broker("b1") as b1, client(b1) as c:
        log, end = str(b1.host.core.origin), b1.host.core.recovery.tail.routed
        ahead = await c.subscribe("price > 0", seen={log: end + 10})
        foreign = await c.subscribe("price > 0", seen={log: end, "b1/99999999999999999": 1})
        other = await c.subscribe("price > 0", seen={log: end})
        await until(lambda: bool(b1.host.counts.totals["gaps"]))
        await c.publish_many([quote(price) for price in (1, 2, 3)])
        first = await ahead.get(20)
        assert first.event.data["price"] == 1 and first.gap is not None and "lost its end" in first.gap.reason
        assert await taken(ahead, 2) == [2, 3]
        assert await taken(foreign, 3) == await taken(other, 3) == [1, 2, 3]
        assert ahead.seen[log] == end + 3


async def test_what_was_seen_is_what_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not what waits to be, nor what will not come and was not said so."""
    monkeypatch.setattr(bus, "LEASE", 0.3)
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price > 0", settled=True)
        ((log, first),) = subscription.seen.items()
        await p.publish_many([quote(1), quote(2)])
        await until(lambda: c._session.seen(subscription.name)[log] == first + 2)
        assert subscription.waiting == 2 and subscription.seen[log] == first
        assert await taken(subscription, 1) == [1] and subscription.seen[log] == first
        assert await taken(subscription, 1) == [2] and subscription.seen[log] == first + 2
        subscription.miss(1, "it is lost")
        await p.publish(quote(3))
        await until(lambda: c._session.seen(subscription.name)[log] == first + 3)
        assert subscription.seen[log] == first + 2
        assert (await subscription.get(10)).gap is not None and subscription.seen[log] == first + 3
        await subscription.unsubscribe()
        assert subscription.seen[log] == first + 3
        past = await c.subscribe("price > 0", replay=Replay(all=True), queue=1)
        assert past.seen == {}, "the past has not come"


async def test_it_does_without_async_too(tmp_path: Path) -> None:
    def goes_on(address: str) -> object:
        with vestnik.connect_sync(address) as c:
            subscription = c.subscribe("price > 0")
            noted = dict(subscription.seen)
            c.publish(quote(1))
            return c.subscribe("price > 0", seen=noted).get(10).event.data

    async with broker(data=tmp_path) as b:
        assert await asyncio.to_thread(goes_on, b.address) == {"price": 1}


async def test_past_events_can_be_fetched(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish_many([trade("A", 1), trade("B", 2), trade("A", 3), trade("B", 4)])
        assert [event.data["price"] for event in await c.fetch("price > 1", limit=2)] == [3, 4]
        assert [event.data["price"] for event in await c.fetch("price > 1")] == [2, 3, 4]
        assert [event.data["price"] for event in await c.fetch("price < 4", latest_by="symbol")] == [2, 3]
        assert await c.fetch("price > 100") == []


async def test_a_broker_without_a_folder_remembers_the_last_events() -> None:
    async with broker() as b, client(b) as c:
        await c.publish(quote(1))
        assert [event.data["price"] for event in await c.fetch("price > 0")] == [1]
        subscription = await c.subscribe("price > 0", replay=Replay(all=True))
        await c.publish(quote(2))
        assert await taken(subscription, 2) == [1, 2]


async def test_who_has_said_nothing_before_may_fetch() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        await p.publish(quote(1))
        assert [event.data["price"] for event in await c.fetch("price > 0")] == [1]


@pytest.mark.parametrize("wrong", [{}, {"last": 0}, {"last": True}, {"since": "yesterday"}, {"all": False}])
def test_replays_that_are_none(wrong: dict[str, object]) -> None:
    with pytest.raises((WrongType, WrongValue)):
        Replay(**wrong)  # type: ignore[arg-type]


def test_replays_by_what_is_no_path() -> None:
    with pytest.raises(WrongValue, match="not 'price >'"):
        Replay(latest_by="price >")
    assert vestnik.Replay(since="1970-01-01T00:00:01Z").since == 1_000_000


async def test_a_long_past_comes_whole_to_who_reads_slowly(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish_many([quote(price) for price in range(1, 5001)])
        subscription = await c.subscribe("price > 0", replay=Replay(all=True), queue=10)
        assert await taken(subscription, 5000) == list(range(1, 5001))


async def test_a_broker_holds_little_of_a_long_past_and_of_what_comes_meanwhile(tmp_path: Path) -> None:
    """A client that does not take has a cursor that lags; what it gets is read from the journals when it does."""
    past, new = 1500, 1500
    async with (
        broker("a", data=tmp_path / "a") as a,
        broker("b", (a,), data=tmp_path / "b") as b,
        client(a) as p,
        client(b) as q,
        client(b) as c,
    ):
        await until(lambda: len(b.host.core.topology.brokers()) == 2)
        for at in (p, q):
            await at.publish_many([quote(n, source=at.name) for n in range(past)])
        subscription = await c.subscribe("price >= 0", replay=Replay(all=True), queue=10, settled=True)
        await until(lambda: subscription.waiting == 10)
        reader = b.host.core.clients[c.name].subscriptions[subscription.name].reader
        for n in range(past, past + new, 100):
            for at in (p, q):
                await at.publish_many([quote(n + more, source=at.name) for more in range(100)])
            assert reader.in_flight == reader.number == 10, "what it has not taken, and nothing beyond"
        found = [await subscription.get(10) for _ in range(2 * (past + new))]
        for at in (p, q):
            mine = [n for n in found if n.event.source == at.name]
            assert [n.event.data["price"] for n in mine] == list(range(past + new))
            assert [n.replayed for n in mine] == [True] * past + [False] * new
        assert not any(n.gap for n in found) and [n.number for n in found] == list(range(1, len(found) + 1))
        await q.publish(quote(0, source="last"))
        assert (await subscription.get(10)).event.source == "last" and reader.in_flight <= 10


async def test_what_is_published_while_the_past_is_read_is_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish(quote(1))
        read, waiting = b.host.engine._store.read, list[Any]()
        monkeypatch.setattr(b.host.engine._store, "read", lambda *what: waiting.append(what))
        everything = await c.subscribe("price > 0", replay=Replay(all=True))
        last = await c.subscribe("price > 0", replay=Replay(last=10))
        await c.publish(quote(2))
        monkeypatch.setattr(b.host.engine._store, "read", read)
        for what in waiting:
            read(*what)
        for past in (everything, last):
            found = [await past.get(10) for _ in range(2)]
            assert [(n.event.data["price"], n.replayed) for n in found] == [(1, True), (2, False)]
