"""What was measured in the routing experiment, beside what is exactly so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from vestnik.lab.agreement import Cell, cells, disagreeing
from vestnik.lab.exact import EACH, Exact
from vestnik.lab.results import Row
from vestnik.lab.routing import FORMS, Measured
from vestnik.lab.statistics import Estimate, estimate
from vestnik.sim.topologies import paper

STRATEGIES = ("simple", "identity", "covering", "merging")
EQUALITY, INTERVAL = FORMS
PAPER = Exact(paper())
LINKS = len(PAPER.topology.edges)
PAPERS_LARGEST, LARGE = 2_000, 100_000
GRID = [10, 100, 1_000, PAPERS_LARGEST, 10_000, LARGE, 1_000_000]
"""Loads at which exact values are told."""


class Evidence:
    """The rows of the main table."""

    def __init__(self, rows: list[Measured]) -> None:
        self._rows: dict[tuple[str, bool, str, int], list[Measured]] = {}
        for row in rows:
            key = row.strategy, row.advertisements, row.form, row.subscriptions
            self._rows.setdefault(key, []).append(row)
        self.cells: list[Cell] = cells(rows, PAPER)
        self.disagreeing: list[Cell] = disagreeing(self.cells)

    def agrees(self, strategy: str, form: str, load: int) -> bool:
        """Whether all is as expected there, with advertisements and without."""
        kind = strategy, form, load
        return not any((cell.strategy, cell.form, cell.subscriptions) == kind for cell in self.disagreeing)

    def judged(self) -> Iterator[Row]:
        """Each cell with its verdict."""
        for cell in self.cells:
            yield cell._asdict() | {"p": cell.p, "agrees": cell not in self.disagreeing}

    def summary(self) -> Iterator[Row]:
        """Means over the seeds with their standard errors, beside the exact values."""
        for strategy, ads, form, load in self._rows:
            kind = strategy, ads, form, load
            entries, admin = self.entries(*kind), self.admin(*kind)
            yield {
                "strategy": strategy,
                "advertisements": ads,
                "form": form,
                "subscriptions": load,
                "entries": entries.mean,
                "entries_error": entries.error,
                "exact_entries": self.exact_entries(*kind),
                "admin": admin.mean,
                "admin_error": admin.error,
                "exact_admin": self.exact_admin(*kind),
                "complexity": self.complexity(*kind).mean,
            }

    def loads(self, strategy: str, ads: bool, form: str) -> list[int]:
        return sorted(load for *kind, load in self._rows if kind == [strategy, ads, form])

    def common_load(self, form: str, *strategies: str) -> int:
        """The largest load that was measured under each strategy, with advertisements and without."""
        return max(
            set.intersection(*(set(self.loads(name, ads, form)) for name in strategies for ads in (False, True)))
        )

    def advertised_load(self, *strategies: str) -> int:
        """The largest load that was measured under each strategy with advertisements and intervals."""
        return max(set.intersection(*(set(self.loads(name, True, "interval")) for name in strategies)))

    def measured(self, strategy: str, ads: bool, form: str, load: int, of: Callable[[Measured], float]) -> Estimate:
        return estimate([of(row) for row in self._rows[strategy, ads, form, load]])

    def entries(self, strategy: str, ads: bool, form: str, load: int) -> Estimate:
        return self.measured(strategy, ads, form, load, lambda row: row.entries)

    def admin(self, strategy: str, ads: bool, form: str, load: int) -> Estimate:
        """Messages for a subscription or its end."""
        return self.measured(strategy, ads, form, load, lambda row: (row.admin_subscribe + row.admin_unsubscribe) / 2)

    def complexity(self, strategy: str, ads: bool, form: str, load: int) -> Estimate:
        """Values and intervals in the filter of an entry."""
        return self.measured(strategy, ads, form, load, lambda row: row.complexity or 0.0)

    def says_as_much(self, form: str) -> bool:
        """Whether under merging all entries together name as much as under identity, with advertisements."""
        return all(
            round(merged.entries * (merged.complexity or 0.0)) == round(same.entries * (same.complexity or 0.0))
            for load in set(self.loads("merging", True, form)) & set(self.loads("identity", True, form))
            for merged, same in self._side_by_side(("merging", True, form, load), ("identity", True, form, load))
        )

    def factor(self, strategy: str, form: str, load: int) -> Estimate:
        """By which factor advertisements reduce the entries, each seed by itself."""
        found = self._side_by_side((strategy, False, form, load), (strategy, True, form, load))
        return estimate([without.entries / with_ads.entries for without, with_ads in found])

    def ratio(self, one: str, other: str, load: int) -> Estimate:
        """The entries of one strategy for each of the other, with advertisements and intervals, each seed by itself."""
        found = self._side_by_side((one, True, INTERVAL, load), (other, True, INTERVAL, load))
        return estimate([first.entries / second.entries for first, second in found])

    def _side_by_side(
        self, one: tuple[str, bool, str, int], other: tuple[str, bool, str, int]
    ) -> list[tuple[Measured, Measured]]:
        """The rows of the seeds that both have."""
        others = {row.seed: row for row in self._rows[other]}
        return [(row, others[row.seed]) for row in self._rows[one] if row.seed in others]

    @staticmethod
    @lru_cache(maxsize=4096)
    def exact_entries(strategy: str, ads: bool, form: str, load: int) -> float:
        return PAPER.entries(strategy, ads, form, load // EACH)

    @staticmethod
    @lru_cache(maxsize=4096)
    def exact_admin(strategy: str, ads: bool, form: str, load: int) -> float:
        return PAPER.admin(strategy, ads, form, load // EACH)

    @classmethod
    def exact_ratio(cls, one: str, other: str, ads: bool, load: int) -> float:
        """The expected entries of one strategy for each of the other, with intervals."""
        return cls.exact_entries(one, ads, "interval", load) / cls.exact_entries(other, ads, "interval", load)

    @classmethod
    def exact_factor(cls, strategy: str, form: str, load: int) -> float:
        return cls.exact_entries(strategy, False, form, load) / cls.exact_entries(strategy, True, form, load)
