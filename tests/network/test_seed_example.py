"""A consumer, a producer, a history of ten and a factory, each a process of its own; brokers, too."""

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

import pytest

ROOT = Path(__file__).parent.parent.parent
VESTNIK = Path(sys.executable).with_name("vestnik")
OFTEN = "0.05"
ORDERS = [
    ("factory", "history", "consumer"),
    ("consumer", "factory", "history"),
    ("history", "consumer", "factory"),
]


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

    def until(self, start: str) -> str:
        """The next line that begins so."""
        while not (line := self.line()).startswith(start):
            pass
        return line

    def numbers(self, count: int) -> tuple[list[int], list[int]]:
        """Of the next lines the numbers of past and of live events."""
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
        return running, running.until("listening on ").removeprefix("listening on ")

    def program(self, name: str, url: str) -> Running:
        command = [sys.executable, str(ROOT / "examples" / "on_demand" / f"{name}.py"), OFTEN]
        return self._stack.enter_context(start(*command, url=url))


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


def in_order(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_any_order_of_starting(world: World, order: tuple[str, ...]) -> None:
    """The producer runs while there are consumers; who comes later begins with the last ten."""
    _, one = world.broker("b1")
    linked, two = world.broker("b2", "--join", one)
    linked.until("linked with")
    where = {"factory": one, "history": two, "consumer": two}
    running = {name: world.program(name, where[name]) for name in order}
    factory, first = running["factory"], running["consumer"]
    assert factory.line() == "starting the service"
    running["history"].until("keeping")
    past, live = first.numbers(15)
    assert in_order(past + live)
    second = world.program("consumer", one)
    past, live = second.numbers(15)
    assert len(past) == 10 and in_order(past + live), "nothing is missing, nothing comes twice"
    first.interrupt()
    second.interrupt()
    assert factory.line() == "stopping the service"
    again = world.program("consumer", one)
    assert factory.line() == "starting the service"
    past, live = again.numbers(15)
    assert len(past) == 10 and in_order(past + live), "it goes on where it was"


def test_a_subscriber_vanishes_without_a_word(world: World) -> None:
    """Its lease runs out, and with it the reason to produce."""
    _, one = world.broker("b1", "--lease", "1", "--sweep", "0.2")
    linked, two = world.broker("b2", "--join", one, "--lease", "1", "--sweep", "0.2")
    linked.until("linked with")
    factory, consumer = world.program("factory", one), world.program("consumer", two)
    assert factory.line() == "starting the service"
    consumer.numbers(3)
    consumer.kill()
    assert factory.line() == "stopping the service"


def test_the_broker_of_the_subscriber_is_killed(world: World) -> None:
    _, one = world.broker("b1")
    two, where = world.broker("b2", "--join", one)
    two.until("linked with")
    factory, consumer = world.program("factory", one), world.program("consumer", where)
    assert factory.line() == "starting the service"
    consumer.numbers(3)
    two.kill()
    assert factory.line() == "stopping the service"
    world.broker("b2", "--join", one, listen=where)
    assert factory.line() == "starting the service", "the consumer is back by itself"


def test_the_history_outlives_the_broker_that_took_the_events(world: World) -> None:
    broker, where = world.broker("b1")
    world.program("history", where).until("keeping")
    producer, consumer = world.program("producer", where), world.program("consumer", where)
    consumer.numbers(15)
    producer.interrupt()
    consumer.interrupt()
    broker.kill()
    again, _ = world.broker("b2", listen=where)
    again.until("linked with")
    late = world.program("consumer", where)
    past, live = late.numbers(10)
    assert in_order(past) and not live
