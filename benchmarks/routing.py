"""How fast networks of brokers are simulated, and how far they grow: script/bench routing [--quick] [SECTION ...]

On the 107 brokers of the routing experiments: consumers with ten subscriptions each at uniform local brokers, one
producer at the root. The section `simulation` counts messages that brokers handle per second of CPU time; before a
figure is printed, some events must have reached exactly as many subscriptions as match them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import TypeVar

from benchmarks.report import Report, Row, cpu_seconds, run
from benchmarks.routing_scale import entries
from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.stored import StoredEvent
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.session.session import Session
from vestnik.sim.network import Network
from vestnik.sim.topologies import Topology, paper
from vestnik.sim.workloads import Stock
from vestnik.trace.records import AnyRecord, Notified
from vestnik.wire.messages import AdminS, NodeId, Publish, Subscribe, Took
from vestnik.wire.origins import FetchPage, Frontiers, OriginHere, PageRead, Routed

T = TypeVar("T")

SUBSCRIPTIONS = 10
HANDLED = AdminS, Routed, OriginHere, Frontiers, FetchPage, PageRead, Subscribe, Publish, Took


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    consumers: int
    flooded: int
    covered: int
    sample: int
    grown: int


FULL = Scale(consumers=100, flooded=2_000, covered=20_000, sample=1_000, grown=100_000)
QUICK = Scale(consumers=3, flooded=20, covered=50, sample=20, grown=200)


class WrongAnswer(Exception):
    """`ours` notifications differ from the `truth` in `case`: there is no figure to print."""

    def __init__(self, case: str, ours: int, truth: int) -> None:
        super().__init__(case, ours, truth)


def simulation(report: Report, scale: Scale) -> None:
    _simulate(report, "flooding", scale, scale.flooded, target=100_000)
    _simulate(report, "covering", scale, scale.covered, target=20_000)


def _simulate(report: Report, strategy: str, scale: Scale, events: int, target: float) -> None:
    """One row for the subscriptions, where they go further than the first broker, and one for the events."""
    rng = Random(1)
    workload = Stock(intervals=True)
    trace: list[AnyRecord] = []
    network = _network(paper(), strategy, trace)
    wanted: list[Filter] = []
    for number in range(scale.consumers):
        network.attach(f"c{number}", rng.choice(network.topology.access))
        wanted += islice(workload.interests(rng, 0.0), SUBSCRIPTIONS)
    network.attach("p", network.topology.root)
    published = [workload.event(rng, "p", str(number)) for number in range(scale.sample + events)]
    subscribing = _row(network, f"{strategy}: {len(wanted):,} subscriptions", _subscribe, wanted, target)
    _publish(network, published[: scale.sample])
    _agree(strategy, trace, published[: scale.sample], wanted)
    if strategy != "flooding":
        report.add(subscribing)
    report.add(_row(network, f"{strategy}: {events:,} events", _publish, published[scale.sample :], target))


def _agree(case: str, trace: list[AnyRecord], published: list[Event], wanted: list[Filter]) -> None:
    ours = sum(len(record.numbers) for record in trace if isinstance(record, Notified))
    truth = sum(one.matches(event) for event in published for one in wanted)
    if ours != truth:
        raise WrongAnswer(case, ours, truth)


def _network(topology: Topology, strategy: str, trace: list[AnyRecord]) -> Network:
    def core(name: NodeId, stored: Sequence[StoredEvent], log: OwnLog) -> BrokerCore:
        return BrokerCore(name, Router(make_strategy(strategy, parent=topology.parents[name])), log=log)

    return Network(topology, core, lambda name: Session(name, lambda low, high: low), record=trace.append)


def _subscribe(network: Network, wanted: list[Filter]) -> None:
    for number, one in enumerate(wanted):
        network.subscribe(f"c{number // SUBSCRIPTIONS}", f"s{number % SUBSCRIPTIONS}", one)
    network.settle()


def _publish(network: Network, published: list[Event]) -> None:
    for event in published:
        network.publish("p", event)
    network.settle()


def _row(network: Network, case: str, act: Callable[[Network, list[T]], None], what: list[T], target: float) -> Row:
    gc.collect()
    before, start = _sent(network), cpu_seconds()
    act(network, what)
    seconds, sent = max(cpu_seconds() - start, 1e-9), _sent(network) - before
    return Row("simulation", case, sent / seconds, "messages/s", target=target, note=f"{sent:,} messages")


def _sent(network: Network) -> int:
    """Messages to brokers so far."""
    return sum(network.world.sent.get(kind, 0) for kind in HANDLED)


SECTIONS: dict[str, Callable[[Report, Scale], None]] = {
    "simulation": simulation,
    "entries": lambda report, scale: entries(report, scale.grown),
}


if __name__ == "__main__":
    run("routing", "How fast networks are simulated.", SECTIONS, full=FULL, quick=QUICK)
