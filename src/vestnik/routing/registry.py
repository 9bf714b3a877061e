"""Strategies by name. To add one: a file with its reduction, and `register_strategy`."""

from __future__ import annotations

from collections.abc import Callable

from vestnik.errors import UnknownStrategy
from vestnik.routing.covering import Covering
from vestnik.routing.flooding import Flooding
from vestnik.routing.hierarchical import Hierarchical
from vestnik.routing.identity import Identity, Simple
from vestnik.routing.merging import Merging
from vestnik.routing.reductions import Strategy
from vestnik.wire.messages import NodeId

_strategies: dict[str, Callable[[], Strategy]] = {
    strategy.name: strategy for strategy in (Flooding, Simple, Identity, Covering, Merging)
}


def register_strategy(name: str, make: Callable[[], Strategy]) -> None:
    """Make a strategy known by `name`."""
    _strategies[name] = make


def known_strategies() -> list[str]:
    return [*_strategies, *(f"{HIERARCHICAL} {name}" for name in _strategies)]


HIERARCHICAL = "hierarchical"


def make_strategy(name: str, *, parent: NodeId | None = None, tolerance: float = 0.0) -> Strategy:
    """The strategy called `name`, such as `covering` or `hierarchical covering`, for a broker below `parent`.

    A tolerance above 0 makes merging imperfect.
    """
    variant, _, inner = name.rpartition(" ")
    if inner not in _strategies or variant not in ("", HIERARCHICAL):
        raise UnknownStrategy(name, known_strategies())
    strategy: Strategy = Merging(tolerance) if inner == Merging.name and tolerance else _strategies[inner]()
    return Hierarchical(strategy, parent) if variant else strategy
