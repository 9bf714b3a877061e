"""Views, demand, requests and factories, at one broker."""

from __future__ import annotations

import asyncio
import time
from functools import reduce
from operator import or_
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from network.worlds import broker, client, until
from vestnik import Event, Filter, LocalBus
from vestnik.client import views
from vestnik.client.factories import Producer
from vestnik.client.interests import Interests
from vestnik.client.notifications import Notification
from vestnik.client.services import ServiceBus
from vestnik.client.views import View
from vestnik.errors import Disconnected, WrongValue


def trade(symbol: str, price: float, **envelope: Any) -> Event:
    return Event("market.trade", {"symbol": symbol, "price": price}, source="feed", **envelope)


def prices(view: Any) -> dict[str, float]:
    return {key: event.data["price"] for key, event in view.items()}


# --- announcements ---


async def test_who_subscribes_to_subscriptions_is_told_of_the_open_ones_first() -> None:
    async with LocalBus() as bus, bus.client("early") as early, bus.client("late") as late:
        await early.subscribe("price > 10")
        await early.subscribe("symbol = 'ACME' AND price < 5")
        await early.advertise("price > 0")
        told = await bus.subscribe("type IS vestnik.subscription AND OVERLAPS(filter, 'price = 20')")
        second = await late.subscribe("TRUE")
        await second.unsubscribe()
        found = [await told.get(10) for _ in range(3)]
        assert [(n.event.type, n.event.data["client"], n.replayed) for n in found] == [
            ("vestnik.subscription.made", "early", True),
            ("vestnik.subscription.made", "late", False),
            ("vestnik.subscription.ended", "late", False),
        ]
        offers = await bus.fetch("type IS vestnik.advertisement")
        assert [(event.data["client"], event.data["filter"]) for event in offers] == [("early", "price > 0")]


async def test_who_changes_to_subscriptions_is_told_of_the_open_ones_that_it_does_not_know() -> None:
    async with LocalBus() as bus, bus.client("early") as early:
        await early.subscribe("price > 30", name="dear")
        await early.subscribe("price < 5", name="cheap")
        told = await bus.subscribe("price > 10", name="told")
        await bus.publish(trade("ACME", 20))
        await told.change("type IS vestnik.subscription AND OVERLAPS(filter, 'price < 1')")
        await told.change("type IS vestnik.subscription")
        await early.subscribe("price = 7", name="last")
        found = [await told.get(10) for _ in range(4)]
        assert [n.event.data.get("name", "") for n in found] == ["", "cheap", "dear", "last"]
        assert [(n.replayed, n.number) for n in found] == [(False, 1), (True, 2), (True, 3), (False, 4)]


async def test_who_subscribes_to_other_events_as_well_gets_none_of_their_past() -> None:
    async with LocalBus() as bus, bus.client("early") as early:
        await early.subscribe("price > 10")
        await bus.publish(trade("ACME", 1))
        told = await bus.subscribe("type IS vestnik.subscription OR type IS market")
        await bus.publish(trade("ACME", 2))
        found = [await told.get(10) for _ in range(3)]
        about = [n.event.data["client"] for n in found if n.event.type == "vestnik.subscription.made"]
        assert sorted(about) == sorted(["early", bus.name])
        assert [n.event.data["price"] for n in found if n.event.type == "market.trade"] == [2]


async def test_a_filter_that_is_too_long_as_text_is_told_in_plain_data() -> None:
    long = reduce(or_, [Filter.parse(f"a{n} = {n} AND b{n} > {n}") for n in range(40)])
    async with LocalBus() as bus, bus.client() as c, await bus.wanted("a39 = 39") as wanted:
        await c.subscribe(long)
        await wanted.wait(timeout=10)
        assert [interest.filter for interest in wanted.interests] == [long]


# --- views ---


async def test_a_view_holds_the_last_of_each_key_and_its_changes(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as p, client(b) as c:
        await p.publish_many([trade("A", 1), trade("B", 2), trade("A", 3), Event("market.trade", {"price": 9})])
        view = await c.view("type IS market", key="symbol")
        assert prices(view) == {"A": 3, "B": 2} and len(view) == 2
        await p.publish_many([trade("A", 4), trade("C", 5)])
        changes = [await anext(view) for _ in range(2)]
        found = [(c.key, c.event and c.event.data["price"], c.before and c.before.data["price"]) for c in changes]
        assert found == [("A", 4, 3), ("C", 5, None)]
        await view.close()
        assert [change async for change in view] == [] and view["C"].data["price"] == 5


async def test_what_expires_goes_from_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LocalBus() as bus, await bus.view("type IS market", key="symbol") as view:
        hour = int((time.time() + 3600) * 1_000_000)
        await bus.publish_many([trade("A", 1), trade("B", 2, expires=hour), trade("C", 3, expires=1)])
        assert [(await anext(view)).key for _ in range(2)] == ["A", "B"]
        monkeypatch.setattr(views, "time", SimpleNamespace(time=lambda: hour / 1_000_000))
        await bus.publish(trade("D", 4, expires=2 * hour))
        changes = {change.key: change.event for change in [await anext(view), await anext(view)]}
        assert changes["B"] is None and prices(view) == {"A": 1, "D": 4}


async def test_what_was_heard_meanwhile_is_newer_than_what_was_fetched() -> None:
    class Slow:
        """A client whose answers come late."""

        async def subscribe(self, wanted: Filter, callback: Any, queue: int) -> Any:
            self.callback = callback
            return SimpleNamespace(when_missed=None)

        async def fetch(self, wanted: Filter, limit: int | None, latest_by: str) -> list[Event]:
            for seq in (3, 4):
                self.callback(Notification(trade("A", seq, stream=("b", "feed"), seq=seq), seq, ()))
            self.callback(Notification(trade("B", 4, stream=("c", "feed"), seq=4, time=7), 3, ()))
            other = trade("B", 3, stream=("b", "feed"), seq=9, time=6)
            return [trade("A", 3, stream=("b", "feed"), seq=3), other]

    view = View(Slow(), Filter.all(), "symbol")  # type: ignore[arg-type]
    await view.start()
    assert prices(view) == {"A": 4, "B": 4}


async def test_a_view_by_what_is_no_path() -> None:
    async with LocalBus() as bus:
        with pytest.raises(WrongValue, match="not 'a b'"):
            await bus.view("TRUE", key="a b")


# --- wanted ---


async def test_a_producer_is_told_whether_anybody_wants_it() -> None:
    async with LocalBus() as bus, bus.client() as c:
        other = await c.subscribe("type IS weather")
        async with await bus.wanted("type IS market AND price > 10") as wanted:
            assert not wanted and await anext(wanted) is False
            subscription = await c.subscribe("price < 20")
            assert await anext(wanted) is True
            (interest,) = wanted.interests
            assert (interest.client, str(interest.filter)) == (c.name, "price < 20")
            await subscription.change("price < 5")
            await wanted.wait(False, timeout=10)
            await subscription.change("price = 15")
            await wanted.wait(timeout=10)
            await subscription.unsubscribe()
            while await anext(wanted):
                pass
            with pytest.raises(TimeoutError):
                await wanted.wait(timeout=0.01)
        assert [value async for value in wanted] == []
        with pytest.raises(Disconnected):
            await wanted.wait()
        await other.unsubscribe()


def told(verb: str, name: str, seq: int) -> Event:
    data = {"filter": "TRUE", "client": "c", "name": name, "broker": "x", "replay": None}
    return Event(f"vestnik.subscription.{verb}", data, source="x", stream=("x", "x"), seq=seq)


class Late:
    """A client that hears something before the first answer to what it asks comes."""

    def __init__(self, heard: list[Event], *answers: list[Event]) -> None:
        self._heard = heard
        self._answers = list(answers)

    async def subscribe(self, wanted: str, callback: Any, queue: int) -> Any:
        self._callback = callback
        return SimpleNamespace(when_missed=None)

    def hear(self, *events: Event) -> None:
        for event in events:
            self._callback(Notification(event, 1, ()))

    async def fetch(self, wanted: str, limit: int | None) -> list[Event]:
        self.hear(*self._heard)
        self._heard = []
        return self._answers.pop(0)

    def give_up(self, subscription: Any) -> None: ...


async def test_the_last_word_about_a_subscription_counts() -> None:
    bus = Late([told("made", "s", 3), told("ended", "s", 4)], [told("made", "s", 3), told("made", "t", 2)])
    interests = Interests(bus, Filter.all(), lambda: None)  # type: ignore[arg-type]
    await interests.start()
    assert [interest.name for interest in interests.all] == ["t"]
    bus.hear(told("ended", "t", 6))
    assert interests.all == [] == list(interests._known)


async def test_what_a_broker_said_before_it_left_is_asked_for_again() -> None:
    bus = Late([Event("vestnik.broker.left", {"broker": "x"})], [told("made", "s", 3)], [])
    interests = Interests(bus, Filter.all(), lambda: None)  # type: ignore[arg-type]
    await interests.start()
    await until(lambda: interests.all == [])
    await interests.stop()


# --- requests ---


async def test_requests_are_replied_to() -> None:
    async with LocalBus() as bus, bus.client() as server:

        async def answer(n: Any) -> None:
            if n.event.data["symbol"] != "?":
                await server.reply(n, {"price": len(n.event.data["symbol"])})

        await server.subscribe("type = 'price.of'", answer)
        asked = [bus.request(Event("price.of", {"symbol": "A" * n})) for n in range(1, 5)]
        replies = await asyncio.gather(*asked)
        assert [reply.data["price"] for reply in replies] == [1, 2, 3, 4]
        assert all(reply.type == "price.of.reply" and reply.causes for reply in replies)
        with pytest.raises(TimeoutError, match=r"price\.of"):
            await bus.request(Event("price.of", {"symbol": "?"}), timeout=0.05)
        with pytest.raises(ValueError, match="publishes such events"):
            await bus.reply(Event("price.of"))


async def test_many_may_reply() -> None:
    async with LocalBus() as bus, bus.client() as one, bus.client() as two:
        for name, server in (("one", one), ("two", two)):

            async def answer(n: Any, name: str = name, server: ServiceBus = server) -> None:
                await server.reply(n, Event("here", {"name": name}))

            await server.subscribe("type = 'who'", answer)
        replies = await bus.request_all(Event("who"), timeout=10, limit=2)
        assert sorted(reply.data["name"] for reply in replies) == ["one", "two"]
        assert len(await bus.request_all(Event("who"), timeout=0.2)) == 2


# --- factories ---


class Log:
    """What producers did, and one that publishes and waits."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.past: list[float] = []

    async def produce(self, producer: Producer) -> None:
        self.lines.append(f"start {producer.key}")
        self.past = [event.data["price"] for event in producer.past]
        price = self.past[-1] + 1 if self.past else 1
        try:
            await producer.publish(trade(producer.key or "all", price))
            await asyncio.Event().wait()
        finally:
            self.lines.append(f"stop {producer.key}")


async def test_a_factory_has_a_producer_for_each_key_that_is_wanted(tmp_path: Path) -> None:
    log = Log()
    async with broker(data=tmp_path) as b, client(b) as f, client(b) as c:
        early = await c.subscribe("symbol = 'A'")
        factory = f.factory("type IS market", key="symbol", linger=0.05)(log.produce)
        assert (await early.get(10)).event.data["price"] == 1
        late = await c.subscribe("type = 'market.trade' AND symbol IN ('A', 'B')")
        assert (await late.get(10)).event.data["symbol"] == "B"
        assert factory.producers.keys() == {"A", "B"}
        await early.unsubscribe()
        await late.change("symbol = 'B'")
        await until(lambda: log.lines == ["start A", "start B", "stop A"])
        again = await c.subscribe("symbol = 'A' AND price > 1")
        assert (await again.get(10)).event.data["price"] == 2, "it is warm"
        await c.subscribe("type IS weather")
        everything = await c.subscribe("type IS market")
        assert (await everything.get(10)).event.data["symbol"] == "all"
        assert factory.producers.keys() == {None}
        assert sorted(log.lines[-3:]) == ["start None", "stop A", "stop B"]
        assert log.lines[-1] == "start None"
        await everything.unsubscribe()
        await until(lambda: sorted(log.lines[-2:]) == ["start A", "start B"])
        await factory.close()
        assert factory.producers == {} and sorted(log.lines[-2:]) == ["stop A", "stop B"]


async def test_a_factory_may_be_for_single_keys_only() -> None:
    async with LocalBus() as bus, bus.client() as c:

        @bus.factory("type IS market", key="symbol", linger=0)
        async def produce(producer: Producer) -> None:
            while producer.key is not None:
                await producer.publish(trade(producer.key, 1))
                await asyncio.sleep(0.01)

        everything = await c.subscribe("TRUE")
        await c.subscribe("symbol = 'A'")
        assert (await everything.get(10)).event.data["symbol"] == "A"
        assert produce.producers.keys() == {"A"}


async def test_factories_are_chained() -> None:
    """What a producer subscribes to starts another; when nobody wants the end, all stop."""
    log: list[str] = []

    async with LocalBus() as bus, bus.client() as c:

        @bus.factory("type IS raw", linger=0)
        async def raw(producer: Producer) -> None:
            log.append("raw")
            number = 0
            while True:
                number += 1
                await producer.publish(Event("raw", {"number": number}))
                await asyncio.sleep(0.01)

        @bus.factory("type IS even OR type IS raw.note", linger=0)
        async def even(producer: Producer) -> None:
            log.append("even")
            async for n in await producer.subscribe("type IS raw"):
                if n.event.type == "raw" and n.event.data["number"] % 2 == 0:
                    await producer.publish(Event("even", dict(n.event.data)))

        await raw.ready()
        await even.ready()
        assert log == []
        subscription = await c.subscribe("type = 'even'")
        assert (await subscription.get(10)).event.data["number"] % 2 == 0
        assert log == ["even", "raw"]
        await subscription.unsubscribe()
        await until(lambda: not raw.producers and not even.producers)


async def test_a_factory_may_be_made_before_there_is_a_connection() -> None:
    async with broker() as b:
        bus = client(b)
        log = Log()
        bus.factory("type IS market", linger=0)(log.produce)
        async with bus, client(b) as c:
            subscription = await c.subscribe("type IS market")
            assert (await subscription.get(10)).event.data["symbol"] == "all"
        assert log.lines == ["start None", "stop None"]


async def test_a_producer_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with LocalBus() as bus:

        @bus.factory("type IS market", linger=0)
        async def broken(producer: Producer) -> None:
            raise OSError("no feed")

        await bus.subscribe("type IS market")
        await until(lambda: "no feed" in caplog.text)
        with pytest.raises(ValueError, match="linger"):
            bus.factory("TRUE", linger=-1)(Log().produce)


async def test_who_waits_for_replies_makes_nothing_wanted() -> None:
    async with broker() as b, client(b) as asker, client(b) as c:
        told = await c.subscribe("type IS vestnik.subscription")
        with pytest.raises(TimeoutError):
            await asker.request(Event("nobody.answers"), timeout=0.1)
        assert (await c.wanted("type IS market.trade")).interests == []
        await asker.subscribe("type IS market.trade", name="trades")
        assert (await told.get(10)).event.data["name"] == "trades", "nothing else was announced"
