"""The routing experiment: table entries and messages against the number of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import isfinite
from random import Random

from msgspec import Struct
from msgspec.structs import asdict

from vestnik.lab.complexity import complexity
from vestnik.lab.exact import EACH, Exact
from vestnik.lab.overlay import Overlay, Routing
from vestnik.lab.results import Row
from vestnik.model.filters import Filter
from vestnik.routing.registry import make_strategy
from vestnik.sim.topologies import Topology, paper
from vestnik.sim.workloads import Stock, Workload
from vestnik.wire.messages import AdminS, Advertise, NodeId, Subscribe, Unsubscribe

FORMS = ("equality", "interval")
STOCKS = 1000
MOST = 1_000_000


class Setting(Struct, frozen=True, kw_only=True):
    """How the brokers route, and what consumers want. Without `producers` there is one, at the root router.

    With them, that many are at uniform local brokers.
    """

    strategy: str
    advertisements: bool = False
    form: str = "equality"
    tolerance: float = 0.0
    locality: float = 0.0
    zipf: float = 0.0
    producers: int = 0
    stocks: int = STOCKS

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"there is no form {self.form!r}; forms are {' and '.join(FORMS)}")
        if self.producers < 0:
            raise ValueError(f"there cannot be {self.producers} producers")
        if not all(map(isfinite, (self.tolerance, self.locality, self.zipf))):
            raise ValueError("tolerance, locality and zipf are finite numbers")
        if self.tolerance and not self.strategy.endswith("merging"):
            raise ValueError(f"a tolerance is for merging, not for {self.strategy}")
        make_strategy(self.strategy, tolerance=self.tolerance)
        self.workload()

    @property
    def is_uniform(self) -> bool:
        """Whether there are exact expectations."""
        return not (self.tolerance or self.locality or self.zipf or self.producers)

    def workload(self) -> Workload:
        intervals = self.form == "interval"
        return Stock(stocks=self.stocks, intervals=intervals, zipf=self.zipf, locality=self.locality)


class Measured(Struct, frozen=True, kw_only=True):
    """What was measured at one load: entries by kind, and messages for a subscription and for its end.

    `complexity` is how many values and intervals the filter of a remote entry names, in the mean; None without any.
    `exact_entries` and `exact_admin` are the expectations of `entries` and of both kinds of messages, where known.
    """

    strategy: str
    advertisements: bool
    form: str
    tolerance: float
    locality: float
    zipf: float
    producers: int
    subscriptions: int
    seed: int
    entries: int
    local_entries: int
    advertisement_entries: int
    complexity: float | None
    admin_subscribe: float
    admin_unsubscribe: float
    operations: int
    exact_entries: float | None
    exact_admin: float | None

    def as_row(self) -> Row:
        return asdict(self)


def check_loads(loads: list[int]) -> list[int]:
    """Loads are whole consumers, each larger than the one before; ValueError where they are not."""
    for load in loads:
        if not EACH <= load <= MOST or load % EACH:
            raise ValueError(f"{load} is no multiple of {EACH}, which is what a consumer subscribes to, up to {MOST:,}")
    if sorted(set(loads)) != loads or not loads:
        raise ValueError("loads are given once each, the smallest first")
    return loads


def sample(
    setting: Setting, loads: list[int], seed: int, operations: int, topology: Topology | None = None
) -> Iterator[Measured]:
    """A network of each load, measured. The consumers of one are the first of the next.

    They are there before the brokers are linked, but for imperfect merging: that depends on who comes first.
    """
    for load in check_loads(loads):
        market = Market(setting, seed, topology or paper(), 0 if setting.tolerance else load)
        market.grow(load)
        yield market.measure(operations)


class Market:
    """The network of the experiment: consumers at uniform local brokers, producers at the root router or at others.

    With a `load`, so many subscriptions are there before the brokers are linked. It is the same network as one to which
    they come one by one, and there sooner: over each link goes a whole table in one message.
    """

    def __init__(self, setting: Setting, seed: int, topology: Topology, load: int = 0) -> None:
        self._setting = setting
        self._seed = seed
        self._rng = Random(f"{seed} consumers")
        self._workload = setting.workload()
        self._arrived = 0
        self._consumers: list[tuple[NodeId, NodeId]] = []  # each with its broker
        self._exact = Exact(topology, setting.stocks) if setting.is_uniform else None
        routing = Routing(setting.strategy, setting.advertisements, setting.tolerance)
        self.overlay = Overlay(topology, routing)
        rng = Random(f"{seed} producers")
        homes = [rng.choice(topology.access) for _ in range(setting.producers)] or [topology.root]
        for number, home in enumerate(homes):
            self.overlay.hand(home, Advertise("all", Filter.parse("TRUE")), f"p{number}")
        self.grow(load)
        self.overlay.link()

    @property
    def load(self) -> int:
        return EACH * len(self._consumers)

    def grow(self, load: int) -> None:
        """Let consumers come until there are `load` subscriptions."""
        while self.load < load:
            self.come()

    def come(self) -> None:
        """One more consumer subscribes to all that it wants."""
        client = f"c{self._arrived}"
        broker, interests = self._consumer(self._rng)
        for number, wanted in enumerate(islice(interests, EACH)):
            self.overlay.hand(broker, Subscribe(str(number), wanted), client)
        self._consumers.append((client, broker))
        self._arrived += 1

    def leave(self) -> None:
        """A uniform consumer gives up all that it wanted."""
        client, broker = self._consumers.pop(self._rng.randrange(len(self._consumers)))
        for number in range(EACH):
            self.overlay.hand(broker, Unsubscribe(str(number)), client)

    def measure(self, operations: int) -> Measured:
        setting, entries = self._setting, self.overlay.entries()
        complexities = sum(map(complexity, self.overlay.remote_filters()))
        rng = Random(f"{self._seed} operations {self.load}")
        told = [self._operation(rng) for _ in range(operations)]
        kind = setting.strategy, setting.advertisements, setting.form, len(self._consumers)
        return Measured(
            strategy=setting.strategy,
            advertisements=setting.advertisements,
            form=setting.form,
            tolerance=setting.tolerance,
            locality=setting.locality,
            zipf=setting.zipf,
            producers=setting.producers,
            subscriptions=self.load,
            seed=self._seed,
            entries=entries.remote,
            local_entries=entries.local,
            advertisement_entries=entries.advertised,
            complexity=round(complexities / entries.remote, 6) if entries.remote else None,
            admin_subscribe=sum(one for one, _ in told) / operations,
            admin_unsubscribe=sum(other for _, other in told) / operations,
            operations=operations,
            exact_entries=round(self._exact.entries(*kind), 6) if self._exact else None,
            exact_admin=round(self._exact.admin(*kind), 6) if self._exact else None,
        )

    def _operation(self, rng: Random) -> tuple[int, int]:
        """One more consumer subscribes once and leaves: the messages of each."""
        broker, interests = self._consumer(rng)
        before = self.overlay.sent[AdminS]
        self.overlay.hand(broker, Subscribe("once", next(interests)), "visitor")
        between = self.overlay.sent[AdminS]
        self.overlay.hand(broker, Unsubscribe("once"), "visitor")
        return between - before, self.overlay.sent[AdminS] - between

    def _consumer(self, rng: Random) -> tuple[NodeId, Iterator[Filter]]:
        """A new consumer: its broker, and what it wants. Consumers of near brokers have near places."""
        access = self.overlay.topology.access
        number = rng.randrange(len(access))
        return access[number], self._workload.interests(rng, number / len(access))
