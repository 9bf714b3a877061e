"""State that is changed behind a broker's back, and how it heals."""

from __future__ import annotations

from random import Random

import pytest

from sim.worlds import handed, quote
from vestnik import Filter
from vestnik.broker.core import BrokerCore
from vestnik.routing.registry import known_strategies
from vestnik.sim.faults import corrupt
from vestnik.sim.links import Constant, Link
from vestnik.sim.network import Network
from vestnik.sim.parts import cores_of, sessions_of
from vestnik.sim.scenarios import Lease, Routing, Scenario
from vestnik.sim.shapes import Line
from vestnik.sim.topologies import line
from vestnik.sim.workloads import RandomFilters
from vestnik.trace.records import AnyRecord, Corrupted

LEASE = Lease(length=5.0, refresh=2.0, sweep=0.5)


def leased(strategy: str, *, advertisements: bool) -> Network:
    """A consumer c and a producer p at the ends of a line of four brokers, settled."""
    routing = Routing(strategy=strategy, advertisements=advertisements)
    scenario = Scenario(topology=Line(4), routing=routing, leases=LEASE, duration=0.0)
    net = Network(line(4), cores_of(scenario, line(4)), sessions_of(scenario), link=Link(Constant(0.01)))
    net.attach("c", "b0")
    net.attach("p", "b3")
    net.advertise("p", "all", Filter.all(), lease=LEASE.length)
    net.subscribe("c", "some", Filter.parse("n > 1"), lease=LEASE.length, window=100)
    net.settle(1.0, 1.0)
    return net


def tables(net: Network) -> dict[str, set[object]]:
    """What each broker has for its neighbours."""
    found: dict[str, set[object]] = {}
    for name, host in net.brokers.items():
        assert isinstance(host.core, BrokerCore)
        entries = host.core.router.subscriptions
        found[name] = {(entry, source) for entry, sources in entries for source in sources}
    return found


@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("strategy", known_strategies())
def test_corruption_heals_within_the_bound(strategy: str, advertisements: bool) -> None:
    net = leased(strategy, advertisements=advertisements)
    before = tables(net)
    rng = Random(strategy)
    for broker in net.topology.nodes:
        corrupt(net, broker, RandomFilters().interests(rng, 0.0), rng)
    assert sum(isinstance(record, Corrupted) for record in net.trace) == 4
    assert strategy.endswith("flooding") or tables(net) != before
    bound = LEASE.length + 2 * LEASE.sweep + 4 * 3 * 0.01
    net.settle(bound, bound)
    assert tables(net) == before
    seen: list[AnyRecord] = list(net.trace)
    net.publish("p", quote(1), quote(2))
    net.settle(1.0, 1.0)
    assert handed(net.trace[len(seen) :], "c") == ["2"]
