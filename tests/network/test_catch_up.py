"""What a subscriber missed of brokers elsewhere comes later, and the past comes from all of them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from network.worlds import ANYWHERE, PATIENCE, broker, client, quote, taken, until
from vestnik import Event, Replay
from vestnik.broker.subscriptions import SKEW
from vestnik.errors import InvalidSetting, NotAccepted
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import read_address


async def met(*brokers: Broker) -> None:
    """All are within reach of each other."""
    await until(lambda: all(len(b.host.core.topology.brokers()) == len(brokers) for b in brokers))


async def certainly_past() -> None:
    """Wait until what was published is past at all brokers: their clocks may differ by SKEW."""
    published = time.time()
    await until(lambda: time.time() > published + SKEW)


async def test_the_past_of_all_brokers_is_replayed_by_time(tmp_path: Path) -> None:
    async with (
        broker("b1", data=tmp_path / "1") as b1,
        broker("b2", (b1,)) as b2,
        broker("b3", (b2,), data=tmp_path / "3") as b3,
        client(b1) as one,
        client(b2) as two,
        client(b3) as three,
    ):
        await met(b1, b2, b3)
        for time, bus in enumerate([one, two, three, one, two, three, one], start=1):
            await bus.publish(quote(time, time=time, source=bus.name))
        everything = await three.subscribe("price > 0", replay=Replay(all=True))
        some = await three.subscribe("price > 0", replay=Replay(last=3))
        latest = await three.subscribe("price > 0", replay=Replay(latest_by="source"))
        await one.publish(quote(8, time=8, source=one.name))
        assert await taken(everything, 8) == [1, 2, 3, 4, 5, 6, 7, 8]
        assert await taken(some, 4) == [5, 6, 7, 8]
        assert await taken(latest, 4) == [5, 6, 7, 8]
        assert [event.data["price"] for event in await three.fetch("price > 2", limit=4)] == [5, 6, 7, 8]


async def test_no_gap_and_none_twice_while_events_flow_at_another_broker(tmp_path: Path) -> None:
    async with (
        broker("b1", data=tmp_path) as b1,
        broker("b2", (b1,)) as b2,
        broker("b3", (b2,)) as b3,
        client(b1) as p,
        client(b3) as c,
    ):
        await met(b1, b2, b3)
        published = 0

        async def publish() -> None:
            nonlocal published
            while True:
                events = [quote(published + n, source="feed") for n in range(1, 21)]
                published += len(events)
                await p.publish_many(events, durable=published % 3 > 0)
                await asyncio.sleep(0)

        publishing = asyncio.create_task(publish())
        for _ in range(6):
            subscription = await c.subscribe("price > 0", replay=Replay(all=True), queue=100_000)
            seen = await taken(subscription, published + 200)
            assert seen == list(range(1, len(seen) + 1))
            await subscription.unsubscribe()
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)


async def test_a_broker_that_forgets_a_subscription_as_soon_as_its_replay_is_over_loses_nothing(tmp_path: Path) -> None:
    async with broker("b1", data=tmp_path / "1") as b1, client(b1) as p:
        await p.publish_many([quote(1), quote(2)])
        home = await broker("b2", (b1,), data=tmp_path / "2").__aenter__()
        listen = read_address(home.address)
        async with client(home) as c:
            await met(b1, home)
            subscription = await c.subscribe("price > 0", replay=Replay(last=1))
            assert await taken(subscription, 1) == [2]
            await home.__aexit__()
            await p.publish_many([quote(price) for price in range(3, 53)])
            async with broker("b2", (b1,), data=tmp_path / "2", listen=listen):
                found = [await subscription.get(10) for _ in range(50)]
                assert [n.event.data["price"] for n in found] == list(range(3, 53))
                assert {n.gap for n in found} == {None}


@pytest.mark.parametrize("durable", [True, False])
async def test_what_was_published_behind_a_cut_link_comes_when_it_is_mended(tmp_path: Path, durable: bool) -> None:
    data = tmp_path if durable else None
    async with (
        broker("b1", data=data) as b1,
        broker("b3") as b3,
        client(b1) as p,
        client(b3) as c,
    ):
        middle = await broker("b2", (b1, b3)).__aenter__()
        listen = read_address(middle.address)
        await met(b1, middle, b3)
        subscription = await c.subscribe("price > 0", settled=True)
        await p.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        await middle.__aexit__()
        await until(lambda: len(b3.host.core.topology.brokers()) == 1)
        await p.publish_many([quote(price) for price in range(2, 1500)])
        await certainly_past()
        meanwhile = await c.subscribe("price > 0", name="later")
        async with broker("b2", (b1, b3), listen=listen):
            assert await taken(subscription, 1498) == list(range(2, 1500))
            await p.publish(quote(2000))
            assert await taken(subscription, 1) == [2000]
            assert await taken(meanwhile, 1) == [2000], "it was not there before"


async def test_a_client_whose_broker_forgot_it_is_given_what_it_missed(tmp_path: Path) -> None:
    """Both the subscriber's broker and what its client was sent are gone; the client knows how far it has come."""
    first = await broker("b", data=tmp_path).__aenter__()
    listen = read_address(first.address)
    async with client(first, "c") as c:
        subscription = await c.subscribe("price > 0")
        await c.publish_many([quote(1), quote(2)])
        assert await taken(subscription, 2) == [1, 2]
        await first.__aexit__()
        async with broker("b", data=tmp_path, listen=listen) as again, client(again) as p:
            await p.publish(quote(3))
            found = await subscription.get(20)
            assert (found.event.data["price"], found.number, found.gap) == (3, 3, None)


async def test_a_client_that_was_away_for_longer_than_its_lease_loses_nothing(tmp_path: Path) -> None:
    short: dict[str, Any] = {"lease": 0.6, "sweep": 0.1}
    async with broker("b1", data=tmp_path, **short) as b1, broker("b2", (b1,), **short) as b2, client(b1) as p:
        await met(b1, b2)
        async with client(b2, "c") as c:
            subscription = await c.subscribe("price > 0", settled=True)
            await p.publish(quote(1))
            assert await taken(subscription, 1) == [1]
            c._line._dial, dial = _unreachable, c._line._dial
            b2.host._refuse(b2.host._ends["c"], "shutdown", "for a test")
            await until(lambda: not b2.host.core.clients)
            await p.publish_many([quote(2), quote(3)])
            c._line._dial = dial
            assert await taken(subscription, 2) == [2, 3]


async def _unreachable(*_: Any) -> Any:
    raise OSError("there is no way")


async def test_a_broker_that_has_lost_what_is_missing_is_named() -> None:
    """It kept nothing on disk, and begins again."""
    b1 = await broker("b1").__aenter__()
    listen = read_address(b1.address)
    async with broker("b2", (b1,)) as b2, client(b2) as c:
        await met(b1, b2)
        subscription = await c.subscribe("price > 0", settled=True)
        async with client(b1) as p:
            await p.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        await b1.__aexit__()
        async with broker("b1", listen=listen) as again, client(again) as p:
            await met(again, b2)
            await p.publish(quote(2))
            found = await subscription.get(10)
            assert found.event.data["price"] == 2 and found.gap is not None
            assert found.gap.lost is None and "its broker has begun another log" in found.gap.reason
            assert "(log b1/" in found.gap.reason


async def test_of_what_was_missed_the_end_comes_behind_a_gap_where_only_that_is_kept() -> None:
    async with broker("b1") as b1, broker("b3") as b3, client(b1) as p, client(b3) as c:
        b1.host.core.recovery.tail.room = 20_000
        middle = await broker("b2", (b1, b3)).__aenter__()
        listen = read_address(middle.address)
        await met(b1, middle, b3)
        subscription = await c.subscribe("price > 0", settled=True)
        await middle.__aexit__()
        await until(lambda: len(b3.host.core.topology.brokers()) == 1)
        await p.publish_many([Event("t", {"price": price, "text": "x" * 4000}) for price in range(1, 11)])
        async with broker("b2", (b1, b3), listen=listen):
            found = [await subscription.get(20)]
            while found[-1].event.data["price"] < 10:
                found.append(await subscription.get(20))
            kept = [n.event.data["price"] for n in found]
            assert 1 < len(kept) < 10 and kept == list(range(11 - len(kept), 11))
            gaps = [n.gap for n in found if n.gap is not None]
            assert gaps == [found[0].gap] and "the broker has no data folder, and keeps" in gaps[0].reason
            assert "log b1/" in gaps[0].reason


async def test_a_broker_that_is_lost_while_it_is_asked_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has comes later; a replay of the last events is over without it, and says so."""
    async with broker("b2", data=tmp_path / "2") as b2, client(b2) as c:
        b1 = await broker("b1", (b2,), data=tmp_path / "1").__aenter__()
        await met(b1, b2)
        async with client(b1) as p:
            await p.publish(quote(5))
            await certainly_past()
        monkeypatch.setattr(b1.host.engine._store, "read", lambda *_: None)
        await c.publish(quote(1))
        everything = await c.subscribe("price > 0", replay=Replay(all=True))
        last = await c.subscribe("price > 0", replay=Replay(last=10))
        fetching = asyncio.create_task(c.fetch("price > 0"))
        for waiting in (everything, last):
            with pytest.raises(TimeoutError):
                await waiting.get(0.2)
        await b1.__aexit__()
        first, second = await everything.get(10), await last.get(10)
        assert (first.event.data["price"], first.replayed, first.gap) == (1, True, None)
        assert second.event.data["price"] == 1 and second.replayed
        assert second.gap is not None and second.gap.reason == "b1 cannot be reached"
        assert [event.data["price"] for event in await fetching] == [1]
        async with broker("b1", (b2,), data=tmp_path / "1") as b1, client(b1) as p:
            await p.publish(quote(6))
            later = [await everything.get(10) for _ in range(2)]
            assert [(n.event.data["price"], n.gap) for n in later] == [(5, None), (6, None)]
            assert await taken(last, 1) == [6]


async def test_a_broker_whose_store_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fetch and a replay of the last events name it; what is replayed of all brokers comes when it answers."""
    monkeypatch.setattr("vestnik.recovery.reads.ANSWER_WITHIN", 0.3)
    async with (
        broker("b1", data=tmp_path) as b1,
        broker("b2", (b1,), sweep=0.1) as b2,
        client(b2) as c,
        client(b1) as p,
    ):
        await met(b1, b2)
        live = await c.subscribe("price > 0", settled=True)
        await p.publish(quote(1))
        read, asked = b1.host.engine._store.read, list[Any]()
        monkeypatch.setattr(b1.host.engine._store, "read", lambda *what: asked.append(what))
        await c.publish(quote(2))
        everything = await c.subscribe("price > 0", replay=Replay(all=True))
        last = await c.subscribe("price > 0", replay=Replay(last=10))
        assert [event.data["price"] for event in await c.fetch("price > 0")] == [2]
        assert [event.data["price"] for event in await c.fetch("price > 0", limit=None)] == [2]
        named = [record.getMessage() for record in caplog.records if "has not answered" in record.getMessage()]
        assert named == ["not all of the past was found: b1 has not answered for 0.3 s"] * 2
        found = await last.get(10)
        assert found.event.data["price"] == 2 and found.gap is not None
        assert found.gap.reason == "b1 has not answered for 0.3 s"
        first = await everything.get(10)
        assert (first.event.data["price"], first.gap) == (2, None)
        await p.publish(quote(3))
        assert sorted(await taken(live, 3)) == [1, 2, 3]
        monkeypatch.setattr(b1.host.engine._store, "read", read)
        assert await taken(everything, 2) == [1, 3], "it is asked again"
        assert await taken(last, 1) == [3]


async def test_causes_of_other_brokers_come_before_their_effects(tmp_path: Path) -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, client(b1) as one, client(b2) as two:
        await met(b1, b2)
        cause = Event("t", {"x": 1}, source="a", id="cause", time=5)
        await one.publish(cause)
        await two.publish(Event("t", {"x": 2}, source="b", id="effect", time=1, causes=[("a", "cause")]))
        found = await two.fetch("x > 0")
        assert [event.id for event in found] == ["cause", "effect"]


async def test_what_is_picked_elsewhere_may_be_more_than_a_message_holds() -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, client(b1) as p, client(b2) as c:
        await met(b1, b2)
        link = b2.host._ends["b1"]
        for price in range(1, 51):
            await p.publish(Event("t", {"price": price, "text": "x" * 500_000}))
        assert [event.data["price"] for event in await c.fetch("price > 0", limit=40)] == list(range(11, 51))
        last = await c.subscribe("price > 0", replay=Replay(last=40))
        assert await taken(last, 40) == list(range(11, 51))
        assert b2.host._ends["b1"] is link, "no message was too large for the link"


async def test_what_is_settled_is_known_everywhere(tmp_path: Path) -> None:
    async with (
        broker("b1", advertisements=True) as b1,
        broker("b2", (b1,), advertisements=True) as b2,
        broker("b3", (b2,), advertisements=True, data=tmp_path) as b3,
        client(b1) as p,
        client(b3) as c,
    ):
        await met(b1, b2, b3)
        await p.advertise("price > 0")
        for price in range(1, 20):
            subscription = await c.subscribe(f"price = {price}", settled=True)
            await p.publish(quote(price))
            assert await taken(subscription, 1) == [price]


async def test_a_neighbour_that_does_not_read_is_parted_from_and_catches_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.host.MOST_WAITING", 2_000_000)
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, client(b1) as p, client(b2) as c:
        await met(b1, b2)
        subscription = await c.subscribe("price > 0", settled=True)
        stopped, reader = b1.host._ends["b2"], b2.host._ends["b1"]
        reader.pause()
        price = 0
        while b1.host._ends.get("b2") is stopped:
            price += 1
            await p.publish(Event("t", {"price": price, "text": "x" * 100_000}))
        reader.resume()
        assert await taken(subscription, price) == list(range(1, price + 1))


async def test_what_is_old_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.store.RETAIN_EVERY", 0.05)
    async with broker(data=tmp_path, retain_age=0.4) as b, client(b) as c:
        await c.publish(quote(1))
        async with asyncio.timeout(20):
            while await c.fetch("price > 0"):
                await asyncio.sleep(0.05)
        await c.publish(quote(2))
        assert [event.data["price"] for event in await c.fetch("price > 0")] == [2]
    with pytest.raises(InvalidSetting, match="retain_size"):
        broker(data=tmp_path, retain_size=5)


async def test_in_time_only_the_latest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.store.RETAIN_EVERY", 0.05)
    text = "x" * 1000
    async with broker(data=tmp_path, retain_size=8 << 20, retain_latest_by="symbol") as b, client(b) as c:
        b.host.core.recovery.tail.room = 100_000  # what is in memory is kept as it is
        for start in range(0, 4000, 500):
            ticks = range(start, start + 500)
            await c.publish_many([Event("t", {"symbol": n % 2, "price": n, "text": text}) for n in ticks])

        async def kept() -> list[int]:
            return [event.data["price"] for event in await c.fetch("price >= 0", limit=10_000)]

        async with asyncio.timeout(20):
            while len(found := await kept()) > 2500:
                await asyncio.sleep(0.05)
        assert found[-2:] == [3998, 3999] and found == sorted(found)
    with pytest.raises(InvalidSetting, match="retain_latest_by"):
        broker(data=tmp_path, retain_latest_by="a b")


async def test_a_folder_is_of_one_broker(tmp_path: Path) -> None:
    async with broker("b1", data=tmp_path):
        pass
    with pytest.raises(InvalidSetting, match="is the folder of the broker b1: go on by that name"):
        await broker("b2", data=tmp_path).__aenter__()
    async with broker("b1", data=tmp_path) as b1:
        assert b1.host.name == "b1"


async def test_a_replay_of_the_last_events_that_begins_again_misses_nothing_since_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker dies before it has found them, and its client is back after more were published."""
    first = await broker("b", data=tmp_path).__aenter__()
    listen = read_address(first.address)
    async with client(first, "c") as c:
        await c.publish_many([quote(price) for price in range(1, 6)])
        await certainly_past()
        monkeypatch.setattr(first.host.engine._store, "read", lambda *_: None)
        subscription = await c.subscribe("price > 0", replay=Replay(last=2))
        c._line._dial, dial = _unreachable, c._line._dial
        await first.__aexit__()
        async with broker("b", data=tmp_path, listen=listen) as again, client(again) as p:
            await p.publish_many([quote(price) for price in range(6, 16)])
            c._line._dial = dial
            found = [await subscription.get(10) for _ in range(12)]
            assert [n.event.data["price"] for n in found] == list(range(4, 16))
            assert [n.replayed for n in found] == [True] * 2 + [False] * 10 and not any(n.gap for n in found)


async def test_what_is_to_be_settled_waits_for_a_broker_that_is_to_be_joined() -> None:
    async with broker("b1") as b1:
        at = read_address(b1.address)
    async with Broker(Settings(name="b2", listen=ANYWHERE, join=(at,))) as b2, client(b2) as c:
        subscribing = asyncio.create_task(c.subscribe("price > 0", settled=True))
        await c.fetch("price > 0")  # a later request is answered
        assert not subscribing.done()
        async with broker("b1", listen=at) as b1:
            await subscribing
            assert len(b1.host.core.router.subscriptions) == 1


async def test_a_broker_that_is_to_be_joined_and_is_not_linked_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.recovery.meeting.JOINED_WITHIN", 0.0)
    async with broker("b1") as b1:
        at = read_address(b1.address)
    missing = f"the broker at {at} is to be joined and is not linked"
    async with Broker(Settings(name="b2", listen=ANYWHERE, join=(at,))) as b2, client(b2) as c:
        await c.publish(quote(1))
        await c.subscribe("price > 0", name="s", settled=True)
        await c.advertise("price > 0", name="a", settled=True)
        last = await c.subscribe("price > 0", replay=Replay(last=1))
        assert [event.data["price"] for event in await c.fetch("price > 0")] == [1]
        first = await last.get(PATIENCE)
        assert first.gap is not None and first.gap.reason == missing
        assert [record.getMessage() for record in caplog.records if missing in record.getMessage()] == [
            f"subscription s is not known everywhere: {missing}",
            f"advertisement a is not known everywhere: {missing}",
            f"not all of the past was found: {missing}",
        ]
        b2.unlink(at)
        await until(lambda: not b2.host.core.recovery.meeting.missing)


async def test_brokers_that_join_each_other_are_not_missing() -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2:
        await met(b1, b2)
        with suppress(NotAccepted):
            await b1.link(read_address(b2.address))
        await until(lambda: not b1.host.core.recovery.meeting.missing)
        b2.host.part("b1", "test", "the link is cut")
        await until(lambda: not b1.host.core.recovery.meeting.missing and not b2.host.core.recovery.meeting.missing)
        await met(b1, b2)


async def test_a_settled_advertisement_knows_the_subscriptions_that_it_concerns() -> None:
    async with (
        broker("b1", advertisements=True) as b1,
        broker("b2", (b1,), advertisements=True) as b2,
        client(b1) as p,
        client(b2) as c,
    ):
        await until(lambda: len(b1.host.core.topology.brokers()) == 2)
        subscription = await c.subscribe("price > 0", settled=True)
        assert len(b1.host.core.router.subscriptions) == 0, "nothing is advertised there"
        await p.advertise("price > 0", settled=True)
        assert len(b1.host.core.router.subscriptions) == 1
        await p.publish(quote(1))
        assert await taken(subscription, 1) == [1]
