"""A server with processes of clients around it, and how long they take."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from benchmarks.service_clients import Measured, Task
from benchmarks.service_servers import Server, cpu_of, serving
from benchmarks.service_systems import Data, Want

T = TypeVar("T")


class WrongAnswer(Exception):
    """`ours` were taken in `case` where `truth` were wanted: there is no figure to print."""

    def __init__(self, case: str, ours: tuple[int, int], truth: tuple[int, int]) -> None:
        super().__init__(case, ours, truth)


class Clients:
    """A process of clients."""

    def __init__(self, task: Task) -> None:
        self.task = task
        command = [sys.executable, "-m", "benchmarks.service_clients"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._write(msgspec.json.encode(task))

    def ready(self) -> None:
        assert self._read(str) == "ready"

    def go(self) -> None:
        self._write(b"go")

    def measured(self) -> Measured:
        return self._read(Measured)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _read(self, kind: type[T]) -> T:
        assert self.process.stdout is not None
        return msgspec.json.decode(self.process.stdout.readline(), type=kind)

    def _write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()


@contextmanager
def clients(**task: Any) -> Iterator[Clients]:
    started = Clients(Task(**task))
    try:
        yield started
    finally:
        started.end()


@dataclass(frozen=True)
class Round:
    """One run of all events: seconds from the first that was published to the last that was taken, and of CPU time."""

    seconds: float
    cpu: float
    broker_cpu: float
    taken: Measured


class Stage:
    """A server with one process of subscribers and one of publishers."""

    def __init__(self, server: Server, subscribers: Clients, publisher: Clients, truth: tuple[int, int]) -> None:
        self.server = server
        self._subscribers = subscribers
        self._publisher = publisher
        self._truth = truth

    def play(self) -> Round:
        self._subscribers.ready()
        self._publisher.ready()
        before, broker_before = self._cpu(), cpu_of(self.server.process)
        self._publisher.go()
        taken = self._subscribers.measured()
        published = self._publisher.measured()
        if (taken.count, taken.total) != self._truth:
            raise WrongAnswer(self._publisher.task.system, (taken.count, taken.total), self._truth)
        broker_cpu = cpu_of(self.server.process) - broker_before
        return Round(taken.ended - published.began, self._cpu() - before, broker_cpu, taken)

    def _cpu(self) -> float:
        return sum(map(cpu_of, (self.server.process, self._subscribers.process, self._publisher.process)))


@contextmanager
def stage(system: str, wants: list[list[Want]], events: list[Data], rounds: int, pace: float = 0.0) -> Iterator[Stage]:
    found = _taken(wants, events)
    with ExitStack() as stack:
        server = stack.enter_context(serving(system))
        terms: dict[str, Any] = {"system": system, "port": server.port, "rounds": rounds + 1}
        subscribers = stack.enter_context(clients(**terms, wants=wants, expected=len(found)))
        publisher = stack.enter_context(clients(**terms, events=events, pace=pace))
        made = Stage(server, subscribers, publisher, (len(found), sum(found)))
        made.play()  # to warm up
        yield made


def _taken(wants: list[list[Want]], events: list[Data]) -> list[int]:
    """The numbers of all events, each as often as it is wanted."""
    above: dict[str, list[float]] = {}
    for want in [want for some in wants for want in some]:
        for symbol in want.symbols:
            above.setdefault(symbol, []).append(want.above)
    return [data["number"] for data in events for limit in above.get(data["symbol"], ()) if data["price"] > limit]


def beside(
    systems: Sequence[str], wants: list[list[Want]], events: list[Data], rounds: int, pace: float = 0.0
) -> dict[str, list[Round]]:
    """The rounds of each system, in turn."""
    with ExitStack() as stack:
        stages = {system: stack.enter_context(stage(system, wants, events, rounds, pace)) for system in systems}
        played: dict[str, list[Round]] = {system: [] for system in systems}
        for _ in range(rounds):
            for system, one in stages.items():
                played[system].append(one.play())
    return played
