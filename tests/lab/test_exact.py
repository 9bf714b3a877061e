"""What is measured agrees with what is expected exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from vestnik.lab.agreement import cells, disagreeing
from vestnik.lab.exact import Exact, harmonic, reciprocal
from vestnik.lab.routing import FORMS, Market, Measured, Setting, sample
from vestnik.lab.statistics import estimate, p_value
from vestnik.sim.topologies import Topology, paper

STRATEGIES = ("simple", "identity", "covering", "merging")
STOCKS, SEEDS, OPERATIONS, LOADS = 40, 24, 8, [20, 60]

SMALL = Topology(
    ("r", "a", "b", "l0", "l1", "l2", "l3", "l4"),
    (("r", "a"), ("r", "b"), ("r", "l0"), ("a", "l1"), ("a", "l2"), ("b", "l3"), ("b", "l4")),
    ("l0", "l1", "l2", "l3", "l4"),
)


def test_the_topology_of_the_paper() -> None:
    exact = Exact(paper())
    assert Fraction(exact.mean_path).limit_denominator(100) == Fraction(250, 67)
    assert len(exact.links) == 212
    assert sum(exact.links.values()) == pytest.approx(106)
    assert exact.entries("simple", False, "equality", 200) == pytest.approx(106 * 2000)
    assert exact.entries("simple", True, "equality", 67) == pytest.approx(2500)


@pytest.mark.parametrize(
    ("strategy", "form", "limit"),
    [
        ("flooding", "equality", 0),
        ("simple", "equality", math.inf),
        ("identity", "equality", 212_000),
        ("identity", "interval", math.inf),
        ("covering", "equality", 212_000),
        ("covering", "interval", math.inf),
        ("merging", "equality", 212),
        ("merging", "interval", 212_000),
    ],
)
def test_limits_and_that_advertisements_halve_them(strategy: str, form: str, limit: float) -> None:
    exact = Exact(paper())
    assert exact.limit(strategy, False, form) == limit
    assert exact.limit(strategy, True, form) == limit / 2
    if limit < math.inf:
        assert exact.entries(strategy, False, form, 200_000) == pytest.approx(limit, rel=1e-6)


def binomial(n: int, q: float) -> list[float]:
    return [math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize(("q", "n"), [(0.3, 7), (0.01, 40), (0.9, 3)])
def test_the_sums_are_expectations(q: float, n: int) -> None:
    weights = binomial(n, q)
    harmonics = [sum(1 / i for i in range(1, k + 1)) for k in range(n + 1)]
    assert harmonic(q, n) == pytest.approx(sum(w * h for w, h in zip(weights, harmonics, strict=True)))
    assert reciprocal(q, n) == pytest.approx(sum(w / k for k, w in enumerate(weights) if k))


def test_the_mean_number_of_maximal_intervals_is_harmonic() -> None:
    rng, n = Random(5), 12
    counts = []
    for _ in range(4_000):
        ends = [(rng.random(), rng.random()) for _ in range(n)]
        counts.append(sum(not any(a > x and b > y for a, b in ends) for x, y in ends))
    assert p_value(estimate(counts), sum(1 / i for i in range(1, n + 1))) > 0.001


def sampled(
    settings: list[Setting], topology: Topology, loads: list[int], seeds: int, operations: int
) -> list[Measured]:
    runs = product(settings, range(seeds))
    return [row for setting, seed in runs for row in sample(setting, loads, seed, operations, topology)]


def test_measured_means_agree_with_the_expected_ones() -> None:
    """96 cells: 4 strategies, with advertisements or not, 2 forms, 2 loads, 3 quantities."""
    settings = [
        Setting(strategy=strategy, advertisements=ads, form=form, stocks=STOCKS)
        for strategy, ads, form in product(STRATEGIES, (False, True), FORMS)
    ]
    found = cells(sampled(settings, SMALL, LOADS, SEEDS, OPERATIONS), Exact(SMALL, STOCKS))
    assert len(found) == 96
    assert disagreeing(found) == []


def test_they_do_on_the_brokers_of_the_paper() -> None:
    settings = [Setting(strategy=strategy, advertisements=True, form="interval") for strategy in STRATEGIES]
    assert disagreeing(cells(sampled(settings, paper(), [10, 100], 12, 4), Exact(paper()))) == []


def test_hierarchical_routing_is_like_a_producer_at_the_root() -> None:
    settings = [Setting(strategy="hierarchical covering", form="interval", stocks=STOCKS)]
    assert disagreeing(cells(sampled(settings, SMALL, [50], SEEDS, OPERATIONS), Exact(SMALL, STOCKS))) == []
    assert Exact(SMALL).entries("hierarchical covering", False, "interval", 5) == Exact(SMALL).entries(
        "covering", True, "interval", 5
    )


def test_a_wrong_expectation_is_seen() -> None:
    settings = [Setting(strategy="identity", stocks=STOCKS)]
    wrong = disagreeing(cells(sampled(settings, SMALL, LOADS, SEEDS, OPERATIONS), Exact(SMALL, STOCKS - 15)))
    assert "entries of identity, equality, x = 60" in " ".join(map(str, wrong))


def test_cells_without_spread_are_judged_by_the_exact_one() -> None:
    """Of one consumer and few visitors, hardly any visitor wants the same stock."""
    rows = sampled([Setting(strategy="covering", form="interval")], SMALL, [10], 6, 1)
    _, told, _ = cells(rows, Exact(SMALL))
    assert (told.mean, told.error, told.exact < 7) == (7, 0, True)
    assert told.p > 0.5 > told._replace(exact_error=0.0).p == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("form", FORMS)
def test_a_network_that_grew_is_like_one_that_did_not(strategy: str, form: str) -> None:
    """Neither the loads before nor those who came to measure leave a trace."""
    market = Market(Setting(strategy=strategy, form=form, stocks=STOCKS), 1, SMALL)
    grown = []
    for load in LOADS:
        market.grow(load)
        grown.append(market.measure(5))
    assert grown == list(sample(Setting(strategy=strategy, form=form, stocks=STOCKS), LOADS, 1, 5, SMALL))


def test_what_is_measured_besides() -> None:
    def measured(strategy: str, ads: bool) -> Measured:
        return next(sample(Setting(strategy=strategy, advertisements=ads), [30], 1, 1, SMALL))

    assert measured("flooding", False).entries == 0
    assert (measured("simple", True).local_entries, measured("simple", True).advertisement_entries) == (30, 7)
    assert measured("simple", False).advertisement_entries == 0
    assert measured("merging", True) == measured("merging", True)
    assert measured("hierarchical covering", False).exact_entries == measured("covering", True).exact_entries
    local = next(sample(Setting(strategy="simple", advertisements=True, producers=2), [30], 1, 1, SMALL))
    assert (local.exact_entries, local.exact_admin) == (None, None)


def test_merged_stocks_are_one_entry_with_many_values() -> None:
    def measured(strategy: str, form: str = "equality") -> Measured:
        setting = Setting(strategy=strategy, advertisements=True, form=form, stocks=STOCKS)
        return next(sample(setting, [60], 1, 1, SMALL))

    identity, merging = measured("identity"), measured("merging")
    assert identity.complexity == 1
    assert merging.entries * (merging.complexity or 0) == pytest.approx(identity.entries, abs=1e-3)
    assert measured("merging", "interval").complexity == 2
    assert measured("flooding").complexity is None
