"""One run: brokers, clients and faults, then healing, draining, the judge and `vestnik check`."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from jepsen.agreement import Comparison, compare
from jepsen.cluster import BrokerTree
from jepsen.disk import SmallDisk
from jepsen.judge import Verdict, judge
from jepsen.nemesis import SMALL_DISK, Nemesis
from jepsen.plan import Plan
from jepsen.processes import start
from jepsen.quiet import until_quiet
from jepsen.records import read_notes

WHOLE_WITHIN = 60.0
"""Seconds in which healed brokers must reach each other."""
ENDS_WITHIN = 60.0
"""Seconds in which a client process must end."""
LOOK_EVERY = 2.0
LONGEST_DRAIN = 150.0
QUIET_WITHIN = 90.0
"""Seconds in which healed brokers must be quiet at the same time: `vestnik check` needs that to know what is due."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run; `problem` is a failure of the brokers or of the harness that is no finding of the judge."""

    plan: Plan
    faults: dict[str, int]
    verdict: Verdict
    comparison: Comparison
    problem: str = ""

    @property
    def is_right(self) -> bool:
        return self.verdict.is_right and self.comparison.agrees and not self.problem

    def __str__(self) -> str:
        found = self.verdict
        columns = [
            str(self.plan),
            f"faults {sum(self.faults.values())}",
            f"acknowledged {found.acknowledged}",
            f"due {found.due}",
            f"delivered {found.delivered}",
            f"silent losses {len(found.lost)}",
            f"duplicates {len(found.duplicates)}",
            f"reordered {len(found.reordered)}",
            f"wrong {len(found.wrong)}",
            f"gaps {found.gaps} (false {found.false_gaps}, for {found.covered} events)",
            f"check agrees: {self.comparison}",
            *([f"problem: {self.problem}"] if self.problem else []),
        ]
        return "; ".join(columns)


class Clients:
    """A process of publishers or subscribers, which ends when its standard input is closed."""

    def __init__(self, module: str, plan: Plan, addresses: list[str], folder: Path) -> None:
        self.notes, self.log = folder / f"{module}.jsonl", folder / f"{module}.log"
        given = msgspec.json.encode(plan).decode()
        command = (sys.executable, "-m", f"jepsen.{module}", given, ",".join(addresses), str(self.notes))
        self._running = start(command, self.log, stdin=subprocess.PIPE)

    async def until_said(self, text: bytes, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while text not in self.log.read_bytes():
                self.check()
                await asyncio.sleep(0.05)

    def check(self) -> None:
        """Raise RuntimeError if the process has ended by itself."""
        if self._running.poll() is not None:
            raise RuntimeError(f"clients ended with exit code {self._running.returncode}; see {self.log}")

    async def end(self) -> None:
        assert self._running.stdin is not None
        self._running.stdin.close()
        try:
            await asyncio.to_thread(self._running.wait, ENDS_WITHIN)
        finally:
            self.kill()
        if self._running.returncode:
            raise RuntimeError(f"clients ended with exit code {self._running.returncode}; see {self.log}")

    def kill(self) -> None:
        self._running.kill()
        self._running.wait()


async def run(plan: Plan, folder: Path) -> Outcome:
    """Run a plan, with all its files in `folder`."""
    tree = BrokerTree(plan, folder)
    disk = SmallDisk(tree.data(SMALL_DISK)) if plan.disk else None
    if disk is not None:
        disk.mount()
    nemesis = Nemesis(plan, tree, disk, folder / "faults.log")
    problem = ""
    try:
        await tree.open()
        if not await tree.whole(WHOLE_WITHIN):
            raise RuntimeError(f"the brokers did not link in {WHOLE_WITHIN:g} seconds")
        async with _clients("subscribers", plan, tree, folder) as subscribers:
            await subscribers.until_said(b"settled", WHOLE_WITHIN)
            async with _clients("publishers", plan, tree, folder) as publishers:
                await (nemesis.play() if plan.faults else asyncio.sleep(plan.seconds))
                await tree.restore()
                if not await tree.whole(WHOLE_WITHIN):
                    problem = f"the healed brokers did not all reach each other in {WHOLE_WITHIN:g} seconds"
                await publishers.end()
            await _drain(plan, subscribers, [publishers.notes, subscribers.notes])
            if not await until_quiet(tree.traces, QUIET_WITHIN):
                problem = problem or f"the brokers were not quiet in {QUIET_WITHIN:g} seconds"
            await subscribers.end()
        for place in range(len(tree.ports)):
            await tree.end(place)
    finally:
        await tree.close()
        if disk is not None:
            _keep(tree.data(SMALL_DISK))
    verdict = judge(chain(read_notes(publishers.notes), read_notes(subscribers.notes)))
    comparison = await compare(verdict, tree.traces, advertisements=plan.advertisements)
    return Outcome(plan, dict(+nemesis.done), verdict, comparison, problem)


@asynccontextmanager
async def _clients(module: str, plan: Plan, tree: BrokerTree, folder: Path) -> AsyncIterator[Clients]:
    clients = Clients(module, plan, [door.address for door in tree.doors], folder)
    try:
        yield clients
    finally:
        clients.kill()


async def _drain(plan: Plan, subscribers: Clients, notes: list[Path]) -> None:
    """Wait until nothing is missing; or until nothing has come for longer than a lease, or for LONGEST_DRAIN seconds.

    Then wait once more, for what comes a second time.
    """
    began = last_growth = time.monotonic()
    size = 0
    quiet = plan.lease + 10
    while time.monotonic() < min(began + LONGEST_DRAIN, last_growth + quiet):
        await asyncio.sleep(LOOK_EVERY)
        subscribers.check()
        if notes[-1].stat().st_size != size:
            size, last_growth = notes[-1].stat().st_size, time.monotonic()
        if not judge(chain.from_iterable(map(read_notes, notes))).lost:
            break
    await asyncio.sleep(LOOK_EVERY)


def _keep(folder: Path) -> None:
    """Replace a small disk by a folder with its files, to look at later."""
    aside = folder.with_name(f"{folder.name}.kept")
    shutil.copytree(folder, aside)
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()
    aside.rename(folder)
