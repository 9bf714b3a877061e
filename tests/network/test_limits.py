"""How much others may have of a broker: each limit is named where it is met, and memory stays where it is."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import vestnik
from network.security import Authority, access_file
from network.test_brokers import talk
from network.test_durable import process
from network.worlds import broker, client, quote, taken, until
from vestnik import Event, Replay
from vestnik.client.bus import Bus
from vestnik.errors import InvalidSetting, NotAccepted, TurnedAway, Unreachable
from vestnik.server.limits import Limits, read_limits
from vestnik.transport.addresses import read_address
from vestnik.wire.frames import VERSION, Reader, frame
from vestnik.wire.messages import Ask, Goodbye, Hello, Position, Publish

HELLO = frame(Hello(VERSION, "x"))


async def last_word(address: str, *data: bytes) -> Goodbye:
    *_, last = await talk(address, *data)
    assert isinstance(last, Goodbye)
    return last


async def test_connections() -> None:
    async with broker(limits=Limits(connections=2)) as b, client(b, "one"), client(b, "two"):
        goodbye = await last_word(b.address, frame(Hello(VERSION, "three")))
        assert goodbye.code == "busy" and "the limit connections" in goodbye.reason
        with pytest.raises(Unreachable, match="the limit connections"):
            async with client(b, "three", timeout=0.2):
                pass
        async with client(b, "two"):
            assert sorted(guest.name for guest in b.host.guests) == ["one", "two"], "who was there may come again"


async def test_a_client_waits_until_there_is_room() -> None:
    async with broker(limits=Limits(connections=1)) as b:
        first = await client(b, "one").__aenter__()
        waiting = asyncio.create_task(client(b, "two").__aenter__())
        await asyncio.sleep(0.1)
        await first.close()
        second = await waiting
        assert second.is_connected
        await second.close()


async def test_connections_of_one_identity(tmp_path: Path) -> None:
    text = '[a]\ntokens = ["{a}"]\n[b]\ntokens = ["{b}"]\n'
    access = access_file(tmp_path, text, a="token-a", b="token-b")
    async with broker(access=access, limits=Limits(identity_connections=1)) as b:
        async with client(b, "one", token="token-a"), client(b, "one", token="token-b"):
            goodbye = await last_word(b.address, frame(Hello(VERSION, "two", False, "token-a")))
            assert goodbye.code == "busy" and "the limit identity_connections" in goodbye.reason
        await until(lambda: b.host.guests == [])
        async with client(b, "two", token="token-a"):
            pass


async def test_of_strangers_the_oldest_gives_way() -> None:
    async with broker(limits=Limits(strangers=3)) as b:
        address = read_address(b.address)
        connections = [await asyncio.open_connection(*address) for _ in range(4)]
        async with asyncio.timeout(20):
            (goodbye,) = Reader().read(await connections[0][0].read())
        assert isinstance(goodbye, Goodbye) and goodbye.code == "busy"
        async with client(b, "c") as c:
            assert c.is_connected
        for _, writer in connections:
            writer.close()


async def test_bytes_of_a_message_before_hello_and_after() -> None:
    event = Event("big", {"text": "x" * 3000})
    async with broker(limits=Limits(stranger_bytes=1000, message_bytes=4000)) as b:
        goodbye = await last_word(b.address, (1001).to_bytes(4, "big"))
        assert goodbye.code == "frame" and "at most 1,000 are taken" in goodbye.reason
        goodbye = await last_word(b.address, HELLO + frame(Publish((event,))) + (4001).to_bytes(4, "big"))
        assert goodbye.code == "frame" and "at most 4,000 are taken" in goodbye.reason
        with pytest.raises(TurnedAway, match=r"message of .* bytes; at most 4,000"):
            async with client(b) as c:
                await c.publish_many([event, event.replace(id="another")])


async def test_subscriptions_and_advertisements_of_a_client() -> None:
    async with broker(limits=Limits(subscriptions=2)) as b, client(b) as c:
        first = await c.subscribe("price > 1")
        second = await c.subscribe("price > 2")
        with pytest.raises(NotAccepted, match="the limit subscriptions is 2"):
            await c.subscribe("price > 3")
        await first.change("price > 4")
        await second.unsubscribe()
        await c.subscribe("price > 5")
        names = [await c.advertise("price > 1"), await c.advertise("price > 2")]
        with pytest.raises(NotAccepted, match="2 advertisements; the limit subscriptions is 2"):
            await c.advertise("price > 3")
        await c.unadvertise(names[0])
        await c.advertise("price > 3")
        with pytest.raises(NotAccepted, match="a name of 200 characters"):
            await c.subscribe("price > 1", name="n" * 200)


async def test_the_size_of_a_filter() -> None:
    async with broker(limits=Limits(filter_boxes=3)) as b, client(b) as c:
        await c.subscribe("a = 1 OR b = 1 OR c = 1")
        with pytest.raises(NotAccepted, match="more than 3 boxes"):
            await c.subscribe("a = 1 OR b = 1 OR c = 1 OR d = 1")


async def test_what_is_in_flight_and_what_is_picked(tmp_path: Path) -> None:
    async with broker(limits=Limits(keep=1000, replay=2), data=tmp_path) as b, client(b) as c:
        with pytest.raises(NotAccepted, match="1,001 notifications in flight; the limit keep is 1,000"):
            await c.subscribe("price > 0", queue=1001)
        await c.publish_many([quote(1, subject="a"), quote(2, subject="b"), quote(3, subject="c")])
        with pytest.raises(NotAccepted, match="the limit replay is 2"):
            await c.fetch("price > 0", limit=3)
        with pytest.raises(NotAccepted, match="the limit replay is 2"):
            await c.subscribe("price > 0", replay=Replay(last=3))
        subscription = await c.subscribe("price > 0", replay=Replay(latest_by="subject"))
        first, second = [await subscription.get(10) for _ in range(2)]
        assert [n.event.data["price"] for n in (first, second)] == [2, 3], "the last that may be"
        assert first.gap and "1 older event was left out: a replay picks 2 at most" in str(first.gap)
        assert not second.gap
        view = await c.subscribe("price > 0", replay=Replay(latest_by="type"))
        assert not (await view.get(10)).gap, "nothing is left out"


async def test_what_is_read_as_the_client_takes_it_has_no_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker(limits=Limits(replay=2), data=tmp_path) as b, client(b) as c:
        await c.publish_many([quote(1), quote(2), quote(3), quote(4)])
        for replay in (Replay(all=True), Replay(since="2020-01-01T00:00:00Z")):
            assert await taken(await c.subscribe("price > 0", replay=replay, queue=1), 4) == [1, 2, 3, 4]
        found = await c.fetch("price > 0", limit=None, since="2020-01-01T00:00:00Z")
        assert [event.data["price"] for event in found] == [1, 2, 3, 4]
        assert not caplog.text


async def test_a_fetch_says_what_it_leaves_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with broker(limits=Limits(replay=2), data=tmp_path) as b, client(b) as c:
        await c.publish_many([quote(price, subject=str(price)) for price in (1, 2, 3, 4)])
        found = await c.fetch("price > 0", limit=None, latest_by="subject")
        assert [event.data["price"] for event in found] == [3, 4]
        assert "2 older events were left out" in caplog.text
        caplog.clear()
        assert len(await c.fetch("price > 2", limit=None, latest_by="subject")) == 2
        assert not caplog.text


async def test_fetches_that_are_not_answered(tmp_path: Path) -> None:
    async with broker(limits=Limits(fetches=2), data=tmp_path) as b, client(b) as c:
        await c.publish_many([quote(1), quote(2)])
        found = await asyncio.gather(*[c.fetch("price > 0") for _ in range(4)], return_exceptions=True)
        refused = [one for one in found if isinstance(one, NotAccepted)]
        assert len(refused) == 2 and "the limit fetches is 2" in str(refused[0])
        assert len(await c.fetch("price > 0")) == 2, "the others are answered"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["many=1"], "none called many; known are strangers"),
        (["keep"], "limits.keep: is a number from 1 on, not ''"),
        (["keep=-1"], "limits.keep: is a number from 1 on, not '-1'"),
        (["keep=0"], "limits.keep: is a number from 1 on, not 0"),
        (["message_bytes=99999999"], "limits.message_bytes: is at most"),
    ],
)
def test_limits_that_cannot_be(words: list[str], reason: str) -> None:
    with pytest.raises(InvalidSetting, match=reason):
        read_limits(words)
    assert read_limits(["keep=5", "replay=7"]) == Limits(keep=5, replay=7)


async def test_who_does_not_read_is_not_read_from() -> None:
    async with broker() as b, client(b, "other") as other:
        reader, writer = await asyncio.open_connection(*read_address(b.address), limit=2**16)
        writer.write(HELLO)
        sent = 0
        with suppress(TimeoutError):
            while sent < 40:
                writer.write(frame(Ask((Position("n" * 10_000, 1, 1),))) * 100)  # as much is answered
                async with asyncio.timeout(2):
                    await writer.drain()
                sent += 1
        assert sent < 40, "it is held up"
        (end,) = [end for end, guest in b.host._guests.items() if guest.name == "x"]
        waiting = end._transport.get_write_buffer_size()  # type: ignore[attr-defined]
        assert waiting < 8 * 2**20, f"{waiting:,} bytes of answers wait"
        await other.publish(quote(1))
        writer.transport.abort()
        await until(lambda: len(b.host.guests) == 1)
        del reader


async def test_what_is_sent_goes_out_at_once() -> None:
    async with broker() as b, client(b):
        (end,) = b.host._guests
        accepted = end._transport.get_extra_info("socket")  # type: ignore[attr-defined]
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_connection_that_is_closed_ends_though_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.transport.tcp.CLOSE_WITHIN", 0.2)
    async with broker() as b:
        reader, writer = await asyncio.open_connection(*read_address(b.address), limit=2**16)
        writer.write(HELLO)
        await until(lambda: len(b.host.guests) == 1)
        (end,) = b.host._guests
        for _ in range(20):
            end.send(Publish((Event("big", {"text": "x" * 2**20}),)))
        b.host._refuse(end, "silence", "test")
        async with asyncio.timeout(20):
            await end.over()
        writer.close()
        del reader


# --- hostile bytes, with memory measured ---


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _send(address: str, data: bytes, *, end: bool = True) -> None:
    """Send bytes, be rude, and go."""
    reader, writer = await asyncio.open_connection(*read_address(address))
    try:
        writer.write(data)
        await writer.drain()
        if end:
            async with asyncio.timeout(20):
                await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


async def garbage(address: str) -> None:
    await _send(address, os.urandom(2_000_000))


async def truncated(address: str) -> None:
    await _send(address, HELLO + frame(Publish((Event("big", {"text": "x" * 2_000_000}),)))[:-1], end=False)


async def oversized(address: str) -> None:
    await _send(address, HELLO + b"\xff\xff\xff\xff" + b"x" * 2_000_000)


async def large_before_hello(address: str) -> None:
    await _send(address, (16 * 2**20).to_bytes(4, "big") + b"x" * 2_000_000)


async def wrong_first(address: str) -> None:
    await _send(address, frame(Publish((quote(1),))) * 20_000)


async def deep(address: str) -> None:
    await _send(address, HELLO + (2_000_000).to_bytes(4, "big") + b"\x91" * 2_000_000)


HOSTILE = [garbage, truncated, oversized, large_before_hello, wrong_first, deep]
MiB = 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("attack", HOSTILE, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_memory_is_flat(attack: Callable[[str], Awaitable[None]], secure: bool, tmp_path: Path) -> None:
    with served(tmp_path, secure=secure) as (pid, address, connect):

        async def attacked(times: int) -> int:
            for _ in range(times):
                await asyncio.gather(*[attack(address) for _ in range(5)])
            await goes_on(connect())
            return resident(pid)

        assert_flat(await attacked(10), await attacked(20))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_memory_is_flat_however_many_are_half_open(secure: bool, tmp_path: Path) -> None:
    with served(tmp_path, secure=secure) as (pid, address, connect):
        connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

        async def held(count: int) -> int:
            """The memory, when so many have said half of their first word."""
            for _ in range(count):
                connections.append(await asyncio.open_connection(*read_address(address)))
                connections[-1][1].write(HELLO[:3] if not secure else b"\x16\x03\x01")
            await goes_on(connect())
            return resident(pid)

        try:
            assert_flat(await held(50), await held(250))
            async with asyncio.timeout(5):
                for reader, _ in connections[:280]:
                    await reader.read()
        finally:
            for _, writer in connections:
                writer.transport.abort()


@contextmanager
def served(folder: Path, *, secure: bool) -> Iterator[tuple[int, str, Callable[[], Bus]]]:
    """A broker that takes few strangers: its process, where it is, and a way to connect to it."""
    arguments: list[str] = []
    options: dict[str, Any] = {}
    if secure:
        authority = Authority(folder)
        papers = authority.issue("b", "127.0.0.1")
        arguments = ["--tls-cert", str(papers.cert), "--tls-key", str(papers.key)]
        options = {"tls_ca": authority.file}
    with process("--listen", "127.0.0.1:0", "--limits", "strangers=16", *arguments) as (running, address):
        url = f"vestniks://{address}" if secure else address
        yield running.pid, address, lambda: vestnik.connect(url, **options)


def assert_flat(before: int, after: int) -> None:
    """But for what is on its way: little of what was sent."""
    assert after - before < 8 * MiB, f"{before / MiB:.1f} MiB before, {after / MiB:.1f} MiB after"


async def goes_on(bus: Bus) -> None:
    """Others do not notice."""
    async with bus as c:
        subscription = await c.subscribe("price > 0")
        await c.publish(quote(1))
        assert await taken(subscription, 1) == [1]
