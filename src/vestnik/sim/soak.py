"""Many random scenarios, each held against a checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from vestnik.routing.registry import known_strategies
from vestnik.session.checking import Constant as CheckConstant
from vestnik.session.checking import RandomInterval
from vestnik.sim.faults import Away, BadDisk, Corrupt, Crash, CrashClient, CutLink, Fault, Move, Pause, Stall
from vestnik.sim.kernel import seldom_collected
from vestnik.sim.links import Constant, Delay, Link, Uniform
from vestnik.sim.runs import Run
from vestnik.sim.scenarios import Clients, Lease, Past, Routing, Scenario, names_of
from vestnik.sim.shapes import Line, RandomTree, Shape, Star, Tree
from vestnik.sim.summaries import Summary
from vestnik.sim.topologies import Topology
from vestnik.sim.workloads import RandomFilters, Stock
from vestnik.trace.records import AnyRecord

BATCHES = (1, 1, 1, 1, 1, 1, 1, 10, 10, 600)
"""How many events are published at a time."""
FAULTS = (0, 2, 10, 100, 400)
"""How many there are in a scenario."""
SLOW = CutLink, Crash, Pause, Stall
"""Faults after which there is no telling when what was missed has come."""
WIDE = 100
"""Publications that fit into a window that is never full, however many come while the first is on its way."""


class Claim(NamedTuple):
    """A trace, and what is claimed of it: it is right from the time `since` on.

    What is done takes effect in `settling` seconds; None where only Settled records say when. Where messages are lost
    for good, nothing need arrive, but what does must be right; where they are lost only with links, brokers and
    connections, all is `stored`, and has to arrive in the end.
    """

    records: Sequence[AnyRecord]
    settling: float | None
    since: float
    advertisements: bool
    lossy: bool
    stored: bool


Check: TypeAlias = Callable[[Claim], Sequence[object]]
"""What is wrong with a trace."""


class Outcome(NamedTuple):
    seed: int
    scenario: Scenario
    summary: Summary
    wrong: Sequence[object]


@seldom_collected()
def soak(seed: int, check: Check) -> Outcome:
    """One random scenario, and what is wrong with its trace."""
    scenario = random_scenario(seed)
    records: list[AnyRecord] = []
    run = Run(scenario, records.append)
    for _ in run.steps():
        pass
    takes_long = scenario.access.loss or scenario.clients.batch >= max(BATCHES)
    takes_long = takes_long or any(isinstance(fault, SLOW) for fault in scenario.faults)
    takes_long = takes_long or scenario.clients.window < WIDE * scenario.clients.batch  # the rest is read from logs
    settling = None if takes_long else run.propagation
    lossy = scenario.links.loss or (scenario.access.loss and scenario.clients.checking is None)
    stored = not (scenario.links.loss or scenario.access.loss) and scenario.links.fifo
    claim = Claim(records, settling, run.right_since, scenario.routing.advertisements, bool(lossy), stored)
    return Outcome(seed, scenario, run.summary(), check(claim))


def random_scenario(seed: int) -> Scenario:
    """A small scenario with faults that a network recovers from. Messages do not overtake each other.

    In every other one what clients want lasts, and no state is corrupted: then all has to arrive.
    """
    rng = Random(f"{seed} soak")
    lasts = rng.random() < 0.5
    shape = _shape(rng)
    duration = rng.uniform(5, 30)
    leases = Lease(length=rng.uniform(4, 8), refresh=rng.uniform(1, 2), sweep=rng.uniform(0.2, 1.0))
    checking = [None, CheckConstant(rng.uniform(1, 3)), RandomInterval(1.0, 3.0, first=2.0)]
    loss = rng.choice([0.0, 0.0, 0.0, 0.05]), rng.choice([0.0, 0.0, 0.0, 0.05])
    batch = rng.choice(BATCHES)
    scenario = Scenario(
        topology=shape,
        routing=Routing(
            strategy=rng.choice(known_strategies()),
            advertisements=rng.random() < 0.5,
            tolerance=rng.choice([0.0, 0.0, 0.2]),
        ),
        clients=Clients(
            consumers=rng.randint(1, 10),
            subscriptions=rng.randint(1, 4),
            producers=rng.randint(1, 3),
            rate=rng.uniform(0.5, 5) / max(1, batch / 5),
            churn=0.0 if lasts else rng.choice([0.0, rng.uniform(0, 2)]),
            probes=5,
            special=rng.choice([0.0, 0.3]),
            window=max(rng.choice([1000, 1000, 10]), batch // 4),
            checking=rng.choice(checking),
            batch=batch,
            replay=rng.choice([None, None, Past(all=True), Past(last=rng.randint(1, 30))]),
            newcomers=rng.randint(0, 2),
        ),
        workload=Stock(stocks=10, intervals=rng.random() < 0.5, zipf=1.0) if rng.random() < 0.5 else RandomFilters(),
        leases=rng.choice([None, leases, leases]),
        links=_link(rng, loss[0]),
        access=_link(rng, loss[1]),
        duration=duration,
        seed=seed,
    )
    return _with_faults(scenario, rng, lasts=lasts)


def _shape(rng: Random) -> Shape:
    size = rng.randint(1, 9)
    shapes: list[Shape] = [Line(size), Star(size), Tree(rng.randint(1, 3), rng.randint(1, 3)), RandomTree(size)]
    return rng.choice(shapes)


def _link(rng: Random, loss: float) -> Link:
    least = rng.uniform(0, 0.05)
    delays: list[Delay] = [Constant(least), Uniform(least, least + rng.uniform(0, 0.1))]
    return Link(rng.choice(delays), loss, duplication=rng.choice([0.0, 0.0, 0.1]))


def _with_faults(scenario: Scenario, rng: Random, *, lasts: bool) -> Scenario:
    """The more faults there are, the shorter they are: part of the network is up at any time."""
    topology = scenario.network()
    count = rng.choice(FAULTS)
    longest = 0.3 * scenario.duration / (1 + count / 20)
    faults = tuple([_fault(scenario, topology, longest, rng, lasts=lasts) for _ in range(count)])
    values = {name: getattr(scenario, name) for name in scenario.__struct_fields__}
    return Scenario(**(values | {"faults": faults}))


def _fault(scenario: Scenario, topology: Topology, longest: float, rng: Random, *, lasts: bool) -> Fault:
    at = rng.uniform(0, 0.7) * scenario.duration
    lasting = rng.uniform(0, longest)
    broker, client = rng.choice(topology.nodes), rng.choice(names_of(scenario.clients))
    found: list[Fault] = [Crash(at, lasting, broker), Away(at, lasting, client), BadDisk(at, lasting, broker)]
    found += [Move(at, lasting, client, rng.choice(topology.access))]
    found += [Pause(at, lasting, client), Stall(at, lasting, client)]
    if topology.edges:
        found.append(CutLink(at, lasting, rng.choice(topology.edges)))
    if not lasts:
        found.append(CrashClient(at, lasting, client))
    if not lasts and scenario.leases is not None:
        found.append(Corrupt(at, broker))
    return rng.choice(found)
