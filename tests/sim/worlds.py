"""Small networks for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.broker import clients, confluence, selection
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Append
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.session.session import Session
from vestnik.sim.network import Network
from vestnik.sim.topologies import Topology
from vestnik.trace.records import AnyRecord, Notified
from vestnik.wire import pages
from vestnik.wire.messages import NodeId

ALL = Filter.all()


def network(topology: Topology, strategy: str = "covering", **options: Any) -> Network:
    def core(name: NodeId, stored: Sequence[Append]) -> BrokerCore:
        router = Router(make_strategy(strategy, parent=topology.parents[name]))
        return BrokerCore(name, router, stored=stored)

    return Network(topology, core, lambda name: Session(name, lambda low, high: low), **options)


def quote(number: int, source: str = "p") -> Event:
    return Event("quote", {"n": number}, source=source, id=str(number))


def handed(trace: Sequence[AnyRecord], client: NodeId) -> list[str]:
    """The ids of the events that a client was handed, in order."""
    return [record.event.id for record in trace if isinstance(record, Notified) and record.client == client]


def kinds(trace: Sequence[AnyRecord]) -> list[str]:
    return [type(record).__name__ for record in trace]


def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The past comes in many parts."""
    for module in (pages, clients):
        monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(selection, "UNASKED", 2)
    monkeypatch.setattr(clients, "ROOM", 4)
    monkeypatch.setattr(confluence, "FEW_HERE", 2)
