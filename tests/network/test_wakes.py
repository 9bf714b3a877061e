"""A broker is woken at every time that it asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Effect, Tick, Wake
from vestnik.observe.chronicle import Chronicle
from vestnik.observe.counts import Counts
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.server.desk import Desk
from vestnik.server.engine import LATEST_TICK, Engine
from vestnik.server.memory import MemoryStore
from vestnik.server.wakes import Wakes
from vestnik.wire.messages import Gap, Message


class Timers:
    """A loop and its clock: time passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self._calls: list[tuple[float, Callable[[], None], asyncio.TimerHandle]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(self.now + delay, callback, (), asyncio.get_running_loop())
        self._calls.append((self.now + delay, callback, handle))
        return handle

    def pass_until(self, end: float) -> None:
        while due := [one for one in self._calls if one[0] <= end and not one[2].cancelled()]:
            first = min(due, key=lambda one: one[0])
            self._calls.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end


class Nowhere:
    def send(self, to: str, message: Message) -> None: ...

    def part(self, neighbour: str, code: str, reason: str) -> None: ...

    def gap_told(self, client: str, name: str, gap: Gap) -> None: ...

    def go_on(self, node: str) -> None: ...

    def flush(self) -> None: ...


class Asking:
    """A core that notes when it is told the time, and first asks to be woken at some times."""

    name = "b"
    router = None

    def __init__(self, timers: Timers, *times: float) -> None:
        self._timers = timers
        self._times = times
        self.ticks: list[float] = []

    def handle(self, message: Message, sender: str, now: float) -> list[Effect]:
        assert isinstance(message, Tick)
        times, self._times = self._times, ()
        self.ticks.append(self._timers.now)
        return [Wake(at) for at in times]


def engine_of(core: Any, timers: Timers, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(time, "time", lambda: timers.now)
    monkeypatch.setattr(time, "monotonic", lambda: timers.now)
    engine = Engine(core, MemoryStore(1), Desk(core, Chronicle(timers.now), Counts()), Nowhere())
    monkeypatch.setattr(engine, "_loop", timers)
    return engine


async def test_a_later_time_is_not_forgotten_for_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers()
    core = Asking(timers, 1_002.0, 1_001.0, 1_003.0, 1_002.0)
    engine_of(core, timers, monkeypatch).start()
    timers.pass_until(1_004.0)
    assert core.ticks == [1_000.0, 1_001.0, 1_002.0, 1_003.0]
    timers.pass_until(1_003.0 + 2 * LATEST_TICK)
    assert core.ticks[4:] == [1_003.0 + LATEST_TICK, 1_003.0 + 2 * LATEST_TICK], "and without being asked"


async def test_sweeps_are_on_time_whatever_else_there_is_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two sweeps a broker is woken for other things; its next sweep is not put off by that."""
    timers = Timers()
    swept: list[float] = []
    core = BrokerCore("b", Router(make_strategy("merging")), sweep=1.0)
    expire = core._reception.expire

    def sweep(now: float) -> list[Effect]:
        swept.append(now)
        return expire(now)

    monkeypatch.setattr(core._reception, "expire", sweep)
    engine = engine_of(core, timers, monkeypatch)
    engine.start()
    for at in range(1_000, 1_010):
        timers.pass_until(at + 0.25)
        engine._perform(Wake(at + 0.5))
    assert swept == [float(at) for at in range(1_000, 1_010)]


def test_the_times_that_were_asked_for() -> None:
    wakes = Wakes()
    for at in (3.0, 1.0, 2.0, 1.0):
        wakes.put(at)
    assert (wakes.next, len(wakes)) == (1.0, 3)
    wakes.drop_until(2.0)
    wakes.shift(10.0)
    wakes.put(13.0)
    assert (wakes.next, len(wakes)) == (13.0, 1)
    wakes.drop_until(13.0)
    assert (wakes.next, len(wakes)) == (float("inf"), 0)
