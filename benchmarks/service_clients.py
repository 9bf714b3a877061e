"""A process of clients. It is told what to do by a task as JSON, says when it is ready, and then what it measured."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from benchmarks.service_systems import SYSTEMS, Client, Data, Vestnik, Want

LATE = 60.0
"""Seconds after which what has not come is given up."""


class Task(msgspec.Struct, kw_only=True):
    """Subscribe with a connection for each list of `wants`; or publish `events`, with a `pace` so many a second.

    A subscriber is done when it has taken `expected` of each round. A publisher does all `rounds` when told to. With
    `in_flight`, so many wait for an acknowledgement at a time.
    """

    system: str
    port: int
    wants: list[list[Want]] = []
    events: list[Data] = []
    expected: int = 0
    rounds: int = 1
    pace: float = 0.0
    in_flight: int = 0


class Measured(msgspec.Struct):
    """Of a round: how many were taken, the sum of their numbers, when it began and ended, and delays in seconds."""

    count: int
    total: int
    began: float
    ended: float
    delays: list[float] = []


def say(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


async def told() -> None:
    """Wait for a line."""
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)


class Counter:
    """What a round of a subscriber has brought so far."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self.begin()

    def begin(self) -> None:
        self.count = self.total = 0
        self.delays: list[float] = []
        self.began = time.monotonic()
        self.is_complete = asyncio.Event()

    def take(self, data: Data) -> None:
        self.count += 1
        self.total += data["number"]
        if "sent" in data:
            self.delays.append(time.monotonic() - data["sent"])
        if self.count == self._expected:
            self.is_complete.set()

    def measured(self) -> Measured:
        return Measured(self.count, self.total, self.began, time.monotonic(), self.delays)


async def subscribe(task: Task) -> None:
    counter = Counter(task.expected)
    clients = [SYSTEMS[task.system]() for _ in task.wants]
    for client, wants in zip(clients, task.wants, strict=True):
        await client.open(task.port)
        for start in range(0, len(wants), 100):
            await asyncio.gather(*[client.subscribe(want, counter.take) for want in wants[start : start + 100]])
    for _ in range(task.rounds):
        counter.begin()
        say("ready")
        try:
            async with asyncio.timeout(LATE):
                await counter.is_complete.wait()
        except TimeoutError:
            pass
        say(counter.measured())
    await told()
    for client in clients:
        await client.close()


async def publish(task: Task) -> None:
    client = SYSTEMS[task.system]()
    await client.open(task.port)
    for _ in range(task.rounds):
        say("ready")
        await told()
        began = time.monotonic()
        delays = await _published(client, task)
        say(Measured(len(task.events), 0, began, time.monotonic(), delays))
    await told()
    await client.close()


async def _published(client: Client, task: Task) -> list[float]:
    if task.in_flight:
        return await _acknowledged(client, iter(task.events), task.in_flight)
    if not task.pace:
        await client.publish(task.events)
        return []
    start = time.monotonic()
    for number, data in enumerate(task.events):
        await asyncio.sleep(max(0.0, start + number / task.pace - time.monotonic()))
        await client.publish([{**data, "sent": time.monotonic()}])
    return []


async def _acknowledged(client: Client, events: Iterator[Data], in_flight: int) -> list[float]:
    """Seconds until each was acknowledged."""
    assert isinstance(client, Vestnik)
    delays: list[float] = []

    async def one_after_another() -> None:
        for data in events:
            begun = time.monotonic()
            await client.publish_durably(data)
            delays.append(time.monotonic() - begun)

    await asyncio.gather(*[one_after_another() for _ in range(in_flight)])
    return delays


def main() -> None:
    import uvloop

    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    work = subscribe(task) if task.wants else publish(task)
    loop = asyncio.new_event_loop if task.system == "mosquitto" else uvloop.new_event_loop  # aiomqtt wants add_reader
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(work)


if __name__ == "__main__":
    main()
