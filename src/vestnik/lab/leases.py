"""Stabilization: brokers whose tables, beliefs and channels are garbage, and the time until all is in order again."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from vestnik.broker.core import BrokerCore
from vestnik.model.filters import Filter
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.routing.timing import Timing, bound, printed_bound
from vestnik.sim.faults import corrupt
from vestnik.sim.links import Link, Uniform
from vestnik.sim.runs import Run
from vestnik.sim.scenarios import Clients, Lease, Routing, Scenario
from vestnik.sim.shapes import RandomTree
from vestnik.sim.workloads import Stock
from vestnik.verify.agreement import agreement
from vestnik.verify.stabilization import illegitimate
from vestnik.wire.messages import AdminS, NodeId

STRATEGIES = ("simple", "identity", "covering", "merging")
MOST_BROKERS = 50
SAMPLES = 60
"""How often the state is looked at within the bound; it is looked at half as often again after it."""


class Recovery(NamedTuple):
    """One corrupted network: how long it was not in order, beside the bounds; `after` is what was wrong after it."""

    strategy: str
    advertisements: bool
    seed: int
    brokers: int
    seconds: float
    bound: float
    printed_bound: float
    after: str

    @property
    def share(self) -> float:
        return self.seconds / self.bound


def recover(strategy: str, seed: int, *, advertisements: bool = False, most_brokers: int = MOST_BROKERS) -> Recovery:
    """Corrupt every broker of a random network that is in order, and look when it is again, and whether it stays so."""
    rng = Random(f"{seed} leases")
    scenario = _scenario(strategy, seed, advertisements, rng.randint(2, most_brokers), rng)
    run = Run(scenario, lambda record: None)
    run.begin()
    network = run.network
    for broker in network.topology.nodes:
        corrupt(network, broker, scenario.workload.interests(rng, rng.random()), rng)
    timing = timing_of(scenario)
    limit = bound(strategy, timing, advertisements=advertisements)
    start, last, wrong = network.now, 0.0, ""
    for sample in range(1, SAMPLES * 3 // 2 + 1):
        time = limit * sample / SAMPLES
        network.run(start + time)
        found = next(_wrong(run, thorough=sample >= SAMPLES), "")
        if found:
            last, wrong = time, found if time >= limit else wrong
    return Recovery(
        strategy, advertisements, seed, len(network.topology.nodes), last, limit, printed_bound(timing), wrong
    )


class Overhead(NamedTuple):
    """Messages between brokers in a refresh period, for each subscription; the lease is `factor` times its bound."""

    strategy: str
    factor: float
    seed: int
    rate: float


PERIODS = 20


def overhead(strategy: str, factor: float, seed: int) -> Overhead:
    """Let clients of a network that is in order renew for a while, and count."""
    delay = Uniform(0.01, 0.05)
    shape, refresh = RandomTree(15), 2.0
    hops = shape.build(seed).diameter + 1
    bound = refresh + hops * (delay.most - delay.least)
    scenario = Scenario(
        topology=shape,
        routing=Routing(strategy=strategy),
        clients=Clients(consumers=20, subscriptions=5, producers=0),
        workload=Stock(stocks=20, intervals=True),
        leases=Lease(length=bound * factor, refresh=refresh),
        links=Link(delay),
        access=Link(delay),
        duration=1.0,
        seed=seed,
    )
    run = Run(scenario, lambda record: None)
    run.begin()
    network = run.network
    before = network.world.sent.get(AdminS, 0)
    network.run(network.now + PERIODS * refresh)
    messages = network.world.sent.get(AdminS, 0) - before
    return Overhead(strategy, factor, seed, messages / PERIODS / len(network.wanted))


def timing_of(scenario: Scenario) -> Timing:
    leases, links = scenario.leases, scenario.links.delay
    assert leases is not None
    return Timing(leases.refresh, leases.length, leases.sweep, links.least, links.most, scenario.network().diameter + 1)


def _scenario(strategy: str, seed: int, advertisements: bool, brokers: int, rng: Random) -> Scenario:
    least = rng.uniform(0, 0.05)
    delay = Uniform(least, least + rng.uniform(0.01, 0.1))
    shape = RandomTree(brokers)
    refresh = rng.uniform(1, 3)
    jitter = (brokers + 1) * (delay.most - delay.least)
    return Scenario(
        topology=shape,
        routing=Routing(strategy=strategy, advertisements=advertisements),
        clients=Clients(consumers=rng.randint(1, 12), subscriptions=rng.randint(1, 3), producers=2, rate=0.0),
        workload=Stock(stocks=5, intervals=True),
        leases=Lease(length=(refresh + jitter) * rng.uniform(1.1, 3), refresh=refresh, sweep=rng.uniform(0.2, 1)),
        links=Link(delay),
        access=Link(delay),
        duration=1.0,
        seed=seed,
    )


def _wrong(run: Run, *, thorough: bool) -> Iterator[str]:
    """What is not in order; where it is not to be `thorough`, only what is quick to see."""
    network = run.network
    routers: dict[NodeId, Router] = {}
    for name, host in network.brokers.items():
        assert isinstance(host.core, BrokerCore)
        routers[name] = host.core.router
    if not thorough:
        return agreement(routers)
    asked = _by_broker(run, network.wanted)
    offered = _by_broker(run, network.offered) if run.scenario.routing.advertisements else None
    return illegitimate(routers, asked, offered)


def _by_broker(run: Run, said: dict[tuple[NodeId, str], Filter]) -> dict[NodeId, dict[Source, Filter]]:
    found: dict[NodeId, dict[Source, Filter]] = {}
    for (client, name), wanted in said.items():
        found.setdefault(run.network.homes[client], {})[Source(client, name)] = wanted
    return found
