"""Brokers inside programs that join another: they learn how it routes, and say why they cannot."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from network.worlds import broker, client, quote, taken, until
from services.routings import ROUTINGS, terms
from vestnik import History, LocalBus
from vestnik.errors import NoBroker, TurnedAway, UnknownStrategy, Unreachable
from vestnik.model.filters import Filter
from vestnik.server.process import Broker
from vestnik.transport.addresses import read_address
from vestnik.wire.frames import VERSION, Reader, frame
from vestnik.wire.messages import Goodbye, Hello, Message, Welcome

both = pytest.mark.parametrize("make", [LocalBus, partial(History, "TRUE")], ids=["LocalBus", "History"])
Make = Any  # of an embedded broker, with `join` and what else both have


def prices(history: History) -> list[float]:
    return [event.data["price"] for event in history.events]


async def enter(made: AbstractAsyncContextManager[Any]) -> None:
    async with asyncio.timeout(20), made:
        pass


# --- how the other routes ---


@pytest.mark.parametrize("routing", ROUTINGS)
async def test_events_cross_whatever_the_routing_is(routing: str) -> None:
    """From a broker to one in a program and back, and to histories of both."""
    async with (
        broker(**terms(routing)) as b,
        LocalBus(join=b.address) as near,
        History("price > 0", join=b.address) as one,
        History("price > 0", join=near) as two,
        client(b) as far,
    ):
        for bus in (near, far):
            await bus.advertise("price > 0")
        here, there = await near.subscribe("price > 10", settled=True), await far.subscribe("price < 10", settled=True)
        await far.publish(quote(50))
        assert await taken(here, 1) == [50]
        await near.publish(quote(5))
        assert await taken(there, 1) == [5]
        for history in (one, two):
            await until(lambda history=history: sorted(prices(history)) == [5, 50])  # type: ignore[misc]
        assert len(await far.fetch("price > 0")) == 2


async def test_a_bus_without_a_neighbour_routes_as_it_is_told() -> None:
    async with LocalBus(routing="covering", advertisements=True) as bus:
        assert bus._embedded.broker.settings.way_of_routing == "covering with advertisements"
    async with LocalBus() as bus:
        assert bus._embedded.broker.settings.way_of_routing == "merging"


async def test_who_asks_how_a_broker_routes_is_told_and_not_let_in() -> None:
    async with broker(routing="covering", lease=30.0) as b:
        reader, writer = await asyncio.open_connection(*read_address(b.address))
        messages = Reader()

        async def answer(hello: Hello) -> Message:
            writer.write(frame(hello))
            async with asyncio.timeout(20):
                return next(iter(messages.read(await reader.read(1000))))

        welcome = await answer(Hello(VERSION, "x", is_broker=True))
        assert isinstance(welcome, Welcome) and (welcome.routing, welcome.lease) == ("covering", 30.0)
        assert b.host.guests == [] and b.host.core.topology.brokers() == {"b"}
        assert isinstance(await answer(Hello(VERSION, "x", is_broker=True, routing="covering")), Welcome)
        assert [guest.name for guest in b.host.guests] == ["x"], "it says later that it routes so, too"
        writer.close()


async def test_entries_of_an_embedded_broker_are_renewed_as_often_as_its_neighbour_needs() -> None:
    """A broker with a lease of its own, 60 seconds, would renew every 20 seconds."""
    async with broker(lease=1.0, sweep=0.2) as b, client(b) as p, History("price > 0", join=b.address) as history:
        table = b.host.core.router.subscriptions
        await until(lambda: len(table) == 1)

        def believed_until() -> float:
            return max([expiry for _, held in table for expiry in held.values()], default=0.0)

        first = believed_until()
        await until(lambda: believed_until() > first + b.settings.lease)
        await p.publish(quote(1))
        await until(lambda: prices(history) == [1])


# --- a broker that is not there, or becomes another ---


@both
async def test_a_broker_that_is_not_up_yet_is_waited_for(make: Make) -> None:
    async with broker() as b:
        where = b.address
    entering = asyncio.create_task(make(join=where, timeout=None).__aenter__())
    async with broker(listen=read_address(where), routing="covering") as b:
        made = await asyncio.wait_for(entering, 20)
        await until(lambda: len(b.host.guests) == 1)
        await made.__aexit__()


async def test_a_broker_that_comes_back_with_another_routing_is_followed() -> None:
    """A history keeps its events, and subscriptions go on."""
    async with broker("first") as b:
        where = b.address
        async with LocalBus(join=where) as near, History("price > 0", join=where) as history:
            subscription = await near.subscribe("price > 0", settled=True)
            async with client(b) as p:
                await p.publish(quote(1))
            assert await taken(subscription, 1) == [1]
            await until(lambda: prices(history) == [1])
            await b.__aexit__()
            other = broker("second", listen=read_address(where), routing="covering", advertisements=True)
            async with other as again, client(again) as p:
                await p.advertise("price > 0")
                await until(lambda: again.host.core.topology.brokers() >= {"second", *_names(near, history)})
                await until(lambda: _wanted_by(again, near) and _wanted_by(again, history))
                await p.publish(quote(2))
                assert await taken(subscription, 1) == [2]
                await until(lambda: prices(history) == [1, 2])


def _names(*made: LocalBus | History) -> set[str]:
    return {one._embedded.name for one in made}


def _wanted_by(b: Broker, made: LocalBus | History) -> bool:
    """Whether a broker knows of a subscription to prices at an embedded one."""
    entries = b.host.core.router.subscriptions.of(made._embedded.name)
    return any(entry.filter.covers(Filter.parse("price > 0")) for entry in entries)


async def test_an_earlier_life_that_is_taken_for_alive_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.presence.ANSWER_WITHIN", 0.05)
    async with broker() as b:
        _, writer = await asyncio.open_connection(*read_address(b.address))
        writer.write(frame(Hello(VERSION, "h", is_broker=True, routing="merging", brokers=("h",), life=5)))
        await until(lambda: [guest.name for guest in b.host.guests] == ["h"])
        async with asyncio.timeout(20), History("TRUE", join=b.address, name="h", timeout=None):
            assert [guest.life for guest in b.host.guests] != [5]
        writer.close()


# --- refusals: there is no timeout, so a reason that is not raised at once is never raised ---


@both
async def test_a_routing_that_was_given_and_is_another(make: Make) -> None:
    async with broker(routing="covering", advertisements=True) as b:
        reason = "it routes by covering with advertisements, not by merging; leave out routing and advertisements"
        with pytest.raises(TurnedAway, match=reason) as told:
            await enter(make(join=b.address, routing="merging", timeout=None))
        assert (told.value.code, told.value.address) == ("routing", b.address)
        await enter(make(join=b.address, routing="covering", advertisements=True, timeout=None))


async def test_a_routing_that_was_given_and_is_another_inside_a_process() -> None:
    async with LocalBus(advertisements=True) as bus:
        with pytest.raises(TurnedAway, match="routes by merging with advertisements, not by covering"):
            await enter(History("TRUE", join=bus, routing="covering", timeout=None))
    with pytest.raises(Unreachable, match="is not running"):
        await enter(History("TRUE", join=bus, timeout=0.1))


async def test_names_that_are_taken() -> None:
    async with broker("b") as b:
        with pytest.raises(TurnedAway, match="this broker is called b; choose a name of your own"):
            await enter(History("TRUE", join=b.address, name="b", timeout=None))
        with pytest.raises(TurnedAway, match="this broker is called b; choose a name of your own"):
            await enter(LocalBus(join=b.address, broker="b", timeout=None))


async def answering(answer: bytes) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


ANSWERS = {
    "another version": (frame(Goodbye("version", "this broker speaks version 9")), TurnedAway, "speaks version 9"),
    "another version of Welcome": (frame(Welcome(9, "b", False, 0, "merging", 60.0)), TurnedAway, "version 9"),
    "a strategy of its own": (frame(Welcome(VERSION, "b", False, 0, "mine", 60.0)), UnknownStrategy, "'mine'"),
    "the web": (b"HTTP/1.1 400 Bad Request\r\n\r\n", NoBroker, "HTTP is spoken there"),
}


@both
@pytest.mark.parametrize("answer", ANSWERS)
async def test_answers_that_are_final(make: Make, answer: str) -> None:
    said, error, reason = ANSWERS[answer]
    async with await answering(said) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(error, match=reason):
            await enter(make(join=f"{host}:{port}", timeout=None))


@both
async def test_no_broker_in_time(make: Make) -> None:
    async with broker() as b:
        where = b.address
    with pytest.raises(Unreachable, match=f"no broker at {where}: .*(refused|failed)"):
        await enter(make(join=where, timeout=0.1))
    async with await answering(frame(Goodbye("busy", "there are 7 connections"))) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(TurnedAway, match="there are 7 connections"):
            await enter(make(join=f"{host}:{port}", timeout=0.2))
