"""`python -m jepsen.publishers PLAN ADDRESSES FILE`: publish until standard input closes; write down what is stored.

An event that is not acknowledged in time is published again, as the same event, at the same broker or at another one.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec

import vestnik
from jepsen.plan import CLASSES, PUBLISHERS, Plan
from jepsen.records import Notebook, Stored, Tried, now
from vestnik import Event
from vestnik.client.bus import Bus
from vestnik.errors import Disconnected, NotAccepted, OutcomeUnknown, TurnedAway, Unreachable

PATIENCE = (1.5, 4.0)
"""Seconds that a publisher waits for an acknowledgement."""
PAUSE = 0.06
"""Mean seconds between two batches of a publisher."""
BATCHES = (1, 1, 1, 1, 3, 15)
MOVES = 0.005
"""The probability that a publisher goes to another broker for no reason, after each batch."""
LAST_TRIES = 40.0
"""Seconds after the end of publishing in which the last batch may still be repeated."""
PROBLEMS = (TimeoutError, OSError, Disconnected, NotAccepted, OutcomeUnknown, TurnedAway, Unreachable)


class Source:
    """One publisher: it publishes one batch after another, each until a broker has acknowledged it."""

    def __init__(self, name: str, plan: Plan, addresses: list[str], notebook: Notebook) -> None:
        self._name = name
        self._plan = plan
        self._addresses = addresses
        self._notebook = notebook
        self._chance = plan.chance(name)
        self._home = self._chance.randrange(len(addresses))
        self._bus: Bus | None = None
        self._published = 0

    async def publish_until(self, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            events = self._next_events()
            while not await self._store(events):
                pass
            if self._chance.random() < MOVES:
                await self._go_elsewhere()
            await asyncio.sleep(self._chance.expovariate(1 / PAUSE))

    async def close(self) -> None:
        if self._bus is not None:
            bus, self._bus = self._bus, None
            with suppress(TimeoutError, OSError, vestnik.VestnikError):
                async with asyncio.timeout(2):
                    await bus.close()

    async def _go_elsewhere(self) -> None:
        await self.close()
        self._home = self._chance.randrange(len(self._addresses))

    def _next_events(self) -> list[Event]:
        first, count = self._published + 1, self._chance.choice(BATCHES)
        self._published += count
        return [_event(self._name, number, self._chance) for number in range(first, first + count)]

    async def _store(self, events: list[Event]) -> bool:
        """Try once; return whether the broker acknowledged all events."""
        try:
            async with asyncio.timeout(self._chance.uniform(*PATIENCE)):
                if self._bus is None:
                    self._bus = await self._connect()
                self._notebook.write(_tried(events, self._home))
                if len(events) == 1:
                    await self._bus.publish(events[0])
                else:
                    await self._bus.publish_many(events)
        except PROBLEMS:
            if self._bus is None or self._chance.random() < 0.4:
                await self._go_elsewhere()
            await asyncio.sleep(self._chance.uniform(0, 0.3))
            return False
        first = events[0].data["number"]
        self._notebook.write(Stored(at=now(), source=self._name, broker=self._home, first=first, count=len(events)))
        return True

    async def _connect(self) -> Bus:
        bus = await vestnik.connect(self._addresses[self._home], timeout=None)
        try:
            if self._plan.advertisements:
                await bus.advertise(f"publisher = '{self._name}'")
        except BaseException:
            await bus.close()
            raise
        return bus


def _event(source: str, number: int, chance: Random) -> Event:
    content = {
        "publisher": source,
        "number": number,
        "class": chance.randrange(CLASSES),
        "token": chance.getrandbits(32),
    }
    return Event("made", content, source=source, id=f"{source}-{number}")


def _tried(events: list[Event], broker: int) -> Tried:
    contents = [event.data for event in events]
    return Tried(
        at=now(),
        source=events[0].source,
        broker=broker,
        first=contents[0]["number"],
        classes=tuple(content["class"] for content in contents),
        tokens=tuple(content["token"] for content in contents),
    )


async def publish(plan: Plan, addresses: list[str], notebook: Notebook) -> None:
    stopped = asyncio.Event()
    sources = [Source(f"p{number}", plan, addresses, notebook) for number in range(PUBLISHERS)]
    tasks = [asyncio.create_task(source.publish_until(stopped)) for source in sources]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    stopped.set()
    await asyncio.wait(tasks, timeout=LAST_TRIES)
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for source in sources:
        await source.close()
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


if __name__ == "__main__":
    given, where, file = sys.argv[1:]
    asyncio.run(publish(msgspec.json.decode(given, type=Plan), where.split(","), Notebook(Path(file))))
