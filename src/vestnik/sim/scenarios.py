"""Scenarios: what is to be simulated, as a frozen value or a TOML file. One that cannot be run cannot be made."""

from __future__ import annotations

import tomllib

from msgspec import Struct

from vestnik.errors import InvalidScenario
from vestnik.model.tables import Misfit, read_table
from vestnik.model.times import FOREVER
from vestnik.routing.registry import make_strategy
from vestnik.routing.timing import Timing
from vestnik.session.checking import AnyChecking
from vestnik.sim.faults import Away, BadDisk, Corrupt, Crash, CrashClient, CutLink, Fault, Move, Pause, Stall
from vestnik.sim.links import Link
from vestnik.sim.shapes import Shape
from vestnik.sim.topologies import Topology
from vestnik.sim.workloads import Medical, RandomFilters, Stock
from vestnik.wire.messages import NodeId
from vestnik.wire.replays import Replay

MOST_KEPT = 1_000_000
"""Notifications that a broker keeps for a subscription."""


class Routing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The strategy of all brokers. A tolerance above 0 makes merging imperfect."""

    strategy: str
    advertisements: bool = False
    tolerance: float = 0.0


class Lease(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clients renew every `refresh` seconds; brokers forget after `length`, and look for that every `sweep`."""

    length: float
    refresh: float
    sweep: float = 1.0


class Past(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What subscriptions begin with: the `last` so many past events, or `all`."""

    last: int | None = None
    all: bool = False

    def __post_init__(self) -> None:
        self.replay()

    def replay(self) -> Replay:
        return Replay(self.last, all=self.all)


class Clients(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Consumers c0, c1, ... and producers p0, p1, ... at uniform brokers that clients may be at.

    Each consumer has so many `subscriptions`; `churn` of all of them are replaced a second. Each producer publishes at
    the times of a Poisson process with `rate` batches of `batch` events a second, and when all is over `probes` more.
    The share `special` of events is urgent, names a cause, has to wait, or expires soon. Brokers keep the last `keep`
    notifications of each subscription; with `checking` consumers ask whether they missed any. With `replay`
    subscriptions begin with past events. When all is over, before the last events, `newcomers` n0, n1, ... come, who
    want the past in any case.
    """

    consumers: int = 10
    subscriptions: int = 3
    producers: int = 1
    rate: float = 1.0
    churn: float = 0.0
    probes: int = 0
    special: float = 0.0
    window: int = 1000
    checking: AnyChecking | None = None
    batch: int = 1
    replay: Past | None = None
    newcomers: int = 0


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Subscriptions are made, and when they have settled `duration` seconds of traffic begin, in which faults happen.

    InvalidScenario, with what is wrong and why, where it cannot be run.
    """

    topology: Shape
    routing: Routing
    clients: Clients = Clients()
    workload: Stock | RandomFilters | Medical = Stock()
    leases: Lease | None = None
    links: Link = Link()
    access: Link = Link()
    faults: tuple[Fault, ...] = ()
    duration: float
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self)

    def network(self) -> Topology:
        return self.topology.build(self.seed)


def read_scenario(text: str) -> Scenario:
    """The scenario in the text of a TOML file; InvalidScenario where there is none, or one that means nothing."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidScenario(f"this is no TOML: {error}") from None
    try:
        scenario = read_table(given, Scenario)
    except Misfit as error:
        raise InvalidScenario(error.reason, error.path) from None
    _check_sense(scenario)
    return scenario


def _check_sense(scenario: Scenario) -> None:
    """What can be run, and would not show what was asked for."""
    links, routing = scenario.links, scenario.routing
    if scenario.leases is None and links.loss:
        raise InvalidScenario("without leases nothing heals what is lost between brokers", "links.loss")
    if scenario.leases is None and not links.fifo:
        raise InvalidScenario("without leases nothing heals what overtakes another between brokers", "links.fifo")
    if routing.tolerance and not routing.strategy.endswith("merging"):
        raise InvalidScenario(f"a tolerance is for merging, not for {routing.strategy}", "routing.tolerance")


def _check(scenario: Scenario) -> None:
    clients = scenario.clients
    for path, value, most in (
        ("duration", scenario.duration, FOREVER),
        ("clients.consumers", clients.consumers, FOREVER),
        ("clients.subscriptions", clients.subscriptions, FOREVER),
        ("clients.producers", clients.producers, FOREVER),
        ("clients.rate", clients.rate, FOREVER),
        ("clients.churn", clients.churn, FOREVER),
        ("clients.probes", clients.probes, FOREVER),
        ("clients.special", clients.special, 1.0),
        ("clients.newcomers", clients.newcomers, FOREVER),
        ("routing.tolerance", scenario.routing.tolerance, FOREVER),
    ):
        if not 0 <= value <= most or value == FOREVER:
            bound = "a finite number" if most == FOREVER else f"{most:,}"
            raise InvalidScenario(f"must be from 0 to {bound}, not {value}", path)
    if not 1 <= clients.window <= MOST_KEPT:
        raise InvalidScenario(f"must be from 1 to {MOST_KEPT:,}, not {clients.window}", "clients.window")
    if clients.batch < 1:
        raise InvalidScenario(f"a batch is of 1 event or more, not of {clients.batch}", "clients.batch")
    make_strategy(scenario.routing.strategy, tolerance=scenario.routing.tolerance)
    topology = scenario.network()
    if not topology.is_tree:
        raise InvalidScenario(
            f"{scenario.routing.strategy} needs a tree: with {len(topology.edges)} links between "
            f"{len(topology.nodes)} brokers there is a cycle, in which events would go round",
            "topology",
        )
    if scenario.leases is not None:
        _check_leases(scenario.leases, scenario, topology)
    for number, fault in enumerate(scenario.faults):
        _check_fault(fault, f"faults[{number}]", scenario, topology)


def _check_leases(leases: Lease, scenario: Scenario, topology: Topology) -> None:
    """A renewal must arrive before what it renews has expired, also if that was as fast and it is as slow as can be."""
    if not (0 < leases.refresh < FOREVER and 0 < leases.sweep < FOREVER):
        raise InvalidScenario("refresh and sweep are numbers of seconds above 0", "leases")
    links, access = scenario.links.delay, scenario.access.delay
    if max(links.most, access.most) == FOREVER:
        raise InvalidScenario("exponential delays have no bound: no lease is long enough for a renewal", "leases")
    least = timing_of(leases, scenario, topology).least_lease
    if not least < leases.length < FOREVER:
        raise InvalidScenario(
            f"a lease of {leases.length:g} s is too short: renewals come every {leases.refresh:g} s and on the way, up "
            f"to {topology.diameter} links, some take {least - leases.refresh:g} s longer than others; it must be "
            f"above {least:g} s",
            "leases.length",
        )


def timing_of(leases: Lease, scenario: Scenario, topology: Topology) -> Timing:
    links, access = scenario.links.delay, scenario.access.delay
    refresh = leases.refresh + (access.most - access.least)
    return Timing(refresh, leases.length, leases.sweep, links.least, links.most, topology.diameter)


def _check_fault(fault: Fault, path: str, scenario: Scenario, topology: Topology) -> None:
    if min(fault.at, fault.lasting) < 0 or not fault.at + fault.lasting <= scenario.duration:
        raise InvalidScenario(f"must begin and end within the duration of {scenario.duration:g} s", path)
    match fault:
        case CutLink(between=(one, other)):
            if other not in topology.neighbours.get(one, ()):
                raise InvalidScenario(f"there is no link between {one} and {other}", f"{path}.between")
        case Crash(broker=broker) | Corrupt(broker=broker) | BadDisk(broker=broker):
            if broker not in topology.neighbours:
                raise InvalidScenario(f"there is no broker {broker}", f"{path}.broker")
        case (
            Away(client=client)
            | Move(client=client)
            | CrashClient(client=client)
            | Pause(client=client)
            | Stall(client=client)
        ):
            if client not in names_of(scenario.clients):
                raise InvalidScenario(f"there is no client {client}", f"{path}.client")
    if isinstance(fault, Move) and fault.to not in topology.access:
        raise InvalidScenario(f"there is no broker {fault.to} that clients may be at", f"{path}.to")
    if isinstance(fault, Corrupt) and scenario.leases is None:
        raise InvalidScenario("without leases nothing heals what is corrupted", path)


def names_of(clients: Clients) -> list[NodeId]:
    consumers = [f"c{number}" for number in range(clients.consumers)]
    return consumers + [f"p{number}" for number in range(clients.producers)]
