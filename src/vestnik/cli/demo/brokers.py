"""Three brokers in a line, each a process: b1 - b2 - b3."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from vestnik.cli.inputs import Refused
from vestnik.cli.logs import address_in

LINE: Final = "b1", "b2", "b3"
MIDDLE: Final = "b2"
VESTNIK: Final = [sys.executable, "-c", "from vestnik.cli import main; main()"]
PATIENCE: Final = 30.0
"""Seconds in which a broker has to begin or to end."""
REPORT_WITHIN: Final = 300.0
"""Seconds in which the report has to be there."""
TIDYING: Final = 30.0
"""Seconds in which what is ended has to be gone."""
LOOK_EVERY: Final = 0.02


class Brokers:
    """Each stores what it takes and writes a trace, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.addresses: dict[str, str] = {}

    def kill_all(self) -> None:
        for name in list(self._running):
            self.kill(name)

    async def start(self, name: str) -> None:
        """Where it was before, if it was. The middle one joins both others."""
        where = ["--name", name, "--listen", self.addresses.get(name, "127.0.0.1:0")]
        files = ["--data", name, "--trace", f"{name}.jsonl"]
        joins = [word for other in LINE if name == MIDDLE != other for word in ("--join", self.addresses[other])]
        said = self._folder / f"{name}.log"
        self._run(name, said, "serve", *where, *files, *joins)
        self.addresses[name] = await self._listening(name, said)

    async def _listening(self, name: str, said: Path) -> str:
        async with asyncio.timeout(PATIENCE):
            while True:
                text = said.read_text(encoding="utf-8")
                for line in text.splitlines(keepends=True):
                    if line.endswith("\n") and (address := address_in(line)):
                        return address
                if self._running[name].poll() is not None:
                    raise Refused(f"broker {name} could not be started: {text.strip()}")
                await asyncio.sleep(LOOK_EVERY)

    def kill(self, name: str) -> None:
        """As kill -9 does."""
        running = self._running.pop(name)
        running.kill()
        running.wait()

    async def end(self) -> None:
        """As they end when they are told to."""
        for running in self._running.values():
            running.terminate()
        for name in list(self._running):
            await self._ended(name)

    async def check(self, traces: list[str]) -> tuple[int, str]:
        """The exit code of `vestnik check`, and what it says."""
        said = self._folder / "check.log"
        self._run("check", said, "check", *traces)
        return await self._ended("check"), said.read_text(encoding="utf-8")

    async def report(self, plan: str, say: Callable[[str], None]) -> int:
        """The exit code of `vestnik pipeline run`, whose lines are said. All that it makes is in the folder."""
        said = self._folder / "run.log"
        here = dict.fromkeys(("TMPDIR", "SPARK_LOCAL_DIRS"), str(self._folder))
        self._run("report", said, "pipeline", "run", plan, environment=here)
        running = self._running["report"]
        following = asyncio.create_task(_follow(said, say))
        try:
            return await self._ended("report", REPORT_WITHIN)
        finally:
            following.cancel()
            await asyncio.wait([following])
            self._running.pop("report", None)
            _end_all_of(running)

    def _run(self, name: str, said: Path, *words: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        given = {key: value for key, value in os.environ.items() if not key.startswith("VESTNIK_")}
        with said.open("wb") as log:
            self._running[name] = subprocess.Popen(
                [*VESTNIK, *words],
                cwd=self._folder,
                env={**given, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demo, which ends them
            )

    async def _ended(self, name: str, patience: float = PATIENCE) -> int:
        running = self._running[name]
        async with asyncio.timeout(patience):
            while running.poll() is None:
                await asyncio.sleep(LOOK_EVERY)
        del self._running[name]
        return running.returncode


def _end_all_of(running: subprocess.Popen[bytes]) -> None:
    """End a process, and wait for those that it has started: they tidy up when it is gone."""
    if running.poll() is None:
        running.terminate()
        running.wait()
    for number in [0] * int(TIDYING / LOOK_EVERY) + [signal.SIGKILL]:
        try:
            os.killpg(running.pid, number)
        except ProcessLookupError:
            return
        time.sleep(LOOK_EVERY)


async def _follow(said: Path, say: Callable[[str], None]) -> None:
    """Say each line as it comes, and what is left when this is cancelled."""
    with said.open(encoding="utf-8") as lines:
        try:
            while True:
                for line in lines:
                    say(line.rstrip("\n"))
                await asyncio.sleep(LOOK_EVERY)
        finally:
            for line in lines:
                say(line.rstrip("\n"))
