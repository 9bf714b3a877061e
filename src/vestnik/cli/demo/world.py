"""All that there is in the demo: brokers, a history, a market, and desks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from shutil import copyfile
from typing import Final, NamedTuple, TypeAlias

from vestnik.cli.demo.brokers import LINE, MIDDLE, Brokers
from vestnik.cli.demo.desks import Board, Desk
from vestnik.cli.demo.market import QUOTES, Market
from vestnik.cli.demo.report import PAGE, PLAN, write_plan
from vestnik.client.connect import connect
from vestnik.client.services import ServiceBus
from vestnik.services.history import History
from vestnik.trace.files import to_lines
from vestnik.trace.records import Settled

PAST: Final = 10
"""Quotes that the history keeps."""
PATIENCE: Final = 60.0
"""Seconds in which what is waited for has to happen."""
LOOK_EVERY: Final = 0.02
SETTLED: Final = "settled.jsonl"
TRACES: Final = [*[f"{name}.jsonl" for name in LINE], SETTLED]

Say: TypeAlias = Callable[[str, str], None]


class TooLong(Exception):
    """What has to happen has not."""


class Summary(NamedTuple):
    """What was published, and what the desks, and nobody else, were notified of.

    `made_up` is what was published while the broker in the middle was away, and came later.
    """

    published: int
    notified: int
    replayed: int
    made_up: int
    lost: int

    def __str__(self) -> str:
        sent = f"published {self.published}; to the desks: notified {self.notified}, replayed {self.replayed}"
        return f"{sent}, made up after the kill {self.made_up}, lost {self.lost}"


class World:
    """Plays in `folder`. `say` is told who does what. When it is left, nothing of it runs."""

    def __init__(self, folder: Path, say: Say) -> None:
        self.say = say
        self.states = dict.fromkeys(LINE, "starting")
        self.desks: list[Desk] = []
        self.board: Board | None = None
        self.made_up = 0
        self.wanted: dict[str, str] = {}  # the last filter of each desk
        self._folder = folder
        self._brokers = Brokers(folder)
        self._clients = AsyncExitStack()
        self._settled: list[Settled] = []

    async def __aenter__(self) -> World:
        try:
            await self._begin()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._clients.aclose()
        finally:
            self._brokers.kill_all()

    async def _begin(self) -> None:
        await asyncio.gather(*[self.start(name) for name in LINE if name != MIDDLE])
        await self.start(MIDDLE)
        bus = await self.client("market", LINE[0])
        async with asyncio.timeout(PATIENCE):
            while len((await bus.inspect("status"))["brokers"]) < len(LINE):
                await asyncio.sleep(LOOK_EVERY)
        history = History(QUOTES, join=self._brokers.addresses[LINE[-1]], name="history", last=PAST)
        await self._clients.enter_async_context(history)
        self.say("history", f"keeps the last {PAST} quotes, behind {LINE[-1]}")
        self.market = Market(bus, self.say)
        await self.market.open().ready()

    # --- brokers and their clients ---

    async def start(self, broker: str) -> None:
        await self._brokers.start(broker)
        self.states[broker] = "up"
        self.say(broker, f"listening on {self._brokers.addresses[broker]}")

    def kill(self, broker: str) -> None:
        self._brokers.kill(broker)
        self.states[broker] = "killed"

    async def client(self, name: str, broker: str) -> ServiceBus:
        return await self._clients.enter_async_context(connect(self._brokers.addresses[broker], name=name))

    # --- what is so ---

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise TooLong(f"{what}: that has not happened in {PATIENCE:g} seconds") from None

    @asynccontextmanager
    async def settled(self) -> AsyncIterator[None]:
        """The market waits, and all have been sent what is theirs; that is noted for the checker."""
        self.market.is_open.clear()
        deadline = time.monotonic() + PATIENCE
        while not await self._is_settled():
            if time.monotonic() > deadline:
                waiting = ", ".join(desk.name for desk in self.all_desks if not desk.is_up_to_date)
                raise TooLong(f"what was published has not come to {waiting} in {PATIENCE:g} seconds: {self.summary}")
            await asyncio.sleep(LOOK_EVERY)
        self._settled.append(Settled(time.time()))
        yield
        self.market.is_open.set()

    async def settle(self) -> None:
        """Be settled for a moment, and go on until another quote has come."""
        async with self.settled():
            before = len(self.market.published)
        await self.until(lambda: len(self.market.published) > before, "another quote is published")
        await self.until(lambda: not any(desk.missing for desk in self.desks), "it comes to all")

    async def _is_settled(self) -> bool:
        async with self.market.held:
            return all(desk.is_up_to_date for desk in self.all_desks)

    @property
    def all_desks(self) -> list[Desk | Board]:
        return [*self.desks, *([] if self.board is None else [self.board])]

    @property
    def summary(self) -> Summary:
        replayed = sum(desk.replayed for desk in self.desks)
        notified = sum(len(desk.seen) for desk in self.desks) - replayed
        lost = sum(len(desk.missing) for desk in self.desks)
        return Summary(len(self.market.published), notified, replayed, self.made_up, lost)

    async def check(self) -> bool:
        """End the brokers, and see whether `vestnik check` finds anything wrong in what they wrote."""
        await self._clients.aclose()
        await self._brokers.end()
        (self._folder / SETTLED).write_bytes(b"".join(to_lines(self._settled)))
        self.say("demo", f"vestnik check {' '.join(TRACES)}")
        code, said = await self._brokers.check(TRACES)
        for line in said.splitlines():
            self.say("check", line)
        return code == 0

    def _say_of_pipeline(self, line: str) -> None:
        if not line.startswith("report "):  # where the page is first
            self.say("pipeline", line)

    async def report(self, page: Path) -> bool:
        """Have the pipeline go through what the brokers stored and wrote; put its page where it stays."""
        write_plan(self._folder, LINE, TRACES, self.wanted)
        self.say("demo", f"vestnik pipeline run {PLAN}: Spark takes in, matches, derives and verifies")
        code = await self._brokers.report(PLAN, self._say_of_pipeline)
        if (self._folder / PAGE).exists():
            copyfile(self._folder / PAGE, page)
            self.say("report", f"is in {page}")
        return code == 0
