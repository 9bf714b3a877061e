"""Runs lie as far from what is expected as they should."""

from __future__ import annotations

from statistics import mean

import pytest

from vestnik.lab.exact import Exact
from vestnik.lab.routing import FORMS, Setting, sample
from vestnik.lab.spread import Spread
from vestnik.sim.topologies import Topology, line, paper

RUNS, OPERATIONS, STOCKS, CONSUMERS = 120, 4, 25, 3


def variance(found: list[float], expected: float) -> float:
    return mean((one - expected) ** 2 for one in found)


@pytest.mark.parametrize("strategy", ["simple", "identity", "covering", "merging"])
@pytest.mark.parametrize("ads", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_variances_are_those_of_many_runs(strategy: str, ads: bool, form: str) -> None:
    """A sample variance of so many runs is within 40 % of the true one; some are bounds, and close."""
    topology: Topology = line(3)
    setting = Setting(strategy=strategy, advertisements=ads, form=form, stocks=STOCKS)
    runs = [next(sample(setting, [10 * CONSUMERS], seed, OPERATIONS, topology)) for seed in range(RUNS)]
    exact = Exact(topology, STOCKS)
    kind = strategy, ads, form, CONSUMERS
    entries, admin = Spread(exact).entries(*kind), Spread(exact).admin(*kind, OPERATIONS)
    most = 1.6 if (strategy, form) == ("covering", "interval") else 1.0
    seen = variance([run.entries for run in runs], exact.entries(*kind))
    assert seen / 1.4 - 1e-6 <= entries <= 1.4 * most * seen + 1e-6
    seen = variance([run.admin_subscribe for run in runs], exact.admin(*kind))
    assert seen / 1.4 - 1e-6 <= admin <= 2 * seen + 1e-6


def test_where_nothing_varies() -> None:
    spread = Spread(Exact(paper()))
    assert spread.entries("simple", False, "equality", 100) == pytest.approx(0, abs=1e-6)
    assert spread.admin("simple", False, "equality", 100, 10) == pytest.approx(0, abs=1e-6)
    assert spread.entries("flooding", False, "equality", 100) == spread.admin("flooding", False, "equality", 9, 9) == 0


def test_more_operations_spread_less_but_not_without_end() -> None:
    spread = Spread(Exact(paper()))
    one, ten, many = (spread.admin("covering", False, "interval", 200, count) for count in (1, 10, 10**9))
    assert one > ten > one / 10 and many > 0
