"""The nemesis: faults at random times, at brokers and links that no other fault concerns."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from jepsen.cluster import BrokerTree
from jepsen.disk import SmallDisk
from jepsen.links import LinkProxy
from jepsen.plan import BROKERS, Plan

OVERTIME = 3.0
"""Seconds by which a fault may outlast the time for faults."""
SMALL_DISK = BROKERS - 1
"""The broker whose disk gets full."""


class Nemesis:
    """Each fault takes a broker, or the link of a broker to its parent, and leaves it whole again."""

    def __init__(self, plan: Plan, tree: BrokerTree, disk: SmallDisk | None, log: Path) -> None:
        self._plan = plan
        self._tree = tree
        self._disk = disk
        self._log = log
        self._chance = plan.chance("nemesis")
        self._busy: set[int] = set()
        self._ends = 0.0
        self.done: Counter[str] = Counter()

    async def play(self) -> None:
        """Make faults for the length of the run, and wait until the last one has ended."""
        self._ends = time.monotonic() + self._plan.seconds
        at_once = 2 if self._plan.lease < 30 else 3
        faults = {
            self._kill: 4,
            self._stop_short: 1,
            self._stop_middle: 2,
            self._stop_long: 2,
            self._cut: 3,
            self._silence: 2,
            self._cut_clients: 2,
            self._silence_clients: 1,
            self._move: 2,
            self._move_by_restart: 2,
            **({self._fill: 1} if self._disk is not None else {}),
        }
        async with asyncio.TaskGroup() as running:
            open_tasks: set[asyncio.Task[None]] = set()
            while self._left > 0:
                (fault,) = self._chance.choices(list(faults), list(faults.values()))
                task = running.create_task(self._guarded(fault))
                open_tasks.add(task)
                task.add_done_callback(open_tasks.discard)
                await asyncio.sleep(self._chance.uniform(0.3, 2.5) * min(1.0, 0.3 + self._plan.seconds / 60))
                while len(open_tasks) >= at_once:
                    await asyncio.wait(open_tasks, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _left(self) -> float:
        return self._ends - time.monotonic()

    async def _guarded(self, fault: Callable[[int], Awaitable[bool]]) -> None:
        """Run a fault at a broker that nothing else happens to."""
        free = sorted(set(range(BROKERS)) - self._busy)
        place = SMALL_DISK if fault == self._fill else self._chance.choice(free)
        if place in self._busy:
            return
        self._busy.add(place)
        name = fault.__name__.lstrip("_")
        try:
            self._note(f"begin {name} b{place}")
            happened = await fault(place)
            self.done[name] += happened
            self._note(f"{'end' if happened else 'skip'} {name} b{place}")
        finally:
            self._busy.discard(place)

    def _note(self, what: str) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{time.time():.3f} {time.monotonic():.3f} {what}\n")

    # --- faults: each returns whether it happened ---

    async def _kill(self, place: int) -> bool:
        self._tree.kill(place)
        await asyncio.sleep(self._chance.choice([0, 0, self._chance.uniform(0, 4)]))
        await self._tree.start(place)
        return True

    async def _stop_short(self, place: int) -> bool:
        return await self._stop(place, self._chance.uniform(0.2, 0.9) * min(self._plan.heartbeat, 5))

    async def _stop_middle(self, place: int) -> bool:
        return await self._stop(place, self._chance.uniform(1.2 * self._plan.heartbeat, 0.8 * self._plan.lease))

    async def _stop_long(self, place: int) -> bool:
        return await self._stop(place, self._plan.lease * self._chance.uniform(1.1, 1.4))

    async def _stop(self, place: int, seconds: float) -> bool:
        if seconds > self._left + OVERTIME:
            return False
        self._tree.freeze(place)
        await asyncio.sleep(seconds)
        self._tree.thaw(place)
        return True

    async def _cut(self, place: int) -> bool:
        return await self._cut_for(await self._link(place), self._chance.uniform(0.2, 6))

    async def _silence(self, place: int) -> bool:
        longest = min(1.4 * self._plan.lease, self._plan.seconds / 2)
        return await self._silence_for(await self._link(place), self._chance.uniform(0.2, longest))

    async def _cut_clients(self, place: int) -> bool:
        return await self._cut_for(self._tree.doors[place], self._chance.uniform(0.2, 4))

    async def _silence_clients(self, place: int) -> bool:
        return await self._silence_for(self._tree.doors[place], self._chance.uniform(0.2, 8))

    async def _link(self, place: int) -> LinkProxy | None:
        parent = self._tree.parents[place]
        return None if parent < 0 else await self._tree.link(place, parent)

    async def _cut_for(self, proxy: LinkProxy | None, seconds: float) -> bool:
        if proxy is None or seconds > self._left + OVERTIME:
            return False
        proxy.cut()
        await asyncio.sleep(seconds)
        proxy.heal()
        return True

    async def _silence_for(self, proxy: LinkProxy | None, seconds: float) -> bool:
        if proxy is None or seconds > self._left + OVERTIME:
            return False
        proxy.silence()
        await asyncio.sleep(seconds)
        proxy.heal()
        return True

    async def _move(self, place: int) -> bool:
        """Move a broker to another parent while it runs."""
        parent = self._other_parent(place)
        if parent is None:
            return False
        if said := await self._tree.adopt(place, parent):
            self._note(f"b{place} did not move below b{parent}: {said}")
            self._tree.kill(place)
            await self._tree.start(place)
        return True

    async def _move_by_restart(self, place: int) -> bool:
        parent = self._other_parent(place)
        if parent is None:
            return False
        self._tree.kill(place)
        self._tree.parents[place] = parent
        await self._tree.start(place)
        return True

    def _other_parent(self, place: int) -> int | None:
        """Return a parent that keeps the tree a tree; none for the root."""
        if self._tree.parents[place] < 0:
            return None
        below = {*self._tree.below(place), self._tree.parents[place]}
        return self._chance.choice([other for other in range(BROKERS) if other not in below] or [None])

    async def _fill(self, place: int) -> bool:
        """Fill the disk of a broker, free it, and start the broker again, as the guide says."""
        assert self._disk is not None
        self._disk.fill()
        await asyncio.sleep(self._chance.uniform(0.5, 4))
        self._disk.free()
        await self._tree.end(place)
        await self._tree.start(place)
        return True
