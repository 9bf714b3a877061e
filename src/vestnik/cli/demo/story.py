"""What happens in the demo, act by act."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from itertools import chain, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from vestnik.cli.demo.brokers import MIDDLE
from vestnik.cli.demo.desks import Board, Desk, Mover
from vestnik.cli.demo.market import OPENING
from vestnik.cli.demo.world import PAST, Say, TooLong, World
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.services.inquest import inquire

ROUND: Final = 20.0
"""Seconds from one kill to the next where the play has no end."""
LEAVING: Final = 2.5
"""Seconds that are left for its end."""
QUOTES: Final = "type IS market.quote"
BARGAIN: Final = "symbol = 'INIT' AND price < 50"


class Story:
    """Plays for about so many `seconds`, or until it is `over`. `world` is there while it plays.

    At the end comes the report of the pipeline, as a file `page`, if there is to be one.
    """

    def __init__(self, seconds: float | None, say: Say, page: Path | None = None) -> None:
        self.world: World | None = None
        self.over = asyncio.Event()
        self.is_right = False
        self._is_endless = seconds is None
        self._ends = time.monotonic() + (ROUND if seconds is None else seconds - LEAVING)
        self._say = say
        self._page = page

    async def play(self) -> None:
        """All of it, in a folder that is gone afterwards."""
        with TemporaryDirectory(prefix="vestnik-demo-") as folder:
            self._say("demo", f"three brokers in a line, b1 - b2 - b3, each a process; their files are in {folder}")
            async with World(Path(folder), self._say) as self.world:
                self.is_right = await self._comes_to_its_end(self.world) and not self.world.summary.lost
                self.is_right &= await self.world.check()
                if self._page is not None:
                    self.is_right &= await self.world.report(self._page)

    async def _comes_to_its_end(self, world: World) -> bool:
        try:
            await self._acts(world)
        except TooLong as error:
            world.say("demo", f"something is wrong: {error}")
            return False
        return True

    async def _acts(self, world: World) -> None:
        opening = self._nobody_wants_anything, self._desks_come, self._somebody_comes_late
        drama = self._why, self._kill
        for act in chain(opening, cycle(drama) if self._is_endless else drama):
            if self.over.is_set():
                break
            await act(world)
        await self._all_leave(world)

    async def _pause(self, share: float) -> None:
        """For a share of the time that is left, unless it is over before."""
        with suppress(TimeoutError):
            async with asyncio.timeout(share * max(0.0, self._ends - time.monotonic())):
                await self.over.wait()

    async def _nobody_wants_anything(self, world: World) -> None:
        world.say("market", "is ready, at b1; nobody wants quotes, so none is published")
        await self._pause(0.1)

    async def _desks_come(self, world: World) -> None:
        mover = Mover(await world.client("mover", "b1"), world.market, "b1")
        world.desks.append(mover)
        await mover.follow(OPENING["ACME"])
        world.say("mover", f"at b1 wants {mover.filter}, and then changes that with each price")
        await self._desk(world, "bargain", "b2", BARGAIN)
        await self._desk(world, "tape", "b3", QUOTES)
        world.board = Board(await world.client("board", "b3"), world.market, "b3")
        await world.board.want(QUOTES)
        world.say("board", f"at b3 shows the last of {QUOTES} for each symbol")
        await self._pause(0.3)

    async def _desk(self, world: World, name: str, broker: str, wanted: str, last: int = 0) -> Desk:
        desk = Desk(await world.client(name, broker), world.market, broker, last=last)
        world.desks.append(desk)
        await desk.want(wanted)
        world.say(name, f"at {broker} wants {wanted}" + (f", beginning with the last {last}" if last else ""))
        return desk

    async def _somebody_comes_late(self, world: World) -> None:
        await world.until(lambda: len(world.market.published) >= PAST, f"{PAST} quotes are published")
        late = await self._desk(world, "late", "b3", QUOTES, last=PAST)
        await world.until(lambda: late.replayed == PAST, "the past is replayed")
        world.say("late", f"got {late.seen[0]} to {late.seen[PAST - 1]} of the past; what comes now follows")
        await world.settle()
        await self._pause(0.2)

    async def _why(self, world: World) -> None:
        event = _not_for_bargain(world)
        world.say("demo", f"vestnik why {event.id} --client bargain")
        story = await inquire(world.market.bus, event.id, client="bargain")
        world.say("why", f"{story.verdict}: {story.said}")
        await self._pause(0.3)

    async def _kill(self, world: World) -> None:
        """The market goes on while the middle is away."""
        await world.settle()
        published, before = world.market.published, len(world.market.published)
        world.kill(MIDDLE)
        world.say(MIDDLE, "is killed by kill -9: bargain has no broker, and what b1 takes does not come to b3")
        await self._pause(0.4)
        await world.start(MIDDLE)
        await world.until(lambda: len(published) > before, "quotes are published")
        missed = [event.id for event in published[before:]]
        world.say("market", f"has published {missed[0]} to {missed[-1]} meanwhile")
        await world.until(
            lambda: not any(desk.missing & set(missed) for desk in world.desks), "what was missed comes later"
        )
        for desk in [desk for desk in world.desks if desk.broker != "b1"]:
            later = [id for id in desk.seen if id in missed]
            world.made_up += len(later)
            came = f"{later[0]} to {later[-1]}, {len(later)} in order" if later else "nothing that it wants"
            world.say(desk.name, f"has got what it missed: {came}")
        await world.settle()
        await self._pause(1.0)
        if self._is_endless:
            self._ends = time.monotonic() + ROUND

    async def _all_leave(self, world: World) -> None:
        async with world.settled():
            world.wanted = {desk.name: str(desk.filter) for desk in world.desks}
            for desk in world.all_desks:
                await desk.close()
        world.say("desks", "all have left")
        await world.until(lambda: world.market.is_quiet, "the market stops when nobody wants quotes")


def _not_for_bargain(world: World) -> Event:
    """The last quote that was nearly what it wants, if there was one."""
    wanted = Filter.parse(BARGAIN)
    missed = [event for event in world.market.published if not wanted.matches(event)]
    near = [event for event in missed if event.data["symbol"] == "INIT"]
    return (near or missed)[-1]
