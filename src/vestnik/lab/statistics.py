"""Means with their spread, and whether many of them agree with what is expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import NamedTuple

from vestnik.report.numbers import number

WIDE = 1.96
"""Half a confidence interval of 95 %, in standard errors."""


class Estimate(NamedTuple):
    """The mean of independent measurements, its standard error, and the number of runs."""

    mean: float
    error: float
    runs: int

    def __str__(self) -> str:
        return f"{number(self.mean)} ± {number(self.error)}" if self.error else number(self.mean)


def estimate(values: Sequence[float]) -> Estimate:
    spread = stdev(values) if len(values) > 1 else 0.0
    return Estimate(mean(values), spread / math.sqrt(len(values)), len(values))


def quantile(values: Sequence[float], share: float) -> float | None:
    """The least value that is at least as large as this share of all; None where there are none."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


def p_value(measured: Estimate, expected: float, error: float = 0.0) -> float:
    """How likely a mean as far from `expected` is, by Student's test.

    Where the exact standard error is known, and larger than that of the sample, it counts: rare events may have been
    missed by all runs. Without any spread only equality is likely.
    """
    distance = abs(measured.mean - expected)
    if distance <= 1e-9 * max(1.0, abs(expected)):
        return 1.0
    error = max(error, measured.error)
    return student_tail(distance / error, max(1, measured.runs - 1)) if error else 0.0


def student_tail(t: float, freedom: int) -> float:
    """The probability that a Student variable is at least `t` away from 0; `t` is not negative.

    A finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    inside = (angle + sine * total) * 2 / math.pi if odd else sine * total
    return max(0.0, 1.0 - inside)


def holm(p_values: Sequence[float], level: float) -> list[int]:
    """The cells that disagree: if all agree in truth, one or more are named with at most the probability `level`.

    That holds however the cells depend on each other.
    """
    found: list[int] = []
    for rank, cell in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[cell] * (len(p_values) - rank) > level:
            break
        found.append(cell)
    return found
