"""`vestnik why`: every cause, with real brokers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from network.test_durable import process
from network.worlds import ANYWHERE, broker, client, quote, taken, until
from vestnik import Replay
from vestnik.broker.effects import Tick
from vestnik.client import bus
from vestnik.client.bus import Bus
from vestnik.errors import NotAccepted
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.services.inquest import inquire
from vestnik.services.views import Story
from vestnik.transport.addresses import read_address

VESTNIK = Path(sys.executable).with_name("vestnik")


@asynccontextmanager
async def line(**settings: Any) -> AsyncIterator[tuple[Broker, Broker, Broker]]:
    """Three brokers in a row, who know of each other."""
    async with (
        broker("b1", **settings) as b1,
        broker("b2", (b1,), **settings) as b2,
        broker("b3", (b2,), **settings) as b3,
    ):
        await until(lambda: all(b.host.core.topology.brokers() == {"b1", "b2", "b3"} for b in (b1, b2, b3)))
        yield b1, b2, b3


def entries(b: Broker) -> int:
    return len(b.host.core.router.subscriptions)


async def why(bus: Bus, id: str, client: str | None = "c", **options: Any) -> Story:
    return await inquire(bus, id, client=client, **options)


async def test_it_was_delivered() -> None:
    async with line() as (b1, _, b3), client(b1, "p") as p, client(b3, "c") as c:
        subscription = await c.subscribe("price > 1", name="s")
        await until(lambda: entries(b1) == 1)
        await p.publish(quote(7, id="e", source="feed"))
        assert await taken(subscription, 1) == [7]
        for bus in (p, c):
            story = await why(bus, "e")
            assert story.verdict == "delivered" and story.is_delivered
            assert story.said.startswith(
                "it was delivered as the broker's number 1 of subscription s: b3 sent it at 20"
            )
        journey = await why(p, "e", None)
        assert (journey.verdict, journey.said) == ("journey", "it passed b1, b2, b3, and was sent to c")
        said = [step.said for step in journey.steps]
        assert said == [
            "took it from p; sent it on to b2",
            "got it from b1; sent it on to b3",
            "got it from b2; sent it to client c as the broker's number 1 of subscription s",
        ]


async def test_a_constraint_failed() -> None:
    async with line() as (b1, _, b3), client(b1, "p") as p, client(b3, "c") as c:
        await c.subscribe("type IS market AND price > 10", name="s")
        await c.subscribe("symbol = 'ACME' AND price > 100", name="t")
        await until(lambda: entries(b1) == 2)
        await p.publish(quote(7, id="e"))
        story = await why(p, "e")
        assert story.verdict == "not-matching" and not story.is_delivered
        assert story.said == (
            "none of its 2 subscriptions matches; nearest, subscription s (price > 10 AND type IS market) does not "
            "match: price > 10 (saw 7)"
        )
        journey = await why(p, "e", None)
        assert journey.said == "it passed b1, and no client there wanted it"
        assert journey.steps[-1].said.startswith("not sent to b2: none of its 2 entries matches; the nearest, ")


async def test_the_subscription_came_later() -> None:
    async with broker("b1") as b1, client(b1, "p") as p, client(b1, "c") as c:
        await p.publish(quote(7, id="e"))
        await c.subscribe("price > 1", name="s")
        story = await why(p, "e")
        assert story.verdict == "too-late" and "with a replay it would have come" in story.said


async def test_the_subscription_had_ended() -> None:
    async with broker("b1") as b1, client(b1, "p") as p, client(b1, "c") as c:
        subscription = await c.subscribe("price > 1", name="s")
        await subscription.unsubscribe()
        await p.publish(quote(7, id="e"))
        story = await why(p, "e")
        assert story.verdict == "ended" and story.said.endswith("before the event: unsubscribed")


async def test_the_lease_had_ended() -> None:
    async with broker("b1", lease=0.2, sweep=0.05) as b1, client(b1, "p") as p:
        gone = await client(b1, "c").__aenter__()
        await gone.subscribe("price > 1", name="s")
        await gone.close()
        await until(lambda: "c" not in b1.host.core.clients)
        await p.publish(quote(7, id="e"))
        story = await why(p, "e")
        assert story.verdict == "ended" and "its lease ended: it was not renewed" in story.said
        assert any("client c disconnected" in step.said for step in story.steps)


async def test_the_client_is_away_and_it_is_kept() -> None:
    async with broker("b1") as b1, client(b1, "p") as p:
        gone = await client(b1, "c").__aenter__()
        await gone.subscribe("price > 1", name="s")
        await gone.close()
        await until(lambda: not b1.host.core.clients["c"].connected)
        await p.publish(quote(7, id="e"))
        story = await why(p, "e")
        assert story.verdict == "kept" and story.said.startswith(f"it waits in the log {b1.host.core.origin}: ")
        assert story.said.endswith(", and goes on when c comes back to b1")


async def test_the_client_does_not_take_it() -> None:
    async with broker("b1") as b1, client(b1, "p") as p, client(b1, "c") as c:
        await c.subscribe("price > 1", name="s")
        b1.host.full(b1.host._ends["c"])
        await p.publish(quote(7, id="e"))
        story = await why(p, "e")
        assert story.verdict == "kept" and "goes on when c takes what it was sent" in story.said


async def test_it_was_refused_and_nobody_had_advertised() -> None:
    async with line(advertisements=True) as (b1, _, b3), client(b1, "p") as p, client(b3, "c") as c:
        await c.subscribe("price > 1", name="s")
        with pytest.raises(NotAccepted):
            await p.publish(quote(7, id="e"))
        story = await why(c, "e")
        assert story.verdict == "refused"
        assert story.said == "b1 refused it to p: it is outside of what this client advertised"


async def test_the_advertisement_did_not_come_where_the_subscription_is() -> None:
    async with line(advertisements=True) as (b1, b2, b3), client(b1, "p") as p, client(b3, "c") as c:
        await c.subscribe("price > 1", name="s")
        await p.advertise("price > 0", name="a")
        await until(lambda: entries(b1) == 1)
        for b in (b3, b2):  # as if it had been lost on its way, and the subscription taken back
            for entry, _ in list(b.host.core.router.advertisements):  # type: ignore[attr-defined]
                b.host.core.router._withdraw(entry, "b2" if b is b3 else "b1")  # type: ignore[attr-defined]
            b.host.engine.do(Tick())
        b3.host.core.router.subscriptions.told("b2").clear()
        b2.host.core.router.subscriptions.told("b1").clear()
        await until(lambda: entries(b1) == 0)
        await p.publish(quote(7, id="e"))
        story = await why(c, "e")
        assert story.verdict == "not-advertised"
        assert story.said == (
            "b3 passes subscriptions to b2 only for what is advertised there, and no advertisement from there matches "
            "the event: advertise it first"
        )


async def test_it_had_expired() -> None:
    async with line() as (b1, _, b3), client(b1, "p") as p, client(b3, "c") as c:
        await c.subscribe("price > 1", name="s")
        await until(lambda: entries(b1) == 1)
        await p.publish(quote(7, id="e", expires=1))
        story = await why(c, "e")
        assert story.verdict == "expired" and story.said.startswith("it had expired when it came to b1, at 20")
        told = await inquire(c, "e")
        assert (told.verdict, told.said, told.is_delivered) == ("expired", story.said, False)


async def test_it_waits_for_its_time() -> None:
    async with broker("b1") as b1, client(b1, "p") as p, client(b1, "c") as c:
        await c.subscribe("price > 1", name="s")
        await p.publish(quote(7, id="e", not_before=int((time.time() + 3600) * 1e6)))
        story = await why(c, "e")
        assert story.verdict == "held" and story.said.endswith("its not_before")


async def test_the_link_was_down_and_it_came_by_catching_up() -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, client(b1, "p") as p, client(b2, "c") as c:
        subscription = await c.subscribe("price > 1", name="s")
        await until(lambda: entries(b1) == 1)
        await c.inspect("link.remove", address=b1.address)
        await until(lambda: entries(b1) == 0)
        await p.publish(quote(7, id="e"))
        apart = await why(p, "e")
        assert apart.verdict == "unknown-client" and "b1 lost its link to b2 at 20" in apart.said
        await c.inspect("link.add", address=b1.address)
        assert await taken(subscription, 1) == [7]
        story = await why(p, "e")
        assert story.verdict == "delivered"
        assert [(step.broker, step.said) for step in story.steps] == [
            ("b2", "client c connected"),
            ("b1", "took it from p; nobody there or beyond was sent it"),
            ("b2", "sent it to client c as the broker's number 1 of subscription s"),
        ]


async def test_it_came_later_and_is_done_with() -> None:
    async with broker("b1") as b1, broker("b3") as b3, client(b1, "p") as p, client(b3, "c") as c:
        middle = await broker("b2", (b1, b3)).__aenter__()
        await until(lambda: len(b3.host.core.topology.brokers()) == 3)
        subscription = await c.subscribe("price > 1", name="s", settled=True)
        await middle.__aexit__()
        await until(lambda: len(b1.host.core.topology.brokers()) == 1)
        await p.publish(quote(7, id="e"))
        async with broker("b2", (b1, b3)):
            assert await taken(subscription, 1) == [7]
            assert subscription.try_get() is None
            await until(lambda: not b3.host.core.clients["c"].subscriptions["s"].reader.in_flight)
            story = await why(p, "e")
            assert story.verdict == "delivered" and "of subscription s" in story.said


async def test_it_was_lost_on_the_link() -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, client(b1, "p") as p, client(b2, "c") as c:
        await c.subscribe("price > 1", name="s")
        await until(lambda: entries(b1) == 1)
        end = b1.host._ends["b2"]
        end.send = lambda message: None  # type: ignore[method-assign]
        await p.publish(quote(7, id="e"))
        del end.send
        assert (await why(p, "e")).verdict == "on-its-way"


async def test_a_broker_was_started_after_it() -> None:
    async with broker("b1") as b1, client(b1, "p") as p:
        await p.publish(quote(7, id="e"))
        async with broker("b2", (b1,)) as b2, client(b2, "c") as c:
            await c.subscribe("price > 1", name="s")
            await until(lambda: entries(b1) == 1)
            assert (await why(p, "e")).verdict == "too-late"


async def test_nobody_knows_it() -> None:
    async with line() as (b1, _, b3), client(b1, "p") as p, client(b3, "c") as c:
        await c.subscribe("price > 1", name="s")
        story = await why(p, "e")
        assert story.verdict == "unknown-event" and "b1 since 20" in story.said
        await p.publish(quote(0, id="e"))
        stranger = await why(p, "e", "nobody")
        assert stranger.verdict == "unknown-client"
        assert (await why(p, "e", "p")).verdict == "no-subscription"


async def test_two_sources_have_it() -> None:
    async with broker("b1") as b1, client(b1, "p") as p:
        await p.publish_many([quote(1, id="e", source="one"), quote(2, id="e", source="other")])
        with pytest.raises(NotAccepted, match="one, other have an event of that id"):
            await why(p, "e", None)
        with pytest.raises(NotAccepted, match="one, other have an event of that id"):
            await why(p, "e", None, source="nobody")
        story = await why(p, "e", None, source="other")
        assert story.event is not None and story.event["data"]["price"] == 2


async def test_what_is_stored_is_found_after_a_restart(tmp_path: Path) -> None:
    async with broker("b1", data=tmp_path) as b1, client(b1, "p") as p:
        await p.publish(quote(7, id="e"))
    async with broker("b1", data=tmp_path) as b1, client(b1, "c") as c:
        await c.subscribe("price > 10", name="s")
        story = await why(c, "e")
        assert story.verdict == "not-matching" and "price > 10 (saw 7)" in story.said
        assert story.steps[0].said == "it was taken and stored; what became of it then is not remembered"


async def test_who_may_have_got_it_before_a_restart_was_not_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "LEASE", 0.3)
    async with AsyncExitStack() as stack:
        b1 = await Broker(Settings(name="b1", listen=ANYWHERE, data=tmp_path)).__aenter__()
        c = await stack.enter_async_context(client(b1, "c"))
        await c.subscribe("price > 1", name="s")
        log = str(b1.host.core.origin)
        before = c._session.seen("s")[log]
        await c.publish(quote(7, id="e"))
        await until(lambda: c._session.seen("s")[log] > before)
        assert (await why(c, "e")).verdict == "delivered"
        await b1.__aexit__()
        b1 = await stack.enter_async_context(broker("b1", listen=read_address(b1.address), data=tmp_path))
        await until(lambda: entries(b1) == 1)
        for whom in ("c", None):
            story = await why(c, "e", whom)
            assert story.verdict == "restarted" and "what it sent before is not remembered" in story.said


def test_the_command() -> None:
    with process("--listen", "127.0.0.1:0") as (_, url):

        def vestnik(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [VESTNIK, *arguments, "--url", url], capture_output=True, encoding="utf-8", timeout=60, check=False
            )

        assert vestnik("pub", "quote", "price=5", "--source", "feed", "--id", "e1").returncode == 0
        done = vestnik("why", "e1")
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert lines[:2] == [
            "journey: it passed b, and no client there wanted it",
            "  event e1 from feed, quote",
        ]
        assert lines[2].endswith("nobody there or beyond was sent it")
        found = vestnik("why", "e1", "--client", "c", "--json")
        assert found.returncode == 1 and json.loads(found.stdout)["verdict"] == "unknown-client"
        assert vestnik("why", "none").returncode == 1


async def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.observe.chronicle.EVENTS", 10)
    async with broker("b1") as b1, client(b1, "p") as p:
        for number in range(30):
            await p.publish(quote(number, id=f"e{number}"))
        assert b1.host.chronicle._count <= 10
        assert (await why(p, "e29", None)).verdict == "journey"
        forgotten = await why(p, "e0", None)
        assert forgotten.verdict == "forgotten" and forgotten.said.startswith("it was taken by b1 at 20")


async def test_after_a_restart_reading_an_event_changes_nothing_but_who_got_it(tmp_path: Path) -> None:
    async with broker("b1", data=tmp_path) as b1, client(b1, "p") as p:
        await p.publish(quote(7, id="e"))
    async with broker("b1", data=tmp_path) as b1, client(b1, "c") as c, client(b1, "d") as d:
        await c.subscribe("price > 1", name="s")
        before = {whom: await why(c, "e", whom) for whom in ("c", None)}
        assert (before["c"].verdict, before[None].verdict) == ("too-late", "restarted")
        assert len(await d.fetch("price > 1")) == 1
        assert (await why(c, "e")).said == before["c"].said, "it was read, and taken at the same time as before"
        assert (await why(c, "e", None)).said == before[None].said
        reading = await d.subscribe("price > 1", name="r", replay=Replay(all=True))
        assert await taken(reading, 1) == [7]
        assert (await why(c, "e")).said == before["c"].said
        assert (await why(c, "e", "d")).verdict == "delivered"
        journey = await why(c, "e", None)
        assert journey.verdict == "journey", "it was delivered to somebody"
        assert "was sent to d" in journey.said and "what it sent before is not remembered" in journey.said
        assert "no client there wanted it" not in journey.said


async def test_a_broker_that_took_it_was_restarted_and_others_have_forgotten_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        b1 = await Broker(Settings(name="b1", listen=ANYWHERE, data=tmp_path)).__aenter__()
        b2 = await stack.enter_async_context(broker("b2", (b1,)))
        c = await stack.enter_async_context(client(b2, "c"))
        await until(lambda: len(b2.host.core.topology.brokers()) == 2)
        subscription = await c.subscribe("price > 1", name="s", settled=True)
        async with client(b1, "p") as p:
            await p.publish(quote(7, id="e"))
            assert await taken(subscription, 1) == [7]
            monkeypatch.setattr("vestnik.observe.chronicle.EVENTS", 1)
            await p.publish(quote(8, id="later"))
            assert await taken(subscription, 1) == [8] and subscription.try_get() is None
            await until(lambda: not b2.host.core.clients["c"].subscriptions["s"].reader.in_flight)
        await b1.__aexit__()
        await stack.enter_async_context(broker("b1", listen=read_address(b1.address), data=tmp_path))
        await until(lambda: len(b2.host.core.topology.brokers()) == 2)
        await until(lambda: b2.host.core.recovery.feeds.roster.main[b1.host.core.origin].is_live)
        journey = await why(c, "e", None)
        assert journey.verdict == "restarted" and "b1 was started at 20" in journey.said
        story = await why(c, "e")
        assert story.verdict == "delivered"
        assert "subscription s (price > 1) has come to offset" in story.said
        assert (await why(c, "e", "stranger")).verdict == "unknown-client"


async def test_the_log_had_it_no_more() -> None:
    async with broker("b1") as b1, client(b1, "p") as p, client(b1, "c") as c:
        subscription = await c.subscribe("price > 0", name="s")
        await p.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        b1.host.full(b1.host._ends["c"])
        tail = b1.host.core.recovery.tail
        tail.room = tail._size * 2  # for two events
        await p.publish_many([quote(price, id=f"e{price}") for price in range(2, 7)])
        b1.host.drained(b1.host._ends["c"])
        assert (await subscription.get(10)).event.data["price"] == 5
        story = await why(p, "e3")
        assert story.verdict == "lost" and not story.is_delivered
        assert "subscription s (price > 0) was told of a gap at 20" in story.said and "no data folder" in story.said
        assert (await why(p, "e5")).verdict == "delivered"


async def test_a_source_that_has_no_such_event_is_said_and_who_has_one() -> None:
    async with broker() as b, client(b, "p") as p:
        await p.publish(quote(1, id="e", source="feed"))
        story = await why(p, "e", None, source="nobody")
        said = "no broker within reach knows event e of nobody; there is one of feed"
        assert (story.verdict, story.said, story.event, story.is_delivered) == ("unknown-event", said, None, False)
