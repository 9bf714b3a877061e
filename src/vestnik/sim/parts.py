"""The brokers and clients of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random

from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.stored import StoredEvent
from vestnik.model.times import FOREVER
from vestnik.routing.propagation import Leases
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.session.session import Session
from vestnik.sim.network import MakeCore, MakeSession
from vestnik.sim.scenarios import Scenario, timing_of
from vestnik.sim.topologies import Topology
from vestnik.wire.messages import NodeId


def lease_of(scenario: Scenario) -> float:
    return scenario.leases.length if scenario.leases is not None else FOREVER


def cores_of(scenario: Scenario, topology: Topology) -> MakeCore:
    routing, leases = scenario.routing, scenario.leases
    kind = AdvertisingRouter if routing.advertisements else Router
    sweep = leases.sweep if leases is not None else FOREVER
    times = Leases()
    if leases is not None:
        times = Leases(leases.length, timing_of(leases, scenario, topology).slack)

    def make(name: NodeId, stored: Sequence[StoredEvent], log: OwnLog) -> BrokerCore:
        strategy = make_strategy(routing.strategy, parent=topology.parents[name], tolerance=routing.tolerance)
        return BrokerCore(name, kind(strategy, times), sweep, stored, log, skew=0.0)

    return make


def sessions_of(scenario: Scenario) -> MakeSession:
    refresh = scenario.leases.refresh if scenario.leases is not None else FOREVER
    lives = count()
    return lambda name: Session(name, random_of(scenario, f"session {next(lives)} of {name}").uniform, refresh)


def random_of(scenario: Scenario, purpose: str) -> Random:
    """Chance for one purpose, which does not depend on what else is drawn."""
    return Random(f"{scenario.seed} {purpose}")
