"""What a client requests: past events page by page, advertisements that have settled, cursors to start at."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from network.worlds import until
from session.scripted import quote, scripted
from session.test_session import WANTED, requested, results, said, silent
from vestnik.client.sync import SyncBus
from vestnik.errors import WrongType, WrongValue
from vestnik.session.acts import Done, Found, Say
from vestnik.session.agenda import PATIENCE
from vestnik.wire.messages import Accepted, Advertise, Fetch, Fetched, FetchMore, Refused, Subscribe
from vestnik.wire.replays import Replay


def page(*numbers: int, more: bool = False, lost: tuple[str, ...] = (), request: int = 0) -> Fetched:
    return Fetched(request, tuple(map(quote, numbers)), lost, more)


def test_past_events_come_page_by_page() -> None:
    client = silent()
    request, acts = client.fetch(WANTED, Replay(all=True), 0.0)
    assert requested(acts) == [Fetch(WANTED, Replay(all=True))]
    first = page(1, 2, more=True, lost=("b2 cannot be reached",), request=request)
    assert client.handle(first, 1.0) == [Say(FetchMore(request=request))]
    assert said(client.wake(1.0 + PATIENCE)) == [], "a broker that takes its time is not asked again"
    assert client.handle(page(more=True, request=request), 7.0) == [Say(FetchMore(request=request))]
    found = Found(request, tuple(map(quote, (1, 2, 3))), ("b2 cannot be reached",))
    assert client.handle(page(3, request=request), 8.0) == [found]
    assert client.handle(page(4, more=True, request=request), 9.0) == [], "it is answered"


def test_a_fetch_starts_again_on_another_connection() -> None:
    client = silent()
    request, acts = client.fetch(WANTED, Replay(all=True), 0.0)
    client.handle(page(1, more=True, request=request), 1.0)
    assert said(client.resume(2.0)) == said(acts)
    assert client.handle(page(1, 2, request=request), 3.0) == [Found(request, (quote(1), quote(2)))]


def test_nobody_fetches_what_nobody_waits_for() -> None:
    client = silent()
    request, _ = client.fetch(WANTED, Replay(all=True), 0.0)
    client.abandon(request)
    assert client.handle(page(1, more=True, request=request), 1.0) == [] == said(client.resume(2.0))
    request, acts = client.fetch(WANTED, Replay(all=True), 0.0)
    refused = client.handle(Refused(request, "no right"), 1.0)
    assert results(refused) == [Done(said(acts)[0], "no right")]  # type: ignore[arg-type]


async def test_all_pages_are_fetched_however_many() -> None:
    async with scripted() as (bus, broker):
        broker.pages = [page(n, more=n < 500) for n in range(1, 501)]
        assert [event.seq for event in await bus.fetch("TRUE", limit=None)] == list(range(1, 501))
        assert len(broker.of(FetchMore)) == 499


async def test_a_fetch_that_is_cut_begins_again() -> None:
    async with scripted() as (bus, broker):
        broker.pages = [page(1, more=True)]
        fetching = asyncio.ensure_future(bus.fetch("TRUE", limit=None))
        await until(lambda: len(broker.of(FetchMore)) == 1)
        broker.pages = [page(1, more=True), page(2)]
        broker.cut()
        assert [event.seq for event in await fetching] == [1, 2]


async def test_a_fetch_that_is_given_up_asks_for_no_more() -> None:
    async with scripted() as (bus, broker):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await bus.fetch("TRUE")
        broker.say(Fetched(broker.of(Fetch)[0].request, (), more=True))
        await asyncio.sleep(0)
        assert broker.of(FetchMore) == []


def test_an_advertisement_settles_once_and_is_renewed_without() -> None:
    client = silent()
    (first,) = said(client.advertise("a", WANTED, 0.0, lease=30.0, settled=True))
    assert isinstance(first, Advertise) and first.settled
    assert requested(client.resume(1.0)) == [Advertise("a", WANTED, 30.0, settled=True)], "it has not settled"
    (second,) = client._requests
    client.handle(Accepted(second.request, 30.0), 2.0)
    assert requested(client.resume(3.0)) == [Advertise("a", WANTED, 30.0)]


async def test_advertise_returns_when_it_has_settled() -> None:
    async with scripted() as (bus, broker):
        assert await bus.advertise("price > 1", name="a") == "a"
        broker.settles = False
        settling = asyncio.ensure_future(bus.advertise("price > 2", settled=True))
        await until(lambda: len(broker.of(Advertise)) == 2)
        plain, asked = broker.of(Advertise)
        assert (plain.settled, asked.settled) == (False, True) and not settling.done()
        broker.say(Accepted(asked.request, 60.0))
        assert await settling == asked.name


async def test_the_sync_client_advertises_and_waits_too() -> None:
    async with scripted() as (bus, broker):
        sync = SyncBus(lambda: bus)
        sync._opened, sync._loop, sync._thread = bus, asyncio.get_running_loop(), None  # type: ignore[assignment]
        name = await asyncio.to_thread(sync.advertise, "price > 2", settled=True)
        assert [(one.name, one.settled) for one in broker.of(Advertise)] == [(name, True)]


async def test_a_subscription_starts_at_cursors() -> None:
    async with scripted() as (bus, broker):
        await bus.subscribe("TRUE", seen={"b1/1": 0, "east/b2/17": 5})
        assert [message.seen for message in broker.of(Subscribe)] == [(("b1/1", 0), ("east/b2/17", 5))]


@pytest.mark.parametrize(
    ("seen", "error", "said"),
    [
        ({"b1": 17}, WrongValue, "earlier release"),
        ({"/1": 17}, WrongValue, "broker/log, such as 'b1/1'"),
        ({"b1/x": 17}, WrongValue, "broker/log"),
        ({"b1/1": -1}, WrongValue, "from 0 to"),
        ({"b1/1": 1 << 63}, WrongValue, "from 0 to"),
        ({"b1/1": True}, WrongType, "whole number"),
        ({"b1/1": 1.0}, WrongType, "whole number"),
        ({1: 1}, WrongType, "is text"),
        ({}, WrongValue, "1 cursor or more"),
        ("b1/1", WrongType, "a mapping of logs to offsets"),
    ],
)
async def test_cursors_that_cannot_be(seen: Any, error: type[Exception], said: str) -> None:
    async with scripted() as (bus, broker):
        with pytest.raises(error, match=said):
            await bus.subscribe("TRUE", seen=seen)
        assert broker.of(Subscribe) == []
