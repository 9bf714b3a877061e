"""Brokers with a data folder: what was acknowledged is there after a crash. Real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import vestnik
from network.processes import LISTENING, told
from network.worlds import broker, client, quote, taken, until
from vestnik.errors import JournalLocked, NotAccepted, OutcomeUnknown
from vestnik.server.store import JournalStore
from vestnik.transport.addresses import read_address
from vestnik.wire.messages import Stored

VESTNIK = Path(sys.executable).with_name("vestnik")


@contextmanager
def process(*arguments: str, before: Sequence[str] = ()) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `vestnik serve` under the command `before`, on a free port by default; yield the process and its address."""
    command = [*before, str(VESTNIK), "serve", "--name", "b", "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as running:
        try:
            yield running, told(running.stderr, LISTENING)
        finally:
            running.kill()


async def stored(folder: Path) -> list[float]:
    """The prices in the journal of a broker that has ended."""
    store = JournalStore(folder / "journal")
    try:
        return [event.data["price"] for one in store.stored() if (event := one.event) is not None]
    finally:
        await store.close()


async def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path)) as (running, address):

        async def publish_until_the_end() -> None:
            async with vestnik.connect(address) as bus:
                for number in range(1_000_000):
                    await bus.publish(quote(number, source="feed"))
                    acknowledged.append(number)

        publishing = asyncio.create_task(publish_until_the_end())
        await until(lambda: len(acknowledged) > 100)
        running.send_signal(signal.SIGKILL)
        await asyncio.to_thread(running.wait)
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
    found = await stored(tmp_path)
    assert found[: len(acknowledged)] == acknowledged


async def test_a_broker_that_is_back_knows_what_it_had_and_what_comes_again(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as bus:
        await bus.publish(quote(1, source="feed", id="1"))
        await bus.publish(quote(2, source="feed", id="2"), durable=False)
        await bus.publish(quote(3, source="feed", id="3"))
    async with broker(data=tmp_path) as b, client(b) as bus:
        subscription = await bus.subscribe("price > 0")
        await bus.publish_many([quote(n, source="feed", id=str(n)) for n in (1, 2, 3, 4)])
        notification = await subscription.get(10)
        assert notification.event.id == "4", "the others are known"
    assert await stored(tmp_path) == [1, 2, 3, 4]


async def test_clients_know_whether_what_they_publish_outlives_a_crash(tmp_path: Path) -> None:
    async with broker("b1") as forgetful, broker("b2", data=tmp_path) as b, client(forgetful) as one, client(b) as two:
        assert not one.is_durable and two.is_durable


async def test_a_client_repeats_to_a_broker_that_was_killed_and_is_back(tmp_path: Path) -> None:
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path)) as (running, address):
        async with vestnik.connect(address) as bus:
            subscription = await bus.subscribe("price > 0")
            await bus.publish(quote(1, source="feed"))
            running.kill()
            await asyncio.to_thread(running.wait)
            await until(lambda: not bus.is_connected)
            waiting = asyncio.create_task(bus.publish(quote(2, source="feed")))
            with process("--listen", address, "--data", str(tmp_path)):
                await asyncio.wait_for(waiting, 20)
                assert await taken(subscription, 2) == [1, 2]
    assert await stored(tmp_path) == [1, 2]


async def test_what_waits_for_its_time_outlives_a_restart(tmp_path: Path) -> None:
    soon = int((time.time() + 1.0) * 1_000_000)
    async with broker(data=tmp_path) as b, client(b) as bus:
        await bus.publish(quote(1, not_before=soon))
    async with broker(data=tmp_path) as b, client(b) as bus:
        subscription = await bus.subscribe("price > 0")
        assert await taken(subscription, 1) == [1]
        assert time.time() * 1_000_000 >= soon


async def test_not_all_that_is_stored_is_read_to_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.store.RECENT", 10)
    soon = int((time.time() + 3) * 1_000_000)
    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish(quote(0, source="s", id="held", not_before=soon))
        await c.publish_many([quote(price, source="s", id=str(price)) for price in range(1, 51)])
    async with broker(data=tmp_path) as b, client(b) as c:
        subscription = await c.subscribe("price >= 0")
        await c.publish_many([quote(50, source="s", id="50"), quote(51, source="s", id="51")])
        assert await taken(subscription, 2) == [51, 0], "the last was known, the first has waited"
    store = JournalStore(tmp_path / "journal")
    assert len(list(store.stored())) == 10, "nothing waits any more"
    await store.close()


async def test_a_disk_that_fails_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with broker(data=tmp_path) as b, client(b) as bus:
        await bus.publish(quote(1))

        def fail(file: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(OutcomeUnknown, match="Input/output error"):
            await bus.publish(quote(2, id="again"))
        monkeypatch.undo()
        with pytest.raises(NotAccepted):
            await bus.publish(quote(3))
        subscription = await bus.subscribe("price > 0")
        assert subscription.try_get() is None, "all else goes on"
    assert (await stored(tmp_path))[:1] == [1]


async def test_two_brokers_cannot_have_one_folder(tmp_path: Path) -> None:
    async with broker(data=tmp_path):
        with pytest.raises(JournalLocked):
            async with broker(data=tmp_path):
                pass


def test_the_command_says_why_it_cannot_start(tmp_path: Path) -> None:
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path)) as (_, address):
        taken_port = ["--listen", address]
        locked = ["--listen", "127.0.0.1:0", "--data", str(tmp_path)]
        for arguments, reason in (
            (taken_port, "choose another, or 0"),
            (locked, "another"),
            (["--listen", "127.0.0.1:0", "--data", "/proc/nowhere"], "data: /proc/nowhere cannot be used"),
            (["--listen", "x:y"], "no address"),
        ):
            done = subprocess.run(
                [VESTNIK, "serve", *arguments], stderr=subprocess.PIPE, encoding="utf-8", timeout=30, check=False
            )
            assert done.returncode == 2 and reason in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert read_address(address).port > 0


async def test_many_publications_that_were_stored_and_not_answered_are_known_when_repeated(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as b, client(b) as c, client(b) as other:
        subscription = await other.subscribe("price > 0", queue=100_000)
        dropped = b.host._ends[c.name]
        sends = dropped.send
        dropped.send = lambda message: None if isinstance(message, Stored) else sends(message)  # type: ignore[method-assign]
        publishing = asyncio.create_task(c.publish_many([quote(n, source="feed") for n in range(1, 20_001)]))
        await until(lambda: b.host.counts.taken >= 512)
        b.host._refuse(dropped, "shutdown", "for a test")
        await publishing
        assert await taken(subscription, 20_000) == list(range(1, 20_001))
        assert subscription.try_get() is None
        stored = (await other.inspect("history"))["events"]
        assert stored == 20_000, "the broker recognises them, and not only the subscriber"


@pytest.mark.parametrize(("retention", "most"), [({"retain_count": 100}, 100), ({"retain_size": 2 << 20}, 900)])
async def test_a_broker_that_starts_with_less_retention_keeps_what_that_allows(
    tmp_path: Path, retention: dict[str, Any], most: int
) -> None:
    async with broker(data=tmp_path) as b, client(b) as bus:
        for first in range(0, 1_000, 100):
            numbers = range(first, first + 100)
            await bus.publish_many([quote(n, subject="x" * 2_000, source="s", id=str(n)) for n in numbers])
    async with broker(data=tmp_path, **retention) as b, client(b) as bus:
        found = [event.data["price"] for event in await bus.fetch("price >= 0", limit=None)]
        assert most / 2 < len(found) <= most and found == list(range(1_000 - len(found), 1_000))
        assert len((await bus.review()).page.positions) == len(found)
