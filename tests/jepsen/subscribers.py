"""`python -m jepsen.subscribers PLAN ADDRESSES FILE`: seven subscribers, which write down all that they take.

The process writes `settled` to standard error when those that subscribe at the start have done so. It ends when its
standard input is closed.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import vestnik
from jepsen.plan import CLASSES, Plan
from jepsen.records import GapTold, Notebook, Taken, Wanted, now
from vestnik.client.bus import Bus
from vestnik.client.notifications import Gap, Notification
from vestnik.client.subscriptions import Subscription

LOG = logging.getLogger(__name__)
MICROS = 1_000_000
CLOCK_SLACK = 0.05
"""Seconds by which the time of a broker and that of a client may differ, on one machine."""
CONNECT_WITHIN = 3.0


class Reader:
    """A subscriber that stays where it is, and reads. Others say what they do besides."""

    def __init__(self, name: str, plan: Plan, addresses: list[str], notebook: Notebook) -> None:
        self.name = name
        self._plan = plan
        self._addresses = addresses
        self._notebook = notebook
        self._chance = plan.chance(name)
        self._home = self._chance.randrange(len(addresses))
        self._low, self._high = self._some_classes()
        self._life = 0
        self._client: str | None = None
        self._bus: Bus | None = None
        self._subscription: Subscription | None = None
        self._reading: asyncio.Task[None] | None = None

    # --- what kinds of subscribers override ---

    begins_at = 0.0
    """The part of the run after which it subscribes."""
    pause = 0.0
    """Seconds that it takes for an event, at most."""
    queue = 1000

    async def act(self) -> None:
        """Do what this kind does besides reading."""

    def _terms(self) -> tuple[dict[str, Any], float | None]:
        """Return arguments of the first `subscribe`, and for a replay the time from which events are due."""
        return {}, None

    # --- what all do ---

    async def subscribe(self) -> None:
        terms, since = self._terms()
        await self._begin(terms | ({} if self.begins_at else {"settled": True}), since)

    async def close(self) -> None:
        """Stop reading, and write down a gap that no notification has told yet."""
        if self._reading is not None:
            self._reading.cancel()
            outcomes = await asyncio.gather(self._reading, return_exceptions=True)
            LOG.info("%s read until %r", self.name, outcomes)
        if self._subscription is not None and (gap := self._subscription.take_gap()) is not None:
            self._note_gap(gap)
        if self._bus is not None:
            with suppress(TimeoutError, OSError, vestnik.VestnikError):
                async with asyncio.timeout(2):
                    await self._bus.close()
        self._reading = self._subscription = self._bus = None

    async def _begin(self, terms: dict[str, Any], since: float | None = None) -> None:
        """Connect where somebody answers, subscribe, and read."""
        while self._bus is None:
            try:
                self._bus = await vestnik.connect(
                    self._addresses[self._home], name=self._client, timeout=CONNECT_WITHIN
                )
            except vestnik.VestnikError as error:
                LOG.info("%s: %s", self.name, error)
                self._home = self._next_home()
        called = now()
        self._subscription = await self._bus.subscribe(self._text(), name="s", queue=self.queue, **terms)
        self._note_wanted(called, since)
        self._reading = asyncio.create_task(self._read(self._subscription))

    def _next_home(self) -> int:
        return self._chance.randrange(len(self._addresses))

    async def _read(self, subscription: Subscription) -> None:
        async for notification in subscription:
            self._note_taken(notification)
            if self.pause:
                await asyncio.sleep(self._chance.uniform(self.pause / 5, self.pause))

    def _text(self) -> str:
        return f"class BETWEEN {self._low} AND {self._high}"

    def _some_classes(self) -> tuple[int, int]:
        """Return a range around the middle, so that filters overlap, cover each other and can be merged."""
        return self._chance.randrange(CLASSES * 3 // 10), self._chance.randrange(CLASSES * 6 // 10, CLASSES)

    def _note_wanted(self, called: float, since: float | None = None) -> None:
        at = now()
        assert self._bus is not None
        self._notebook.write(
            Wanted(
                called=called,
                at=at,
                subscriber=self.name,
                client=self._bus.name,
                life=self._life,
                low=self._low,
                high=self._high,
                since=at if since is None else since,
            )
        )

    def _note_taken(self, notification: Notification) -> None:
        if notification.gap is not None:
            self._note_gap(notification.gap)
        event = notification.event
        origin, _ = event.stream or ("", "")
        self._notebook.write(
            Taken(
                at=now(),
                subscriber=self.name,
                life=self._life,
                source=event.source,
                number=event.data["number"],
                token=event.data["token"],
                origin=origin,
                seq=event.seq or 0,
            )
        )

    def _note_gap(self, gap: Gap) -> None:
        self._notebook.write(GapTold(at=now(), subscriber=self.name, life=self._life, lost=gap.lost, reason=gap.reason))


class NamedReader(Reader):
    """Has a name. It leaves once, and lives again under its name at the same broker before its lease is over.

    It hands over what it has seen: its broker may have been killed meanwhile, and knows nothing of it then.
    """

    def __init__(self, name: str, plan: Plan, addresses: list[str], notebook: Notebook) -> None:
        super().__init__(name, plan, addresses, notebook)
        self._client = name

    async def act(self) -> None:
        await asyncio.sleep(self._plan.seconds * self._chance.uniform(0.3, 0.6))
        seen = dict(self._subscription.seen) if self._subscription is not None else {}
        await self.close()
        self._life += 1
        await asyncio.sleep(self._chance.uniform(0.5, 3))
        await self._begin({"seen": seen} if seen else {})

    def _next_home(self) -> int:
        return self._home


class ReplayingReader(Reader):
    """Subscribes in the middle of the run, and wants all of the past."""

    begins_at = 0.3

    def _terms(self) -> tuple[dict[str, Any], float | None]:
        return {"replay": vestnik.Replay(all=True)}, 0.0


class LateReader(Reader):
    """Subscribes late, and wants what was published since some time ago."""

    begins_at = 0.6

    def _terms(self) -> tuple[dict[str, Any], float | None]:
        ago = self._plan.seconds * 0.3
        since = int((time.time() - ago) * MICROS)
        return {"replay": vestnik.Replay(since=since)}, now() - ago + CLOCK_SLACK


class SlowReader(Reader):
    """Takes some milliseconds for each event, with a short queue."""

    pause = 0.005
    queue = 50


class MovingReader(Reader):
    """Leaves its broker up to three times, and goes on at another one from what it has seen.

    It moves only when it knows a position of every broker: from others it would get nothing that it missed.
    """

    async def act(self) -> None:
        for _ in range(3):
            await asyncio.sleep(self._plan.seconds * self._chance.uniform(0.15, 0.3))
            seen = dict(self._subscription.seen) if self._subscription is not None else {}
            if len(seen) < len(self._addresses):
                LOG.info("%s has seen %s and stays", self.name, seen)
                continue
            await self.close()
            self._life += 1
            await asyncio.sleep(self._chance.uniform(0, 1))
            self._home = self._next_home()
            await self._begin({"seen": seen})


class ChangingReader(Reader):
    """Changes its filter four times; the classes in the middle it always wants."""

    async def act(self) -> None:
        for _ in range(4):
            await asyncio.sleep(self._plan.seconds * self._chance.uniform(0.1, 0.2))
            assert self._subscription is not None
            called = now()
            self._low, self._high = self._some_classes()
            await self._subscription.change(self._text())
            self._note_wanted(called)


KINDS: dict[str, type[Reader]] = {
    "plain": Reader,
    "named": NamedReader,
    "slow": SlowReader,
    "moving": MovingReader,
    "changing": ChangingReader,
    "replaying": ReplayingReader,
    "late": LateReader,
}


async def subscribe(plan: Plan, addresses: list[str], notebook: Notebook) -> None:
    readers = [kind(name, plan, addresses, notebook) for name, kind in KINDS.items()]
    for reader in readers:
        if not reader.begins_at:
            await reader.subscribe()
    sys.stderr.write("settled\n")
    sys.stderr.flush()
    tasks = [asyncio.create_task(_play(reader, plan)) for reader in readers]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    LOG.info("ended with %r", dict(zip(KINDS, outcomes, strict=True)))
    for reader in readers:
        await reader.close()


async def _play(reader: Reader, plan: Plan) -> None:
    if reader.begins_at:
        await asyncio.sleep(plan.seconds * reader.begins_at)
        await reader.subscribe()
    await reader.act()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    given, where, file = sys.argv[1:]
    asyncio.run(subscribe(msgspec.json.decode(given, type=Plan), where.split(","), Notebook(Path(file))))
