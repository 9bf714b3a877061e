"""Whether what was measured agrees with what is exact, in many cells at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import sqrt
from typing import NamedTuple

from vestnik.lab.exact import EACH, Exact
from vestnik.lab.routing import Measured
from vestnik.lab.spread import Spread
from vestnik.lab.statistics import Estimate, estimate, holm, p_value

LEVEL = 0.01
"""The probability that any cell at all is found to disagree if all agree in truth."""


class Cell(NamedTuple):
    """One quantity of one setting at one load: its mean over the runs beside what is expected.

    `error` is the standard error of the mean by the sample, `exact_error` the exact one or a bound of it.
    """

    strategy: str
    advertisements: bool
    form: str
    subscriptions: int
    quantity: str
    runs: int
    mean: float
    error: float
    exact: float
    exact_error: float

    @property
    def p(self) -> float:
        return p_value(Estimate(self.mean, self.error, self.runs), self.exact, self.exact_error)

    def __str__(self) -> str:
        ads = " with advertisements" if self.advertisements else ""
        return (
            f"{self.quantity} of {self.strategy}{ads}, {self.form}, x = {self.subscriptions:,}: "
            f"{self.mean:,.6g} where {self.exact:,.6g} is expected (p = {self.p:.2g})"
        )


def cells(rows: Iterable[Measured], exact: Exact) -> list[Cell]:
    """Three for each setting and load: entries, and messages for a subscription and for its end."""
    kinds: dict[tuple[str, bool, str, int, int], list[Measured]] = {}
    for row in rows:
        kind = row.strategy, row.advertisements, row.form, row.subscriptions, row.operations
        kinds.setdefault(kind, []).append(row)
    return [cell for same in kinds.values() for cell in _cells(same, exact)]


def _cells(rows: list[Measured], exact: Exact) -> Iterator[Cell]:
    first, spread = rows[0], Spread(exact)
    kind = first.strategy, first.advertisements, first.form
    consumers, runs = first.subscriptions // EACH, len(rows)
    admin, of_admin = exact.admin(*kind, consumers), spread.admin(*kind, consumers, first.operations)
    for quantity, expected, variance in (
        ("entries", exact.entries(*kind, consumers), spread.entries(*kind, consumers)),
        ("admin_subscribe", admin, of_admin),
        ("admin_unsubscribe", admin, of_admin),
    ):
        mean, error, _ = estimate([getattr(row, quantity) for row in rows])
        yield Cell(*kind, first.subscriptions, quantity, runs, mean, error, expected, sqrt(variance / runs))


def disagreeing(found: list[Cell]) -> list[Cell]:
    """The cells that disagree at `LEVEL` for all together, by Holm's procedure."""
    return [found[place] for place in holm([cell.p for cell in found], LEVEL)]
