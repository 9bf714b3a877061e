"""What one run is: the routing, the lease, the tree of brokers, and the seed that everything random comes from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random

STRATEGIES = ("flooding", "simple", "identity", "covering", "merging")
LEASES = (6.0, 60.0)
HEARTBEATS = {6.0: 2.0, 60.0: 20.0}
"""The heartbeat that faults are timed by; only that of the short lease is given to brokers."""
BROKERS = 5
PUBLISHERS = 4
CLASSES = 100
"""Events have a class below this number; a filter wants a range of classes."""
VARIANTS = tuple(product(LEASES, (False, True), STRATEGIES))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run. The same plan gives the same tree and filters; when which fault happens also depends on timing."""

    seed: int
    strategy: str
    advertisements: bool
    lease: float
    seconds: float
    faults: bool = True
    disk: bool = False

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, not {self.strategy!r}")
        if not 0 < self.seconds <= 3600:
            raise ValueError(f"a run takes up to 3600 seconds, not {self.seconds:g}")

    @property
    def heartbeat(self) -> float:
        return HEARTBEATS.get(self.lease, self.lease / 3)

    def chance(self, role: str) -> Random:
        """Return the random numbers of one role, so that one role does not disturb those of another."""
        return Random(f"{self.seed} {role}")

    def parents(self) -> list[int]:
        """Return the parent of each broker but the first, which has -1."""
        chance = self.chance("tree")
        return [-1, *(chance.randrange(place) for place in range(1, BROKERS))]

    def __str__(self) -> str:
        advertisements = "advertisements" if self.advertisements else "-"
        return f"{self.strategy} {advertisements} lease {self.lease:g} seed {self.seed}"


def planned(seed: int, seconds: float, *, faults: bool = True, disk: bool = False) -> Plan:
    """Return the run of a seed: twenty seeds in a row go through every strategy, with each lease and advertisements."""
    lease, advertisements, strategy = VARIANTS[seed % len(VARIANTS)]
    return Plan(
        seed=seed,
        strategy=strategy,
        advertisements=advertisements,
        lease=lease,
        seconds=seconds,
        faults=faults,
        disk=disk,
    )
