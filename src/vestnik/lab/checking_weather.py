"""Strategies of checking where losses come one by one in time, at a rate that may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from statistics import fmean
from typing import NamedTuple

from vestnik.lab.checking import TABLE_1, walk
from vestnik.lab.losses import CONTRAST, RARE, STEADY, Weather
from vestnik.lab.parallel import Bench, done
from vestnik.lab.results import Row
from vestnik.lab.statistics import WIDE, estimate
from vestnik.session.checking import Adaptive, Checking, Constant, MultiplicativeDecrease, RandomInterval

STORMS = [STEADY, *[Weather(s, length, CONTRAST) for s, length in product((0.5, 0.2, 0.05), (100.0, 400.0, 1600.0))]]
CURVES: dict[str, list[tuple[float, Checking]]] = {
    "adaptive": [(delta, Adaptive(delta=delta)) for delta in (2.5, 5, 10, 20, 40, 60)],
    "multiplicative decrease": [(t, MultiplicativeDecrease(first=t)) for t in (10, 20, 40, 80)],
    "random": [(t, RandomInterval(t / 2, 1.5 * t, first=t)) for t in (10, 20, 40, 60)],
    "constant": [(t, Constant(t)) for t in (10, 20, 30, 40, 60)],
}
"""Each strategy with its delta, or with its first or mean interval."""
LEAST_SECONDS = 20_000.0


class Sample(NamedTuple):
    """What a strategy comes to in a run; `wait` is the mean time from a loss to the check that finds it.

    `vain` is the share of checks that find nothing.
    """

    t_avg: float
    k_avg: float
    ratio_avg: float
    wait: float
    vain: float


def sample(strategy: Checking, losses: Sequence[float], seconds: float, rng: Random) -> Sample:
    checks = list(walk(strategy, losses, seconds, rng))
    lost = sum(check.lost for check in checks)
    return Sample(
        fmean(check.interval for check in checks),
        lost / len(checks),
        fmean(check.lost / check.interval for check in checks),
        sum(check.waited for check in checks) / max(1, lost),
        fmean(check.lost == 0 for check in checks),
    )


# --- the trade-off: one strategy with one parameter ---


def measure_curves(runs: int, cycles: int, bench: Bench) -> list[Row]:
    """What each strategy comes to, at a steady rate and with rare storms, for several parameters."""
    tasks = [
        (weather, name, parameter, checking, runs, cycles)
        for weather in (STEADY, RARE)
        for name, members in CURVES.items()
        for parameter, checking in members
    ]
    return done(_curve, tasks, bench)


def _curve(task: tuple[Weather, str, float, Checking, int, int]) -> Row:
    weather, name, parameter, checking, runs, cycles = task
    found = [sample(checking, *draw) for draw in _draws(weather, runs, cycles)]
    return {
        "weather": "steady" if weather == STEADY else "rare storms",
        "strategy": name,
        "parameter": parameter,
        **_means(found),
    }


def _draws(weather: Weather, runs: int, cycles: int) -> Iterator[tuple[list[float], float, Random]]:
    """When something is lost, in so many seconds; the same for all strategies."""
    seconds = max(LEAST_SECONDS, cycles * (weather.calm + weather.length))
    for seed in range(runs):
        losses = weather.losses(seconds, Random(f"{weather} {seed}"))
        yield losses, seconds, Random(f"{weather} {seed} strategy")


def _means(found: list[Sample]) -> Row:
    row: Row = {name: fmean(getattr(s, name) for s in found) for name in Sample._fields}
    return row | {"ratio": row["k_avg"] / row["t_avg"], "wait_ci": WIDE * estimate([s.wait for s in found]).error}


# --- storms: a strategy beside a constant interval with as many checks ---


def measure_storms(runs: int, cycles: int, bench: Bench) -> list[Row]:
    """Each strategy of table 1 in each weather, with a constant interval of the same mean beside it."""
    names = [name for name in TABLE_1 if name != "constant"]
    return done(_storms, [(weather, name, runs, cycles) for weather in STORMS for name in names], bench)


def _storms(task: tuple[Weather, str, int, int]) -> Row:
    weather, name, runs, cycles = task
    found, beside = [], []
    for losses, seconds, rng in _draws(weather, runs, cycles):
        found.append(sample(TABLE_1[name], losses, seconds, rng))
        beside.append(sample(Constant(found[-1].t_avg), losses, seconds, rng))
    share = estimate([one.wait / other.wait for one, other in zip(found, beside, strict=True)])
    return {
        **weather._asdict(),
        "strategy": name,
        **_means(found),
        "constant_wait": fmean(s.wait for s in beside),
        "constant_vain": fmean(s.vain for s in beside),
        "wait_share": share.mean,
        "wait_share_ci": WIDE * share.error,
    }
