"""Brokers that are killed under load, in real processes: nothing that was acknowledged is lost, and all is in order."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

import vestnik
from network.processes import LISTENING, told
from network.worlds import quote, until
from vestnik.client.bus import Bus

VESTNIK = Path(sys.executable).with_name("vestnik")
LINE = ("b1", "b2", "b3")
LEASE = 1.0


class Brokers:
    """A line of brokers, each a process with a data folder and a trace; each joins the one before it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[str]] = {}
        self.addresses: dict[str, str] = {}

    def start(self, name: str) -> None:
        """Where it was before, if it was."""
        data, trace = self._folder / name, self._folder / f"{name}.jsonl"
        command = [str(VESTNIK), "serve", "--name", name, "--listen", self.addresses.get(name, "127.0.0.1:0")]
        command += [
            "--data",
            str(data),
            "--trace",
            str(trace),
            "--lease",
            str(LEASE),
            "--heartbeat",
            str(LEASE / 3),
            "--sweep",
            "0.2",
        ]
        before = LINE[LINE.index(name) - 1] if name != LINE[0] else None
        command += ["--join", self.addresses[before]] if before else []
        running = subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8")
        self._running[name] = running
        self.addresses[name] = told(running.stderr, LISTENING)
        assert self.addresses[name], f"{name} does not listen"

    def kill(self, name: str) -> None:
        running = self._running.pop(name)
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert running.stderr is not None
        running.stderr.close()

    def end(self) -> None:
        for name in list(self._running):
            self.kill(name)

    def check(self) -> subprocess.CompletedProcess[str]:
        traces = [str(self._folder / f"{name}.jsonl") for name in LINE]
        return subprocess.run([str(VESTNIK), "check", *traces], capture_output=True, encoding="utf-8", check=False)


@contextmanager
def line(folder: Path) -> Iterator[Brokers]:
    brokers = Brokers(folder)
    try:
        for name in LINE:
            brokers.start(name)
        yield brokers
    finally:
        brokers.end()


class Feed:
    """Publishes without an end, and knows what was acknowledged."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.acknowledged = 0

    async def run(self) -> None:
        while True:
            batch = [quote(self.acknowledged + n, source="feed") for n in range(1, 11)]
            await self._bus.publish_many(batch)
            self.acknowledged += len(batch)


@asynccontextmanager
async def feeding(bus: Bus) -> AsyncIterator[Feed]:
    feed = Feed(bus)
    task = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def joined(bus: Bus) -> None:
    """All brokers are within reach of the client's own."""
    async with asyncio.timeout(20):
        while len((await bus.inspect("status"))["brokers"]) < len(LINE):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("pause", [0.0, 2 * LEASE], ids=["at once", "after the lease"])
@pytest.mark.parametrize("victim", LINE)
async def test_a_broker_is_killed_under_load_and_comes_back(tmp_path: Path, victim: str, pause: float) -> None:
    seen: list[int] = []
    gaps: list[object] = []

    def take(notification: vestnik.Notification) -> None:
        seen.append(notification.event.data["price"])
        gaps.extend([notification.gap] if notification.gap else [])

    with line(tmp_path) as brokers:
        async with (
            vestnik.connect(brokers.addresses["b1"], name="p") as publisher,
            vestnik.connect(brokers.addresses["b3"], name="c") as subscriber,
        ):
            await joined(subscriber)
            await subscriber.subscribe("price > 0", take, queue=100_000, settled=True)
            async with feeding(publisher) as feed:
                await until(lambda: len(seen) > 200)
                brokers.kill(victim)
                await asyncio.sleep(pause)
                brokers.start(victim)
                before = feed.acknowledged
                await until(lambda: feed.acknowledged > before + 200)
            await until(lambda: len(seen) >= feed.acknowledged)
        checked = brokers.check()
    assert seen[: feed.acknowledged] == list(range(1, feed.acknowledged + 1))
    assert seen == sorted(set(seen))
    assert not gaps
    assert checked.returncode == 0, checked.stdout + checked.stderr
