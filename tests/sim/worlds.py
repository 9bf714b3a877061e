"""Small networks for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.stored import StoredEvent
from vestnik.recovery import pages, reading, reads
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.session.session import Session
from vestnik.sim import hosts
from vestnik.sim.network import Network
from vestnik.sim.topologies import Topology
from vestnik.trace.records import AnyRecord, Notified
from vestnik.wire.messages import NodeId

ALL = Filter.all()


def network(topology: Topology, strategy: str = "covering", **options: Any) -> Network:
    def core(name: NodeId, stored: Sequence[StoredEvent], log: OwnLog) -> BrokerCore:
        router = Router(make_strategy(strategy, parent=topology.parents[name]))
        return BrokerCore(name, router, stored=stored, log=log)

    return Network(topology, core, lambda name: Session(name, lambda low, high: low), **options)


def quote(number: int, source: str = "p") -> Event:
    return Event("quote", {"n": number}, source=source, id=str(number))


def handed(trace: Sequence[AnyRecord], client: NodeId) -> list[str]:
    """The ids of the events that a client was handed, in order."""
    return [record.event.id for record in trace if isinstance(record, Notified) and record.client == client]


def kinds(trace: Sequence[AnyRecord]) -> list[str]:
    return [type(record).__name__ for record in trace]


def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read logs in many pages, mostly from disk, and share few of the reads."""
    monkeypatch.setattr(reading, "PAGE", 2)
    monkeypatch.setattr(reads, "NEAR", 3)
    monkeypatch.setattr(pages, "SCANNED", 3)
    monkeypatch.setattr(pages, "SIFTED", 2)
    monkeypatch.setattr(pages, "PASSED", 3 * pages.LOOK)
    monkeypatch.setattr(hosts, "TAIL", 1_000)
