"""Brokers and the programs of examples/on_demand, each a process of its own, for tests."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from network.processes import LISTENING

ROOT = Path(__file__).parent.parent.parent
VESTNIK = Path(sys.executable).with_name("vestnik")
OFTEN = "0.05"


class Running:
    """A process whose lines are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def line(self, timeout: float = 30) -> str:
        return self._lines.get(timeout=timeout)

    def until(self, text: str) -> str:
        """Return the next line that has this text in it."""
        while text not in (line := self.line()):
            pass
        return line

    def numbers(self, count: int) -> tuple[list[int], list[int]]:
        """Return the numbers of past and of live events in the next lines."""
        lines = [self.line().split() for _ in range(count)]
        past, live = ([int(number) for kind, number in lines if kind == which] for which in ("past", "live"))
        return past, live

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)

    def close(self) -> None:
        self.kill()
        self._reader.join()


@contextmanager
def start(*command: str, url: str = "") -> Iterator[Running]:
    environment = os.environ | {"VESTNIK_URL": url, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT.anchor, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    with process:
        running = Running(process)
        try:
            yield running
        finally:
            running.close()


class World:
    """Starts programs of the example at brokers."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def broker(self, name: str, *options: str, listen: str = "127.0.0.1:0") -> tuple[Running, str]:
        command = [str(VESTNIK), "serve", "--name", name, "--listen", listen, *options]
        running = self._stack.enter_context(start(*command))
        found = LISTENING.search(running.until("listening on"))
        assert found is not None
        return running, found[1]

    def program(self, name: str, url: str) -> Running:
        command = [sys.executable, str(ROOT / "examples" / "on_demand" / f"{name}.py"), OFTEN]
        return self._stack.enter_context(start(*command, url=url))


def in_order(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))
