"""Strategies of checking in the model of the paper: intervals t, and how many k were lost in each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from statistics import fmean
from typing import NamedTuple

from vestnik.lab.losses import Law
from vestnik.session.checking import T0, Adaptive, Checking, Constant, MultiplicativeDecrease, RandomInterval

STEPS = 100
TABLE_1: dict[str, Checking] = {
    "multiplicative decrease": MultiplicativeDecrease(0.5),
    "random": RandomInterval(10, 30),
    "constant": Constant(),
    "adaptive": Adaptive(delta=20, alpha=0.5),
}
"""The strategies of the paper, in the order of its table 2. All begin with t = 20."""
DELTAS = (10, 20, 40, 60)
"""Those of its table 3."""


class Step(NamedTuple):
    """An interval, how many were lost in it, and how long these had to wait for the check, all together."""

    interval: float
    lost: int
    waited: float = 0.0


class Indices(NamedTuple):
    """What the paper measures in a run, and the longest interval."""

    k_avg: float
    t_avg: float
    ratio: float  # k_avg / t_avg
    ratio_avg: float  # the mean of k / t
    longest: float


def steps(strategy: Checking, law: Law, rng: Random) -> Iterator[Step]:
    """What follows the first interval, in which something may be lost, too; without an end."""
    step = Step(strategy.first, law.draw(strategy.first, rng))
    while True:
        interval = strategy.next(step.interval, step.lost, rng.uniform)
        step = Step(interval, law.draw(interval, rng))
        yield step


def run(strategy: Checking, law: Law, rng: Random, count: int = STEPS) -> Indices:
    taken = list(islice(steps(strategy, law, rng), count))
    k, t = fmean(step.lost for step in taken), fmean(step.interval for step in taken)
    rates = fmean(step.lost / step.interval for step in taken)
    return Indices(k, t, k / t, rates, max(step.interval for step in taken))


def walk(strategy: Checking, losses: Sequence[float], seconds: float, rng: Random) -> Iterator[Step]:
    """The checks of so many seconds, where losses come at these times."""
    interval, now, first = strategy.first, 0.0, 0
    while now + interval <= seconds:
        now += interval
        last = bisect_right(losses, now, first)
        step = Step(interval, last - first, sum(now - at for at in losses[first:last]))
        yield step
        first = last
        interval = strategy.next(interval, step.lost, rng.uniform)


def expected(name: str, law: Law, count: int = STEPS) -> tuple[float, float] | None:
    """The expectations of k_avg and t_avg for a strategy of table 1; None where they are not known."""
    match name:
        case "constant":
            return law.mean(T0), T0
        case "random":
            grid = [10 + 20 * (place + 0.5) / 20_000 for place in range(20_000)]
            return fmean(map(law.mean, grid)), 20.0
        case "multiplicative decrease":
            return _halving(law, count)
    return None


def _halving(law: Law, count: int) -> tuple[float, float]:
    """By how probable each number of halvings is at each step."""
    chances = [1.0]
    k = t = 0.0
    for _ in range(count):
        intervals = [T0 / 2**halvings for halvings in range(len(chances))]
        none = [law.none(interval) for interval in intervals]
        back = sum(chance * share for chance, share in zip(chances, none, strict=True))
        chances = [back, *[chance * (1 - share) for chance, share in zip(chances, none, strict=True)]]
        intervals.append(T0 / 2 ** len(intervals))
        k += sum(chance * law.mean(interval) for chance, interval in zip(chances, intervals, strict=True))
        t += sum(chance * interval for chance, interval in zip(chances, intervals, strict=True))
    return k / count, t / count
