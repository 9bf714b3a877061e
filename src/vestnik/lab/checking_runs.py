"""Many runs of the model of the paper, beside what is exact and beside what the paper prints of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple, TypeAlias

from vestnik.lab.checking import DELTAS, TABLE_1, Indices, expected, run
from vestnik.lab.checking_printed import PRINTED, QUANTITIES, Printed
from vestnik.lab.losses import LAWS, RATE
from vestnik.lab.parallel import Bench, each
from vestnik.lab.results import Row
from vestnik.lab.statistics import WIDE, Estimate, estimate, holm
from vestnik.session.checking import Adaptive, Checking

LEVEL = 0.01
"""The probability of calling any cell wrong if all are right."""
TOGETHER = 250
"""Runs that are one task."""


class Kind(NamedTuple):
    """A law of losses and a strategy; delta is 0 where it has none."""

    law: str
    strategy: str
    delta: int = 0

    @property
    def checking(self) -> Checking:
        return Adaptive(delta=self.delta) if self.delta else TABLE_1[self.strategy]


Runs: TypeAlias = dict[Kind, list[Indices]]

KINDS = [
    *[Kind(law, name) for law in LAWS for name in TABLE_1 if name != "adaptive"],
    *[Kind(law, "adaptive", delta) for law in LAWS for delta in DELTAS],
]


def measure_runs(kinds: Sequence[Kind], count: int, bench: Bench) -> Runs:
    """So many independent runs of each kind."""
    pieces = [range(start, min(start + TOGETHER, count)) for start in range(0, count, TOGETHER)]
    tasks = [(kind, piece) for kind in kinds for piece in pieces]
    found: Runs = {kind: [] for kind in kinds}
    for (kind, _), runs in zip(tasks, each(_some, tasks, bench), strict=True):
        found[kind] += runs or []
    return found


def _some(task: tuple[Kind, Sequence[int]]) -> list[Indices]:
    kind, seeds = task
    law, strategy = LAWS[kind.law], kind.checking
    return [run(strategy, law, Random(f"{kind} {seed}")) for seed in seeds]


# --- beside what is exact ---


def ratio(runs: Sequence[Indices]) -> Estimate:
    """What is lost a second, over all runs: the mean of k_avg by the mean of t_avg."""
    k, t = fmean(r.k_avg for r in runs), fmean(r.t_avg for r in runs)
    return Estimate(k / t, estimate([r.k_avg - k / t * r.t_avg for r in runs]).error / t, len(runs))


def exact_ratio(kind: Kind) -> float | None:
    if kind.law == "poisson":
        return RATE
    known = expected(kind.strategy, LAWS[kind.law])
    return None if known is None else known[0] / known[1]


def rows_of(runs: Runs) -> Iterator[Row]:
    """A row for each kind; each mean with half of its confidence interval, of 95 %."""
    for kind, found in runs.items():
        known = expected(kind.strategy, LAWS[kind.law]) or (None, None)
        k, t = estimate([r.k_avg for r in found]), estimate([r.t_avg for r in found])
        share, shares = ratio(found), estimate([r.ratio_avg for r in found])
        longest = estimate([r.longest for r in found])
        yield {
            **kind._asdict(),
            "runs": len(found),
            **_interval("k_avg", k),
            "exact_k_avg": known[0],
            **_interval("t_avg", t),
            "exact_t_avg": known[1],
            **_interval("ratio", share),
            "exact_ratio": exact_ratio(kind),
            **_interval("ratio_avg", shares),
            **_interval("longest", longest),
        }


def _interval(name: str, found: Estimate) -> Row:
    return {name: found.mean, f"{name}_ci": WIDE * found.error}


# --- beside what is printed ---


def printed_rows(runs: Runs) -> list[Row]:
    """Each printed number beside what one run comes to: the mean, the spread, and how many runs are as far from it.

    A number disagrees where that is too rare for any of so many numbers (Holm's procedure).
    """
    cells = [(column, quantity) for column in PRINTED for quantity in QUANTITIES]
    rows = [_cell(column, quantity, runs[Kind("poisson", column.strategy, column.delta)]) for column, quantity in cells]
    wrong = set(holm([row["p"] for row in rows], LEVEL))
    return [row | {"agrees": place not in wrong} for place, row in enumerate(rows)]


def _cell(column: Printed, quantity: str, runs: Sequence[Indices]) -> Row:
    values = [getattr(r, quantity) for r in runs]
    printed, centre = float(getattr(column, quantity)), fmean(values)
    as_far = sum(abs(value - centre) >= abs(printed - centre) - 1e-12 for value in values)
    return {
        "table": column.table,
        "strategy": column.strategy,
        "delta": column.delta,
        "quantity": quantity,
        "printed": printed,
        "mean": centre,
        "spread": stdev(values),
        "p": (as_far + 1) / (len(values) + 1),
    }


def rank_rows(runs: Runs) -> Iterator[Row]:
    """How often each strategy of table 2 has the least and the largest ratio, in one run of each."""
    columns = {c.strategy: runs[Kind("poisson", c.strategy, c.delta)] for c in PRINTED if c.table == 2}
    for quantity in ("ratio", "ratio_avg"):
        contests = list(zip(*[[getattr(r, quantity) for r in found] for found in columns.values()], strict=True))
        for place, name in enumerate(columns):
            yield {
                "quantity": quantity,
                "strategy": name,
                "least": fmean(values[place] == min(values) for values in contests),
                "largest": fmean(values[place] == max(values) for values in contests),
            }
