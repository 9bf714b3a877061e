"""What is expected in the routing experiment, exactly.

Of `consumers`, each at a uniform access broker, each wants `EACH` distinct ones of `stocks` uniform stocks. Every
quantity is a sum over directed links. Behind a link is a share p of the access brokers, so a consumer is behind it and
wants a given stock with probability q = EACH p / stocks, and the number N of such consumers is binomial. Intervals all
contain 50 and their ends are independent and continuous: of n intervals H_n = 1 + 1/2 + ... + 1/n are maximal in the
mean, and together they are one interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from vestnik.routing.registry import HIERARCHICAL
from vestnik.sim.topologies import Topology
from vestnik.wire.messages import NodeId

EACH = 10
"""Subscriptions of one consumer."""


@dataclass(frozen=True)
class Exact:
    """Expectations with the producer, where there are advertisements, at the root."""

    topology: Topology
    stocks: int = 1000

    @cached_property
    def behind(self) -> dict[tuple[NodeId, NodeId], frozenset[NodeId]]:
        """The access brokers behind each directed link: on the side of its first node."""
        all_ = frozenset(self.topology.access)
        below = {node: all_ & {node} for node in self.topology.nodes}
        parents = self.topology.parents
        far = self.topology.distances(self.topology.root)
        found: dict[tuple[NodeId, NodeId], frozenset[NodeId]] = {}
        for node in sorted(self.topology.nodes, key=far.__getitem__, reverse=True):
            parent = parents[node]
            if parent is not None:
                below[parent] |= below[node]
                found[node, parent], found[parent, node] = below[node], all_ - below[node]
        return found

    @cached_property
    def links(self) -> dict[tuple[NodeId, NodeId], float]:
        """The share of access brokers behind each directed link."""
        return {link: self.share(behind) for link, behind in self.behind.items()}

    def share(self, brokers: frozenset[NodeId]) -> float:
        return len(brokers) / len(self.topology.access)

    def counted(self, strategy: str, advertisements: bool) -> list[tuple[NodeId, NodeId]]:
        """The directed links that subscriptions go over: all, or those to the root, where the producer is."""
        to_root_only = advertisements or strategy.startswith(HIERARCHICAL)
        parents = self.topology.parents
        return [(one, other) for one, other in self.behind if not to_root_only or parents[one] == other]

    @property
    def mean_path(self) -> float:
        """The mean way from an access broker to the root."""
        far = self.topology.distances(self.topology.root)
        return sum(far[node] for node in self.topology.access) / len(self.topology.access)

    def entries(self, strategy: str, advertisements: bool, form: str, consumers: int) -> float:
        """The expected number of remote subscription entries."""
        of_link = _ENTRIES[law(strategy, form)]
        shares = self._shares(strategy, advertisements)
        return sum(count * of_link(p, consumers, self.stocks) for p, count in shares.items())

    def admin(self, strategy: str, advertisements: bool, form: str, consumers: int) -> float:
        """The expected number of messages when one more consumer subscribes once, and again when it leaves.

        It is behind a link with probability p; a message goes over the link if its filter changes what is told there.
        """
        kind, shares = law(strategy, form), self._shares(strategy, advertisements)
        return sum(count * p * changes(kind, p, consumers, self.stocks) for p, count in shares.items())

    def limit(self, strategy: str, advertisements: bool, form: str) -> float:
        """What the number of entries approaches with more and more consumers."""
        links, kind = len(self.counted(strategy, advertisements)), law(strategy, form)
        if kind in ("simple", "maximal"):
            return float("inf")
        return {"nothing": 0, "identity": links * self.stocks, "per stock": links * self.stocks, "sets": links}[kind]

    def _shares(self, strategy: str, advertisements: bool) -> Counter[float]:
        """How many links have which share behind them."""
        return Counter(self.links[link] for link in self.counted(strategy, advertisements))


def law(strategy: str, form: str) -> str:
    """What is told over a link: under which of the laws below a strategy falls."""
    strategy = strategy.rpartition(" ")[2]
    if strategy == "flooding":
        return "nothing"
    if form == "interval":
        return {"identity": "simple", "covering": "maximal", "merging": "per stock"}.get(strategy, strategy)
    return {"covering": "identity", "merging": "sets"}.get(strategy, strategy)


def changes(kind: str, p: float, consumers: int, stocks: int) -> float:
    """The probability that a new subscription behind a link changes what is told over it."""
    return _CHANGES[kind](p, consumers, stocks)


def _wanted(p: float, consumers: int, stocks: int) -> float:
    """The expected number of stocks that someone behind the link wants."""
    return stocks * (1 - (1 - EACH * p / stocks) ** consumers)


def _maximal(p: float, consumers: int, stocks: int) -> float:
    return stocks * harmonic(EACH * p / stocks, consumers)


def _unwanted(p: float, consumers: int, stocks: int) -> float:
    """The probability that nobody behind the link wants a given stock."""
    return (1 - EACH * p / stocks) ** consumers


def _is_maximal(p: float, consumers: int, stocks: int) -> float:
    """The probability that a new interval is maximal: E[H_{N+1} / (N+1)]."""
    q = EACH * p / stocks
    return harmonic(q, consumers + 1) / ((consumers + 1) * q)


def _widens(p: float, consumers: int, stocks: int) -> float:
    """The probability that a new interval is not within all others together: E[2 / (N+1) - 1 / (N+1)^2]."""
    q = EACH * p / stocks
    more = consumers + 1
    first = (1 - (1 - q) ** more) / (more * q)
    return 2 * first - reciprocal(q, more) / (more * q)


@lru_cache(maxsize=4096)
def harmonic(q: float, n: int) -> float:
    """E[H_N] for a binomial N of n trials with probability q."""
    return sum((1 - (1 - q) ** k) / k for k in range(1, n + 1))


@lru_cache(maxsize=4096)
def reciprocal(q: float, n: int) -> float:
    """E[1/N; N > 0] for a binomial N of n trials with probability q."""
    return sum((1 - q) ** (n - k) * (1 - (1 - q) ** k) / k for k in range(1, n + 1))


_ENTRIES: dict[str, Callable[[float, int, int], float]] = {
    "nothing": lambda p, c, m: 0.0,
    "simple": lambda p, c, m: EACH * c * p,
    "identity": _wanted,
    "per stock": _wanted,
    "maximal": _maximal,
    "sets": lambda p, c, m: 1 - (1 - p) ** c,
}
_CHANGES: dict[str, Callable[[float, int, int], float]] = {
    "nothing": lambda p, c, m: 0.0,
    "simple": lambda p, c, m: 1.0,
    "identity": _unwanted,
    "sets": _unwanted,
    "maximal": _is_maximal,
    "per stock": _widens,
}
