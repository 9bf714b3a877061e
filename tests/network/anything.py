"""Applications that do anything, at brokers that end at any time: a world of them, and what each subscription is given.

Numbers go on, no event comes twice, each source is in order, and nothing is missing that was published once the
subscription was settled, nor of the past where all of it is to be replayed.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import vestnik
from network.processes import LISTENING
from network.test_durable import VESTNIK
from network.worlds import ANYWHERE
from vestnik import Event
from vestnik.client.bus import Bus
from vestnik.client.notifications import Notification
from vestnik.client.subscriptions import Subscription
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import read_address
from vestnik.transport.tcp import TcpEnd

CLASSES = 100
"""Events are of so many classes, and subscriptions want some of them."""
STRATEGIES = ("merging", "covering", "simple", "flooding")
PATIENCE = 60.0
"""Seconds in which what has to be is."""


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not await condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"it was waited in vain until {what}") from None


class Brokers(ABC):
    """A tree of brokers, by their places in it; each keeps its address and its folder when it is started again."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self._folder = folder
        self._strategy = chance.choice(STRATEGIES)
        self._parents = [-1, *(chance.randrange(place) for place in range(1, chance.randint(2, 4)))]
        self.addresses = [str(ANYWHERE)] * len(self._parents)
        self._running: dict[int, Any] = {}

    def __str__(self) -> str:
        return f"{self._strategy} in the tree {self._parents}"

    def _joins(self, place: int) -> list[str]:
        return [self.addresses[self._parents[place]]] if place else []

    @abstractmethod
    async def start(self, place: int) -> None: ...

    @abstractmethod
    async def end(self, place: int) -> None: ...

    async def end_all(self) -> None:
        for place in list(self._running):
            await self.end(place)


class BrokersHere(Brokers):
    """In this process; they end in good order."""

    async def start(self, place: int) -> None:
        settings = Settings(
            name=f"b{place}",
            listen=read_address(self.addresses[place]),
            join=tuple(map(read_address, self._joins(place))),
            data=self._folder / f"b{place}",
            routing=self._strategy,
        )
        self._running[place] = await Broker(settings).__aenter__()
        self.addresses[place] = self._running[place].address

    async def end(self, place: int) -> None:
        await self._running.pop(place).__aexit__()


class BrokersApart(Brokers):
    """In processes of their own; they end by kill -9."""

    async def start(self, place: int) -> None:
        name, said = f"b{place}", self._folder / f"b{place}.log"
        command = [str(VESTNIK), "serve", "--name", name, "--data", str(self._folder / name)]
        command += ["--routing", self._strategy, "--listen", self.addresses[place]]
        command += [part for joined in self._joins(place) for part in ("--join", joined)]
        with said.open("wb") as log:
            self._running[place] = subprocess.Popen(command, stderr=log)

        async def listens() -> bool:
            return b"listening on " in said.read_bytes().rpartition(b"\n")[0]

        await until(listens, f"{name} listens")
        lines = said.read_text("utf-8").splitlines()
        self.addresses[place] = next(found[1] for found in map(LISTENING.search, lines) if found)

    async def end(self, place: int) -> None:
        running = self._running.pop(place)
        running.kill()
        running.wait()


@dataclass
class Watch:
    """A subscription, what came for it, and the numbers of events that have to."""

    subscription: Subscription
    home: int
    wanted: range
    due: set[int]
    is_over: bool = False
    seen: list[Notification] = field(default_factory=list)

    @property
    def missing(self) -> set[int]:
        return set() if self.is_over else self.due - {n.event.data["number"] for n in self.seen}

    async def read(self, chance: Random) -> None:
        async for notification in self.subscription:
            self.seen.append(notification)
            if chance.random() < 0.02:
                await asyncio.sleep(0.003)

    def check(self) -> None:
        given = [n.event.data["number"] for n in self.seen]
        assert len(set(given)) == len(given), "none comes twice"
        last = 0
        for n in self.seen:
            lost = 0 if n.gap is None or n.gap.lost is None else n.gap.lost
            assert n.number == last + 1 + lost, "numbers go on"
            last = n.number
        for source in {n.event.source for n in self.seen}:
            own = [n.event.data["number"] for n in self.seen if n.event.source == source]
            assert own == sorted(own), "each source is in order"


class World:
    """Brokers, a publisher at each, and four clients, two of which have a name."""

    def __init__(self, brokers: Brokers, chance: Random) -> None:
        self._brokers = brokers
        self._chance = chance
        self._places = range(len(brokers.addresses))
        self._published = 0
        self._publishing: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []
        self.watches: list[Watch] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._brokers.end_all)
            for place in self._places:
                await self._brokers.start(place)
            self._publishers = [await stack.enter_async_context(self._connect(at, f"p{at}")) for at in self._places]
            self._homes = [self._chance.choice(self._places) for _ in range(4)]
            names = [None, "c1", None, "c3"]
            connect = [self._connect(home, name) for home, name in zip(self._homes, names, strict=True)]
            self._clients = [await stack.enter_async_context(one) for one in connect]
            await self._linked()
            stack.callback(self._stop)
            yield self

    def _connect(self, place: int, name: str | None) -> Bus:
        return vestnik.connect(self._brokers.addresses[place], name=name, timeout=PATIENCE)

    def _stop(self) -> None:
        for task in (*self._publishing, *self._reading):
            task.cancel()

    async def _linked(self) -> None:
        """All brokers reach all; one that has just started knows nobody."""

        async def are_linked() -> bool:
            found = [await bus.inspect("status") for bus in self._publishers]
            return all(len(status["brokers"]) == len(self._places) for status in found)

        await until(are_linked, "all brokers reach all")

    async def settled(self) -> None:
        """All that was published is stored, all brokers reach all, and whatever is due has come."""

        async def all_came() -> bool:
            return not any(watch.missing for watch in self.watches)

        await asyncio.gather(*self._publishing)
        await self._linked()
        await until(all_came, f"nothing is missing, by {self._brokers}")

    # --- what may happen ---

    async def publish(self) -> None:
        """Often not waiting for it; what a publication adds to is due if it is wanted all the while."""
        place, count = self._chance.choice(self._places), self._chance.choice([1, 3, 20, 200])
        numbers = range(self._published + 1, self._published + count + 1)
        source = f"s{place}-{len(self._publishing)}"
        events = [Event("made", {"number": n, "class": n % CLASSES}, source=source) for n in numbers]
        self._published += count
        wanting = [(watch, watch.wanted) for watch in self.watches]

        async def published() -> None:
            await self._publishers[place].publish_many(events)
            for watch, wanted in wanting:
                if watch.wanted is wanted:
                    watch.due |= {number for number in numbers if number % CLASSES in wanted}

        self._publishing.append(asyncio.create_task(published()))
        if self._chance.random() < 0.7:
            await self._publishing[-1]

    async def subscribe(self) -> None:
        await self._linked()
        wanted, replays = self._some(), [None, None, vestnik.Replay(all=True), vestnik.Replay(last=5)]
        replay, client, queue = self._chance.choice(replays), self._chance.randrange(4), self._chance.choice([5, 1000])
        if replay is not None:
            await asyncio.gather(*self._publishing)
        past = range(1, self._published + 1) if replay is not None and replay.all else ()
        bus = self._clients[client]
        subscription = await bus.subscribe(_text(wanted), replay=replay, settled=True, queue=queue)
        due = {number for number in past if number % CLASSES in wanted}
        watch = Watch(subscription, self._homes[client], wanted, due)
        self.watches.append(watch)
        self._reading.append(asyncio.create_task(watch.read(self._chance)))

    async def subscribe_to_who_ends(self) -> None:
        """What is not replayed yet when a broker ends comes all the same."""
        await self.subscribe()
        await asyncio.sleep(self._chance.choice([0, 0, 0.005, 0.05]))
        await self._restart(self.watches[-1].home)

    async def change(self) -> None:
        for watch in self._chance.sample(self._open, min(1, len(self._open))):
            await asyncio.gather(*self._publishing)
            await self._linked()
            watch.wanted = self._some()
            await watch.subscription.change(_text(watch.wanted))
            watch.due = {number for number in watch.due if number % CLASSES in watch.wanted}
            behind = await watch.subscription._bus.subscribe(_text(watch.wanted), settled=True)
            await behind.unsubscribe()  # what comes after a change on all its ways is settled after it

    async def unsubscribe(self) -> None:
        for watch in self._chance.sample(self._open, 1) if len(self._open) > 2 else ():
            watch.is_over = True
            await watch.subscription.unsubscribe()

    async def cut(self) -> None:
        end = self._chance.choice(self._clients)._line._end
        if isinstance(end, TcpEnd) and end._transport is not None:
            end._transport.abort()

    async def restart(self) -> None:
        await self._restart(self._chance.choice(self._places))

    async def restart_two(self) -> None:
        await self._restart(*self._chance.sample(self._places, 2))

    async def _restart(self, *places: int) -> None:
        for place in places:
            await self._brokers.end(place)
        await asyncio.sleep(self._chance.choice([0, 0, 0.3]))
        for place in places:
            await self._brokers.start(place)

    async def nothing(self) -> None:
        await asyncio.sleep(self._chance.choice([0, 0.01, 0.1]))

    @property
    def _open(self) -> list[Watch]:
        return [watch for watch in self.watches if not watch.is_over]

    def _some(self) -> range:
        low = self._chance.randrange(60)
        return range(low, low + self._chance.randrange(20, 60))


def _text(wanted: range) -> str:
    return f"class BETWEEN {wanted[0]} AND {wanted[-1]}"


@contextmanager
def halting(chance: Random) -> Iterator[None]:
    """A machine on which everything stands still at times."""

    async def halt() -> None:
        while True:
            await asyncio.sleep(chance.choice([0.001, 0.01, 0.05]))
            if chance.random() < 0.3:
                time.sleep(chance.choice([0.001, 0.01, 0.05, 0.2]))

    task = asyncio.create_task(halt())
    try:
        yield
    finally:
        task.cancel()
