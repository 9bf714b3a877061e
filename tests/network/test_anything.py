"""Applications that do anything, at brokers that are cut off and started again: what each subscription is given.

Numbers go on, no event comes twice, each source is in order, and nothing is missing that was published once the
subscription was settled, nor of the past where all of it is to be replayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

import vestnik
from network.worlds import ANYWHERE, until
from vestnik import Event
from vestnik.client.bus import Bus
from vestnik.client.notifications import Notification
from vestnik.client.subscriptions import Subscription
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address, read_address
from vestnik.transport.tcp import TcpEnd

CLASSES = 100
"""Events are of so many classes, and subscriptions want some of them."""
STEPS = 50


def made(number: int, source: str) -> Event:
    return Event("made", {"number": number, "class": number % CLASSES}, source=source)


@dataclass
class Watch:
    """A subscription, what came for it, and the numbers of events that have to."""

    subscription: Subscription
    wanted: range
    due: set[int]
    is_settled: bool = True
    seen: list[Notification] = field(default_factory=list)

    @property
    def missing(self) -> set[int]:
        return self.due - {n.event.data["number"] for n in self.seen} if self.is_settled else set()

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
    """Three brokers in a line, a publisher at each, and four clients, two of which have a name."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self._folder = folder
        self._chance = chance
        self._places = [ANYWHERE] * 3
        self._brokers: list[Broker] = []
        self._published = 0
        self._reading: list[asyncio.Task[None]] = []
        self.watches: list[Watch] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        async with AsyncExitStack() as stack:
            for place in range(3):
                self._brokers.append(await self._start(place))
            stack.push_async_callback(self._end)
            await self._linked()
            connect = [vestnik.connect(str(self._places[place]), name=f"p{place}") for place in range(3)]
            self._publishers = [await stack.enter_async_context(one) for one in connect]
            self._homes = [self._chance.randrange(3) for _ in range(4)]
            named = [
                vestnik.connect(str(self._places[home]), name=f"c{n}" if n % 2 else None)
                for n, home in enumerate(self._homes)
            ]
            self._clients: list[Bus] = [await stack.enter_async_context(one) for one in named]
            yield self

    async def _start(self, place: int) -> Broker:
        join: tuple[Address, ...] = (self._places[place - 1],) if place else ()
        data = self._folder / f"b{place}"
        broker = Broker(Settings(name=f"b{place}", listen=self._places[place], join=join, data=data))
        await broker.__aenter__()
        self._places[place] = read_address(broker.address)
        return broker

    async def _end(self) -> None:
        for task in self._reading:
            task.cancel()
        for broker in reversed(self._brokers):
            await broker.__aexit__()

    async def _linked(self) -> None:
        """All brokers reach all; one that has just started knows nobody."""
        await until(lambda: all(len(broker.host.core.surroundings.positions) == 3 for broker in self._brokers))

    # --- what may happen ---

    async def publish(self) -> None:
        place, count = self._chance.randrange(3), self._chance.choice([1, 3, 20, 200])
        events = [made(self._published + n, f"s{place}") for n in range(1, count + 1)]
        self._published += count
        await self._publishers[place].publish_many(events)
        for watch in self.watches:
            watch.due |= {e.data["number"] for e in events if watch.is_settled and e.data["class"] in watch.wanted}

    async def subscribe(self) -> None:
        wanted, replays = self._some(), [None, None, vestnik.Replay(all=True), vestnik.Replay(last=5)]
        replay = self._chance.choice(replays)
        past = range(1, self._published + 1) if replay is not None and replay.all else ()
        due = {number for number in past if number % CLASSES in wanted}
        bus, queue = self._chance.choice(self._clients), self._chance.choice([5, 1000])
        subscription = await bus.subscribe(_text(wanted), replay=replay, settled=True, queue=queue)
        watch = Watch(subscription, wanted, due)
        self.watches.append(watch)
        self._reading.append(asyncio.create_task(watch.read(self._chance)))

    async def change(self) -> None:
        for watch in self._chance.sample(self.watches, min(1, len(self.watches))):
            if watch.is_settled:
                watch.wanted = self._some()
                await watch.subscription.change(_text(watch.wanted))
                watch.due = {number for number in watch.due if number % CLASSES in watch.wanted}
                await asyncio.sleep(0.1)  # to change is not to be settled

    async def unsubscribe(self) -> None:
        for watch in self._chance.sample(self.watches, 1) if len(self.watches) > 2 else ():
            watch.is_settled = False
            await watch.subscription.unsubscribe()

    async def cut(self) -> None:
        end = self._chance.choice(self._clients)._line._end
        if isinstance(end, TcpEnd) and end._transport is not None:
            end._transport.abort()

    async def subscribe_to_who_restarts(self) -> None:
        """What is not replayed yet when a broker ends comes all the same."""
        await self.subscribe()
        await self._restart(self._homes[self._clients.index(self.watches[-1].subscription._bus)])

    async def restart(self) -> None:
        await self._restart(self._chance.randrange(3))

    async def _restart(self, place: int) -> None:
        await self._brokers[place].__aexit__()
        self._brokers[place] = await self._start(place)
        await self._linked()
        await until(lambda: all(bus.is_connected for bus in (*self._publishers, *self._clients)))

    async def nothing(self) -> None:
        await asyncio.sleep(self._chance.choice([0, 0.01, 0.1]))

    def _some(self) -> range:
        low = self._chance.randrange(60)
        return range(low, low + self._chance.randrange(20, 60))


def _text(wanted: range) -> str:
    return f"class BETWEEN {wanted[0]} AND {wanted[-1]}"


@pytest.mark.parametrize("seed", range(6))
async def test_what_each_subscription_is_given(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    async with World(tmp_path, chance).running() as world:
        acts = [
            world.publish,
            world.subscribe,
            world.subscribe_to_who_restarts,
            world.change,
            world.unsubscribe,
            world.cut,
            world.restart,
            world.nothing,
        ]
        for act in chance.choices(acts, [12, 4, 1, 3, 2, 4, 1, 4], k=STEPS):
            await act()
        await until(lambda: not any(watch.missing for watch in world.watches))
        for watch in world.watches:
            watch.check()
