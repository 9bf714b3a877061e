"""SIGTERM ends a broker soon, whatever it is doing, and loses nothing that it has acknowledged. Real processes."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import vestnik
from network.processes import HTTP, VESTNIK, serving, told
from network.security import Authority
from network.worlds import quote, until
from vestnik.client.bus import Bus
from vestnik.server.store import JournalStore

GUARD = 10.0
"""Seconds in which a broker has to end. On a quiet machine it takes less than two; this allows for a noisy one."""

SLOW_READING = """
import time, vestnik.server.store as store
unpack = store.unpack_taken
def slowly(payload):
    time.sleep(0.01)
    return unpack(payload)
store.unpack_taken = slowly
"""
SLOW_COMPACTION = """
import time, vestnik.server.store as store
store.RETAIN_EVERY, value = 0.1, store._value
def slowly(*given):
    time.sleep(0.01)
    return value(*given)
store._value = slowly
"""
HANGING_DISK = """
import os, time, pathlib
sync = os.fdatasync
def hang(file):
    while pathlib.Path({flag!r}).exists():
        time.sleep(0.1)
    sync(file)
os.fdatasync = hang
"""
SLOW_RECOVERY = """
import sys, time, vestnik.journal.journal as journal
recover = journal.recover
def slowly(*given):
    print("listening on nothing yet", file=sys.stderr, flush=True)
    for _ in range(6000):
        time.sleep(0.01)
    return recover(*given)
journal.recover = slowly
"""
HANGING_NAMES = """
import socket, sys, time
look_up = socket.getaddrinfo
def hang(host, *given, flags=0, **more):
    if host == "far.example" and not flags:
        print("http on looking", file=sys.stderr, flush=True)
        time.sleep(60)
    return look_up(host, *given, flags=flags, **more)
socket.getaddrinfo = hang
"""
MANY = 3_000


async def ended(running: subprocess.Popen[str], number: int = signal.SIGTERM) -> int:
    """Send a signal; return the exit code. A process that takes too long fails the test."""
    running.send_signal(number)
    return await asyncio.to_thread(running.wait, GUARD)


async def stored(folder: Path) -> list[float]:
    """The prices in the journal of a broker that has ended."""
    store = JournalStore(folder / "journal")
    try:
        return [event.data["price"] for one in store.stored() if (event := one.event) is not None]
    finally:
        await store.close()


async def publish(bus: Bus, count: int = MANY) -> None:
    """Publish prices from 0 on, and wait until the broker has acknowledged all of them."""
    await bus.publish_many([quote(price, source="feed") for price in range(count)])


async def fetch_all(bus: Bus) -> None:
    await bus.fetch("price >= 0", limit=MANY)


async def replay_all(bus: Bus) -> None:
    subscription = await bus.subscribe("price < 0", replay=vestnik.Replay(all=True))
    await subscription.get()


async def ask_for_the_history(bus: Bus) -> None:
    await bus.inspect("history")


@pytest.mark.parametrize("reading", [fetch_all, replay_all, ask_for_the_history])
async def test_while_the_past_is_read(tmp_path: Path, reading: Callable[[Bus], Coroutine[Any, Any, None]]) -> None:
    with serving("--data", str(tmp_path), patch=SLOW_READING) as (running, address):
        async with vestnik.connect(address) as feed, vestnik.connect(address) as reader:
            await publish(feed)
            waiting = [asyncio.create_task(reading(reader)) for _ in range(10)]
            await feed.publish(quote(MANY, source="feed"))  # the broker has heard all that was asked before
            assert await ended(running) == 0
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
    assert await stored(tmp_path) == list(range(MANY + 1))


async def test_while_a_compaction_runs(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path), "--retain-latest-by", "price", patch=SLOW_COMPACTION) as (running, address):
        async with vestnik.connect(address) as feed:
            await publish(feed)
            await asyncio.sleep(0.5)  # several times as long as until the next compaction
            assert await ended(running) == 0
    assert await stored(tmp_path) == list(range(MANY))


async def test_while_the_disk_hangs(tmp_path: Path) -> None:
    """The broker does not wait for ever to sync events that it has not acknowledged."""
    flag = tmp_path / "hangs"
    with serving("--data", str(tmp_path), patch=HANGING_DISK.format(flag=str(flag))) as (running, address):
        async with vestnik.connect(address) as feed:
            await publish(feed, 100)
            flag.touch()
            waiting = asyncio.create_task(feed.publish(quote(100, source="feed")))
            await feed.inspect("status")
            assert await ended(running) == 0
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
    assert (await stored(tmp_path))[:100] == list(range(100))


@asynccontextmanager
async def stopped(*command: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A client in a process of its own, that is stopped when it is told to and killed in the end."""
    with subprocess.Popen([str(VESTNIK), *command], stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_with_a_client_that_does_not_read(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path), "--name", "b") as (running, address):
        async with (
            vestnik.connect(address) as feed,
            stopped("sub", "price >= 0", "--url", address, "--name", "deaf") as deaf,
        ):
            while not any(one["subscriptions"] for one in await feed.inspect("clients", name="deaf")):
                await asyncio.sleep(0.02)
            deaf.send_signal(signal.SIGSTOP)
            for price in range(300):
                await feed.publish(vestnik.Event("t", {"price": price, "text": "x" * 30_000}, source="feed"))
            assert await ended(running) == 0
    assert await stored(tmp_path) == list(range(300))


async def test_with_a_neighbour_that_hangs(tmp_path: Path) -> None:
    with (
        serving("--data", str(tmp_path / "b1"), "--name", "b1") as (running, one),
        serving("--name", "b2", "--join", one) as (other, two),
    ):
        async with vestnik.connect(one) as feed, vestnik.connect(two) as far:
            await far.subscribe("price >= 0", settled=True)
            other.send_signal(signal.SIGSTOP)
            for price in range(300):
                await feed.publish(vestnik.Event("t", {"price": price, "text": "x" * 30_000}, source="feed"))
            assert await ended(running) == 0
            other.kill()
    assert await stored(tmp_path / "b1") == list(range(300))


async def test_with_a_neighbour_that_does_not_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with serving("--join", f"{host}:{port}") as (running, _):
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:
                assert await ended(running) == 0


async def test_with_a_name_server_that_does_not_answer() -> None:
    with serving("--join", "far.example:8020", patch=HANGING_NAMES) as (running, _):
        assert told(running.stderr, HTTP) == "looking"
        assert await ended(running) == 0


@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x01\x02\x00\x01"])
async def test_in_the_midst_of_a_tls_handshake(tmp_path: Path, hello: bytes) -> None:
    papers = Authority(tmp_path).issue("localhost", "127.0.0.1")
    with serving("--tls-cert", str(papers.cert), "--tls-key", str(papers.key)) as (running, address):
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as half:
            half.sendall(hello)
            assert await ended(running) == 0


class HangingSink:
    """Allows everybody to push, and never answers who does."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._over = asyncio.Event()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        self._server.close()
        await self._server.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"OPTIONS"):
            writer.write(b"HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: *\r\ncontent-length: 0\r\n\r\n")
        else:
            self.asked.set()
            await self._over.wait()
        writer.close()


async def test_with_a_web_hook_whose_sink_hangs(tmp_path: Path) -> None:
    sink = HangingSink()
    async with sink as target:
        with serving("--http", "127.0.0.1:0", "--sink", "127.0.0.1", "--data", str(tmp_path)) as (running, _):
            url = f"http://{told(running.stderr, HTTP)}"
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as http:
                made = await http.post("/subscriptions", json={"filter": "price >= 0", "sink": target})
                assert made.status_code == 201, made.text
                for price in range(10):
                    answer = await http.post("/events", json={"type": "t", "data": {"price": price}})
                    assert answer.json()["published"] == 1
                await asyncio.wait_for(sink.asked.wait(), 20)
                assert await ended(running) == 0
    assert await stored(tmp_path) == list(range(10))


async def test_with_all_of_it_at_once(tmp_path: Path) -> None:
    """A disk that hangs, a client and a stream that are not read, and a web hook whose sink hangs."""
    flag, sink = tmp_path / "hangs", HangingSink()
    patch = HANGING_DISK.format(flag=str(flag)) + "os.fsync = hang"
    async with sink as target:
        with serving("--http", "127.0.0.1:0", "--sink", "127.0.0.1", "--data", str(tmp_path), patch=patch) as (
            running,
            address,
        ):
            host, port = told(running.stderr, HTTP).split(":")
            with socket.create_connection((host, int(port))) as stream:
                stream.sendall(b"GET /events?filter=price%20%3E%3D%200 HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert (await asyncio.to_thread(stream.recv, 12)) == b"HTTP/1.1 200"
                async with (
                    httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False, timeout=20) as http,
                    vestnik.connect(address) as feed,
                    stopped("sub", "price >= 0", "--url", address, "--name", "deaf") as deaf,
                ):
                    await http.post("/subscriptions", json={"filter": "price >= 0", "sink": target})
                    while not any(one["subscriptions"] for one in await feed.inspect("clients", name="deaf")):
                        await asyncio.sleep(0.02)
                    deaf.send_signal(signal.SIGSTOP)
                    for price in range(300):
                        await feed.publish(vestnik.Event("t", {"price": price, "text": "x" * 30_000}, source="feed"))
                    await asyncio.wait_for(sink.asked.wait(), 20)
                    flag.touch()
                    waiting = asyncio.create_task(feed.publish(quote(300, source="feed")))
                    await feed.inspect("status")
                    assert await ended(running) == 0
                    waiting.cancel()
                    await asyncio.gather(waiting, return_exceptions=True)
    assert (await stored(tmp_path))[:300] == list(range(300))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_while_it_begins(tmp_path: Path, number: int) -> None:
    with serving("--data", str(tmp_path), patch=SLOW_RECOVERY) as (running, address):
        assert address == "nothing", "the journal is being read"
        assert await ended(running, number) == 0


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    flag = tmp_path / "hangs"
    with serving("--data", str(tmp_path), patch=HANGING_DISK.format(flag=str(flag))) as (running, address):
        async with vestnik.connect(address) as feed:
            await publish(feed, 1)
            flag.touch()
            waiting = asyncio.create_task(feed.publish(quote(1, source="feed")))
            await feed.inspect("status")
            running.send_signal(signal.SIGTERM)
            await until(lambda: not feed.is_connected)
            assert await ended(running) in (0, -signal.SIGTERM)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
    assert (await stored(tmp_path))[:1] == [0]
