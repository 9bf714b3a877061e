"""Three brokers in a line, each a process: b1 - b2 - b3."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from vestnik.cli.inputs import Refused

LINE: Final = "b1", "b2", "b3"
MIDDLE: Final = "b2"
VESTNIK: Final = [sys.executable, "-c", "from vestnik.cli import main; main()"]
PATIENCE: Final = 30.0
"""Seconds in which a broker has to begin or to end."""
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
                    if line.startswith("listening on ") and line.endswith("\n"):
                        return line.removeprefix("listening on ").strip()
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

    def _run(self, name: str, said: Path, *words: str) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("VESTNIK_")}
        with said.open("wb") as log:
            self._running[name] = subprocess.Popen(
                [*VESTNIK, *words],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demo, which ends them
            )

    async def _ended(self, name: str) -> int:
        running = self._running[name]
        async with asyncio.timeout(PATIENCE):
            while running.poll() is None:
                await asyncio.sleep(LOOK_EVERY)
        del self._running[name]
        return running.returncode
