"""Brokers behind sockets: with each other, and with strangers."""

from __future__ import annotations

import asyncio

import pytest

from network.proxies import HalfOpen
from network.worlds import broker, client, logged, quote, taken, until
from vestnik import Event, Filter
from vestnik.errors import InvalidSetting, TurnedAway, UnknownStrategy
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address, read_address
from vestnik.wire.frames import VERSION, Reader, frame
from vestnik.wire.messages import (
    Accepted,
    Goodbye,
    Hello,
    Message,
    Notify,
    Ping,
    Pong,
    Position,
    Publish,
    Stored,
    Subscribe,
    Took,
    Welcome,
)
from vestnik.wire.origins import Origin, Routed


async def talk(address: str, *data: bytes, wait: bool = True) -> list[Message]:
    """What a broker says to somebody who sends these bytes, until it closes the connection."""
    host, port = read_address(address)
    reader, writer = await asyncio.open_connection(host, port)
    for piece in data:
        writer.write(piece)
        await writer.drain()
    if not wait:
        writer.write_eof()
    async with asyncio.timeout(20):
        said = await reader.read()
    writer.close()
    return list(Reader().read(said))


async def test_events_cross_brokers_to_where_they_are_wanted() -> None:
    async with (
        broker("b1") as b1,
        broker("b2", (b1,)) as b2,
        broker("b3", (b2,)) as b3,
        client(b1) as p,
        client(b3) as c,
    ):
        subscription = await c.subscribe("price > 10")
        await until(lambda: len(b1.host.core.router.subscriptions) == 1)
        await p.publish_many([quote(price) for price in range(20)])
        assert await taken(subscription, 9) == list(range(11, 20))


async def test_a_link_comes_again_when_the_neighbour_does() -> None:
    b1 = await broker("b1").__aenter__()
    listen = read_address(b1.address)
    async with broker("b2", (b1,)) as b2, client(b2) as c:
        subscription = await c.subscribe("price > 0")
        await until(lambda: len(b1.host.core.router.subscriptions) == 1)
        await b1.__aexit__()
        await until(lambda: not b2.host.guests[1:])
        async with broker("b1", listen=listen) as again, client(again) as p:
            await until(lambda: len(again.host.core.router.subscriptions) == 1)
            await p.publish(quote(7))
            assert await taken(subscription, 1) == [7]


async def test_a_client_goes_on_when_its_broker_is_back() -> None:
    first = await broker("b").__aenter__()
    listen = read_address(first.address)
    async with client(first, "c") as c:
        subscription = await c.subscribe("price > 0")
        await c.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        await first.__aexit__()
        await until(lambda: not c.is_connected)
        waiting = asyncio.create_task(c.publish(quote(2)))
        async with broker("b", listen=listen):
            await waiting
            notification = await subscription.get(20)
            assert notification.event.data["price"] == 2 and notification.number == 2
            assert notification.gap is not None and notification.gap.lost is None


async def test_other_ways_of_routing_are_not_joined(caplog: pytest.LogCaptureFixture) -> None:
    async with broker("b1", routing="covering") as b1, broker("b2", (b1,), routing="merging") as b2:
        await until(lambda: bool(logged(caplog, "link.failed")))
        (told,) = logged(caplog, "link.failed")
        assert "that stays so" in told and "routes by covering, not by merging" in told
        assert b1.host.guests == [] == b2.host.guests


async def test_a_join_that_would_close_a_cycle_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, broker("b3", (b2,)) as b3:
        await until(lambda: b1.host.core.topology.brokers() == {"b1", "b2", "b3"} == b3.host.core.topology.brokers())
        async with broker("b4", (b3, b1)) as fourth:
            refusal = "b4 reaches b1 already; leave it out"
            await until(lambda: any(refusal in told for told in logged(caplog, "link.failed")))
            await until(lambda: len(fourth.host.guests) == 1)
            async with client(fourth) as p, client(b1) as c:
                subscription = await c.subscribe("price > 0")
                await until(lambda: len(fourth.host.core.router.subscriptions) == 1)
                await p.publish(quote(1))
                assert await taken(subscription, 1) == [1] and subscription.try_get() is None


async def test_two_brokers_of_one_name_are_not_in_one_network(caplog: pytest.LogCaptureFixture) -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2:
        await until(lambda: b2.host.core.topology.brokers() == {"b1", "b2"})
        async with broker("b1", (b2,)):
            await until(lambda: any("b1 is connected already" in told for told in logged(caplog, "link.failed")))


async def test_a_neighbour_that_lost_its_link_and_connects_again_takes_it_over_at_once() -> None:
    """The other side has not noticed: it would do so when nothing was heard for long."""
    async with broker("b1") as b1, HalfOpen(b1) as way:
        joins = broker("b2", join=())
        joins.settings = Settings(name="b2", listen=joins.settings.listen, join=(read_address(way.address),))
        async with joins as b2, client(b1) as p, client(b2) as c:
            subscription = await c.subscribe("price > 0", settled=True)
            await p.publish(quote(1))
            (before,) = [end for end, guest in b1.host._guests.items() if guest.is_broker]
            await way.cut()
            await p.publish(quote(2))
            assert await taken(subscription, 2) == [1, 2]
            (after,) = [end for end, guest in b1.host._guests.items() if guest.is_broker]
            assert before is not after


def said_by(name: str, life: int, *linked: str) -> bytes:
    return frame(Hello(VERSION, name, is_broker=True, routing="merging", brokers=(name, *linked), life=life))


async def test_only_the_same_life_of_a_neighbour_takes_over_and_only_if_it_knows_of_no_link() -> None:
    async with broker() as b, client(b) as c:
        await c.subscribe("price > 0")
        first = asyncio.create_task(talk(b.address, said_by("x", 5)))
        await until(lambda: "x" in b.host.core.topology.linked())
        for hello in (said_by("x", 6), said_by("x", 0), said_by("x", 5, "b"), frame(Hello(VERSION, "x"))):
            (goodbye,) = await talk(b.address, hello)
            assert isinstance(goodbye, Goodbye) and "x is connected already" in goodbye.reason
        assert not first.done()
        second = asyncio.create_task(talk(b.address, said_by("x", 5)))
        *_, last = await first
        assert last == Goodbye("taken-over", "x has connected again")
        assert "x" in b.host.core.topology.linked() and not second.done()
    *_, last = await second
    assert isinstance(last, Goodbye) and last.code == "shutdown"


async def test_a_neighbour_that_is_not_there_gives_way_to_another_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.presence.ANSWER_WITHIN", 0.05)
    async with broker() as b, broker("there", (b,)) as there:
        silent = asyncio.create_task(talk(b.address, said_by("x", 5)))
        await until(lambda: {"x", "there"} <= b.host.core.topology.linked())
        for name in ("x", "there"):
            await talk(b.address, said_by(name, 6))
        *_, last = await silent
        assert isinstance(last, Goodbye) and last.code == "silence"
        assert [guest.name for guest in b.host.guests] == ["there"] and there.host.guests
        welcome, *_ = await talk(b.address, said_by("x", 6), wait=False)
        assert isinstance(welcome, Welcome)


async def test_a_router_takes_no_clients() -> None:
    async with broker(role="router") as b:
        with pytest.raises(TurnedAway, match="takes no clients"):
            async with client(b):
                pass


STRANGERS = {
    "ping first": (frame(Ping()), "hello"),
    "publish first": (frame(Publish(())), "hello"),
    "another version": (frame(Hello(99, "x")), "version"),
    "no name": (frame(Hello(VERSION, "")), "name"),
    "the broker's name": (frame(Hello(VERSION, "b")), "name"),
    "another routing": (frame(Hello(VERSION, "x", is_broker=True, routing="magic")), "routing"),
    "too large": (b"\xff" * 100, "frame"),
    "garbage": (b"\x00\x00\x00\x05abcde", "frame"),
    "nothing": (b"\x00\x00\x00\x00", "frame"),
    "not for clients": (frame(Hello(VERSION, "x")) + frame(Routed(Origin("x", 1), ())), "role"),
    "garbage later": (frame(Hello(VERSION, "x")) + b"\x00\x00\x00\x01\xc1", "frame"),
}


@pytest.mark.parametrize(("data", "code"), STRANGERS.values(), ids=STRANGERS)
async def test_strangers_are_told_why_they_are_sent_away(data: bytes, code: str) -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0")
        *_, last = await talk(b.address, data)
        assert isinstance(last, Goodbye) and last.code == code
        await until(lambda: len(b.host.guests) == 1)
        await c.publish(quote(1))
        assert await taken(subscription, 1) == [1], "others do not notice"


async def test_who_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.presence.HELLO_WITHIN", 0.05)
    async with broker() as b:
        assert [message.code for message in await talk(b.address) if isinstance(message, Goodbye)] == ["silence"]
        (goodbye,) = await talk(b.address, frame(Hello(VERSION, "x"))[:5])
        assert isinstance(goodbye, Goodbye) and goodbye.code == "silence"


async def test_who_does_not_answer_is_sent_away() -> None:
    async with broker(heartbeat=0.2) as b, client(b, "there"):
        said = await talk(b.address, frame(Hello(VERSION, "dead")))
        assert isinstance(said[-1], Goodbye) and said[-1].code == "silence" and Ping() in said
        await asyncio.sleep(0.5)
        assert [guest.name for guest in b.host.guests] == ["there"]


async def test_a_message_may_take_longer_than_the_heartbeats_to_arrive() -> None:
    large = frame(Publish((quote(1).replace(data={"x": "x" * 10_000}),), request=1))
    async with broker(heartbeat=0.1) as b:
        reader, writer = await asyncio.open_connection(*read_address(b.address))
        writer.write(frame(Hello(VERSION, "slow")))
        for start in range(0, len(large), 1_000):
            writer.write(large[start : start + 1_000])
            await asyncio.sleep(0.05)
        said, received = list[Message](), Reader(None)
        while not any(isinstance(one, Stored | Goodbye) for one in said):
            async with asyncio.timeout(20):
                said += received.read(await reader.read(65_536))
        assert Stored(1) in said, said
        writer.close()


async def test_half_a_message_and_then_nothing_is_no_harm() -> None:
    async with broker() as b:
        hello = frame(Hello(VERSION, "x"))
        (welcome,) = await talk(b.address, hello, frame(Publish((quote(1),)))[:20], wait=False)
        assert welcome == Welcome(VERSION, "b")
        await until(lambda: b.host.guests == [] and b.host.core.clients == {})


async def test_pings_are_answered() -> None:
    async with broker() as b:
        said = await talk(b.address, frame(Hello(VERSION, "x")) + frame(Ping()), wait=False)
        assert said == [Welcome(VERSION, "b"), Pong()]


async def test_an_event_that_is_none_is_refused_alone() -> None:
    async with broker() as b:
        good = Event("t", {"x": 1}, source="s", id="good")
        message = frame(Publish((good,), request=1)).replace(b"\xa4good", b"\xa4\xff\xff\xff\xff")
        said = await talk(b.address, frame(Hello(VERSION, "x")) + message, wait=False)
        assert len(said) == 2 and "refused" in repr(said[1]) and "Refusal" in repr(said[1])


async def test_a_client_that_does_not_read_is_not_waited_for_and_gets_everything_later() -> None:
    async with broker() as b, client(b) as p, client(b) as quick:
        host, port = read_address(b.address)
        reader, writer = await asyncio.open_connection(host, port, limit=2**16)
        wanted = Filter.parse("type IS big")
        writer.write(frame(Hello(VERSION, "slow")) + frame(Subscribe("s", wanted, 60.0, 50, 0, 7, request=1)))
        subscription = await quick.subscribe(wanted)
        await until(lambda: "slow" in b.host.core.clients)
        big = [Event("big", {"text": "x" * 10_000, "n": number}) for number in range(1000)]
        for start in range(0, 1000, 100):
            await p.publish_many(big[start : start + 100])
            assert len([await subscription.get(20) for _ in range(100)]) == 100
        assert b.host.core.clients["slow"].subscriptions["s"].reader.in_flight == 50, "as many as it asked for"
        found: list[tuple[int, int]] = []
        frames = Reader()
        async with asyncio.timeout(20):
            while len(found) < 1000:
                for message in frames.read(await reader.read(2**20)):
                    assert isinstance(message, Welcome | Accepted | Notify)
                    some = message.deliveries if isinstance(message, Notify) else ()
                    for one in [one for delivery in some for one in delivery.each()]:
                        assert one.event is not None and one.gap is None
                        found += [(number, one.event.data["n"]) for _, number in one.numbers]
                writer.write(frame(Took((Position("s", 7, len(found)),))))
        assert found == [(number + 1, number) for number in range(1000)]
        writer.close()


def test_settings_that_cannot_be() -> None:
    with pytest.raises(UnknownStrategy, match="magic"):
        broker(routing="magic")
    with pytest.raises(InvalidSetting, match="root"):
        broker(routing="hierarchical covering")
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(InvalidSetting, match="--tls-cert FILE --tls-key FILE --access FILE"):
            broker(listen=Address(host, 8020))
    with pytest.raises(InvalidSetting, match="role"):
        broker(role="king")
    with pytest.raises(InvalidSetting, match="name"):
        broker("")
    with pytest.raises(InvalidSetting, match="lease"):
        broker(lease=1.0, sweep=5.0)


async def test_only_who_was_greeted_may_say_welcome() -> None:
    async with broker() as b, client(b, "victim") as c:
        (goodbye,) = await talk(b.address, frame(Welcome(VERSION, "victim")))
        assert isinstance(goodbye, Goodbye) and goodbye.code == "hello"
        assert c.is_connected and [guest.name for guest in b.host.guests] == ["victim"]
