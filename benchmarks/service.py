"""How fast events get from clients through a broker to clients: script/bench service [--quick] [SECTION ...]

Every broker is a process, and so are all the publishers and all the subscribers together; peers are measured beside
ours, round by round, where they are installed. CPU time is that of all these processes; what people wait for is
measured as time passes. Before a figure is printed, what was taken must be what was wanted.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.report import Report, Row, run
from benchmarks.service_servers import installed, serving
from benchmarks.service_stage import Clients, Round, WrongAnswer, beside, clients, stage
from benchmarks.service_systems import Data, Want

OURS = "vestnik"
SYMBOLS = 1_000
PACE = 500.0
IN_FLIGHT = 64
FAST, SLOW = 0.0001, 0.003
"""Seconds that a fast disk and a slow one take for a sync."""
MEMORY = Path("/dev/shm")
"""A folder that is no disk at all."""


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    rounds: int
    subscribers: int
    content: int
    one_to_one: int
    paced: int
    few: int
    many: int
    growing: int
    durable: int
    consumers: int
    stopped: int


FULL = Scale(
    rounds=5,
    subscribers=50,
    content=20_000,
    one_to_one=100_000,
    paced=2_500,
    few=1_000,
    many=100_000,
    growing=10_000,
    durable=30_000,
    consumers=100,
    stopped=200,
)
QUICK = Scale(
    rounds=1,
    subscribers=3,
    content=500,
    one_to_one=500,
    paced=50,
    few=10,
    many=100,
    growing=200,
    durable=200,
    consumers=4,
    stopped=20,
)


# --- what is published and wanted ---


def symbol(number: int) -> str:
    return f"S{number:05}"


def quotes(count: int, symbols: int = SYMBOLS, filler: int = 60) -> list[Data]:
    """Events of about 150 bytes."""
    rng = Random(1)
    return [
        {
            "symbol": symbol(rng.randrange(symbols)),
            "price": rng.randrange(10_000) / 100,
            "volume": rng.randrange(1, 10_000),
            "number": number,
            "venue": "XETR",
            "note": "x" * filler,
        }
        for number in range(count)
    ]


def watchers(count: int) -> list[list[Want]]:
    rng = Random(2)
    return [[Want([symbol(one) for one in rng.sample(range(SYMBOLS), 10)], 50.0)] for _ in range(count)]


# --- sections ---


def content(report: Report, scale: Scale) -> None:
    """Our broker filters by symbol and price; the others have a topic for each symbol, their clients the price."""
    wants, events = watchers(scale.subscribers), quotes(scale.content)
    played = beside([OURS, *installed()], wants, events, scale.rounds)
    seconds = {name: [one.seconds for one in rounds] for name, rounds in played.items()}
    _compare(report, "content", "time that passes", "s", seconds, {"nats": 2.5})
    cpu = {name: [one.cpu / len(events) * 1e6 for one in rounds] for name, rounds in played.items()}
    _compare(report, "content", "CPU an event, all processes", "us", cpu, {"nats": 2.5})


def one_to_one(report: Report, scale: Scale) -> None:
    wants, events = [[Want([symbol(0)])]], quotes(scale.one_to_one, symbols=1)
    systems = [OURS, *[name for name in installed() if name == "nats"]]
    played = beside(systems, wants, events, scale.rounds)
    seconds = {name: [one.seconds / len(events) * 1e6 for one in rounds] for name, rounds in played.items()}
    _compare(report, "one-to-one", "time an event", "us", seconds, {"nats": 3.0})
    paced = beside(systems, wants, events[: scale.paced], scale.rounds, PACE)
    for share in (0.5, 0.99):
        delays = {name: [_quantile(one.taken.delays, share) * 1e3 for one in rounds] for name, rounds in paced.items()}
        _compare(report, "one-to-one", f"p{share * 100:.0f} at {PACE:.0f}/s", "ms", delays, {"nats": 1.0})


def subscriptions(report: Report, scale: Scale) -> None:
    """At each symbol ten want quotes above some price, whatever the number of symbols."""
    rates: dict[int, list[float]] = {}
    for count in (scale.few, scale.many):
        symbols = count // 10
        wants = [[Want([symbol(number)], 10.0 * step) for number in range(symbols)] for step in range(10)]
        events = quotes(scale.growing, symbols)
        with stage("bare", wants, events, scale.rounds) as one:
            rates[count] = [len(events) / one.play().broker_cpu for _ in range(scale.rounds)]
    few, many = (median(rates[count]) for count in (scale.few, scale.many))
    case = f"{scale.many:,} beside {scale.few:,}, CPU of the broker"
    note = "5.5 matches an event"
    report.add(
        Row(
            "subscriptions", case, many, "events/s", _spread(rates[scale.many]), few, many / few, 0.5, False, True, note
        )
    )


def durable(report: Report, scale: Scale) -> None:
    """Acknowledged when it is on disk, on this one and on a fast one; and what does not wait for a slow one."""
    with TemporaryDirectory() as folder:
        _acknowledged(report, scale, f"{IN_FLIGHT} in flight, this disk", Path(folder))
    if MEMORY.is_dir():
        with TemporaryDirectory(dir=MEMORY) as folder:
            case = f"{IN_FLIGHT} in flight, sync {FAST * 1e3:g} ms"
            _acknowledged(report, scale, case, Path(folder), FAST, target=60_000)
    _slow_disk(report, scale)


def _acknowledged(
    report: Report, scale: Scale, case: str, folder: Path, sync: float | None = None, target: float | None = None
) -> None:
    with serving(OURS, folder / "data", sync) as server:
        terms: dict[str, Any] = {"system": OURS, "port": server.port, "in_flight": IN_FLIGHT}
        with clients(**terms, events=quotes(scale.durable), rounds=scale.rounds + 1) as publisher:
            rates = [scale.durable / one.seconds for one in _rounds(publisher, scale.rounds)]
    note = f"a sync alone takes {_sync_seconds(folder) * 1e3 + (sync or 0) * 1e3:.2g} ms"
    report.add(Row("durable", case, median(rates), "events/s", _spread(rates), target=target, note=note))


def _rounds(publisher: Clients, rounds: int) -> Iterator[Round]:
    for number in range(rounds + 1):
        publisher.ready()
        publisher.go()
        one = publisher.measured()
        if number:
            yield Round(one.ended - one.began, 0.0, 0.0, one)


def _slow_disk(report: Report, scale: Scale) -> None:
    """One client publishes durably all the time, another does not wait."""
    events, wants = quotes(scale.paced, symbols=1), [[Want([symbol(0)])]]
    delays = []
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        server = stack.enter_context(serving(OURS, Path(folder), SLOW))
        terms: dict[str, Any] = {"system": OURS, "port": server.port, "rounds": scale.rounds}
        busy = quotes(round(scale.paced / PACE / SLOW * IN_FLIGHT) + IN_FLIGHT)
        for data in busy:
            data["symbol"] = "none"
        subscriber = stack.enter_context(clients(**terms, wants=wants, expected=len(events)))
        publisher = stack.enter_context(clients(**terms, events=events, pace=PACE))
        other = stack.enter_context(clients(**terms, events=busy, in_flight=IN_FLIGHT))
        for _ in range(scale.rounds):
            for one in (subscriber, publisher, other):
                one.ready()
            other.go()
            publisher.go()
            taken = subscriber.measured()
            publisher.measured()
            other.measured()
            if taken.count != len(events):
                raise WrongAnswer("slow disk", (taken.count, 0), (len(events), 0))
            delays.append(_quantile(taken.delays, 0.99) * 1e3)
    case = f"p99 at {PACE:.0f}/s, sync {SLOW * 1e3:.0f} ms"
    report.add(
        Row("durable", case, median(delays), "ms", _spread(delays), target=2.0, at_most=True, note="unacknowledged")
    )


def stopped_consumer(report: Report, scale: Scale) -> None:
    """Events of 16 KB to all; then one of them does not read any more."""
    events = quotes(scale.stopped, symbols=1, filler=16_000)
    want, pace = [Want([symbol(0)])], PACE / 25
    with ExitStack() as stack:
        server = stack.enter_context(serving(OURS))
        terms: dict[str, Any] = {"system": OURS, "port": server.port, "rounds": 2 * scale.rounds + 1}
        truth = len(events) * (scale.consumers - 1)
        others = stack.enter_context(clients(**terms, wants=[want] * (scale.consumers - 1), expected=truth))
        stopping = stack.enter_context(clients(**terms, wants=[want], expected=len(events)))
        publisher = stack.enter_context(clients(**terms, events=events, pace=pace))
        delays: list[float] = []
        for number in range(2 * scale.rounds + 1):
            if number == scale.rounds + 1:
                before = server.memory
                os.kill(stopping.process.pid, signal.SIGSTOP)
            elif number <= scale.rounds:
                stopping.ready()
            for one in (others, publisher):
                one.ready()
            publisher.go()
            taken = others.measured()
            publisher.measured()
            if number <= scale.rounds:
                stopping.measured()
            if taken.count != truth:
                raise WrongAnswer("stopped consumer", (taken.count, 0), (truth, 0))
            delays.append(_quantile(taken.delays, 0.99) * 1e3)
        grown = server.memory - before
    running, stopped = delays[1 : scale.rounds + 1], delays[scale.rounds + 1 :]
    ratio = median(stopped) / median(running)
    case = f"p99 of the others, 1 of {scale.consumers}"
    report.add(
        Row("stopped-consumer", case, median(stopped), "ms", _spread(stopped), median(running), ratio, 1.1, True, True)
    )
    report.add(Row("stopped-consumer", "memory that it costs", grown / 1e6, "MB", note="keeps 10,000 notifications"))


def _compare(
    report: Report, section: str, case: str, unit: str, found: dict[str, list[float]], targets: dict[str, float]
) -> None:
    """A row for each peer; what is less is better."""
    ours = median(found[OURS])
    peers = {name: figures for name, figures in found.items() if name != OURS}
    if not peers:
        report.add(Row(section, case, ours, unit, _spread(found[OURS])))
    for name, figures in peers.items():
        peer = median(figures)
        note = f"{name}, spread {_spread(figures):.0%}"
        report.add(
            Row(
                section,
                case,
                ours,
                unit,
                _spread(found[OURS]),
                peer,
                peer / ours,
                targets.get(name),
                of_ratio=True,
                note=note,
            )
        )


def _spread(figures: Sequence[float]) -> float:
    return (max(figures) - min(figures)) / median(figures)


def _quantile(figures: Sequence[float], share: float) -> float:
    return sorted(figures)[int(share * (len(figures) - 1))]


def _sync_seconds(folder: Path) -> float:
    with (folder / "probe").open("ab", buffering=0) as file:
        seconds = []
        for _ in range(50):
            file.write(bytes(150 * IN_FLIGHT))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - start)
    return median(seconds)


SECTIONS: dict[str, Callable[[Report, Scale], None]] = {
    "content": content,
    "one-to-one": one_to_one,
    "subscriptions": subscriptions,
    "durable": durable,
    "stopped-consumer": stopped_consumer,
}


if __name__ == "__main__":
    run("service", "How fast the service is.", SECTIONS, full=FULL, quick=QUICK)
