"""Strategies of checking: the model of the paper, what it prints, and the client beside the model."""

from __future__ import annotations

from itertools import product
from math import sqrt
from pathlib import Path
from random import Random
from statistics import mean, stdev

import pytest

from vestnik.lab import checking_study
from vestnik.lab.checking import TABLE_1, Step, expected, run, steps, walk
from vestnik.lab.checking_claims import judge
from vestnik.lab.checking_client import observe
from vestnik.lab.checking_printed import PRINTED, case_1, case_2
from vestnik.lab.checking_runs import Kind, exact_ratio, measure_runs, printed_rows, rank_rows, ratio
from vestnik.lab.losses import LAWS, RARE, RATE, STEADY, Law, Weather
from vestnik.lab.parallel import Bench, Cores
from vestnik.lab.report import render
from vestnik.lab.results import Result, write
from vestnik.lab.statistics import p_value
from vestnik.session.checking import T0, Adaptive, Checking, Constant, MultiplicativeDecrease

BENCH = Bench(Cores(1), lambda share: None)
DETERMINISTIC = {name: strategy for name, strategy in TABLE_1.items() if name != "random"}


@pytest.fixture(scope="module")
def result() -> Result:
    return checking_study.study(checking_study.Size(200, 2, 2, 3), BENCH)


@pytest.mark.parametrize("t", [3.0, 12.0, 20.0, 47.0])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_laws_are_drawn_as_they_say(law: Law, t: float) -> None:
    rng = Random(1)
    drawn = [law.draw(t, rng) for _ in range(20_000)]
    assert mean(drawn) == pytest.approx(law.mean(t), abs=4 * stdev(drawn) / sqrt(len(drawn)) + 1e-12)
    assert mean(k == 0 for k in drawn) == pytest.approx(law.none(t), abs=4 * 0.5 / sqrt(len(drawn)))


def test_what_is_expected_of_halving_is_so_over_all_ways_it_may_go() -> None:
    law, count = LAWS["poisson"], 3
    k = t = 0.0
    for lost in product((False, True), repeat=count):
        chance, interval, here = 1.0, T0, []
        for some in lost:
            none = law.none(interval)
            chance *= 1 - none if some else none
            interval = interval / 2 if some else T0
            here.append(interval)
        k += chance * mean(map(law.mean, here))
        t += chance * mean(here)
    assert expected("multiplicative decrease", law, count) == pytest.approx((k, t))


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("law", LAWS)
def test_the_ratio_is_as_expected(law: str, name: str) -> None:
    kind = Kind(law, name, 20 if name == "adaptive" else 0)
    known = exact_ratio(kind)
    if known is None:
        assert name == "adaptive" and law != "poisson"
    else:
        found = ratio([run(kind.checking, LAWS[law], Random(seed)) for seed in range(100)])
        assert p_value(found, known) > 0.001


def test_steps_begin_after_the_first_interval() -> None:
    law = LAWS["poisson"]
    found = steps(Adaptive(delta=20, alpha=0.5), law, Random(5))
    rng = Random(5)
    lost = law.draw(T0, rng)
    assert next(found).interval == (T0 + 20 if lost == 0 else T0 * (1 + lost / 2) / (lost + 1))


def test_a_walk_finds_each_loss_at_the_next_check() -> None:
    found = list(walk(MultiplicativeDecrease(first=8.0), [1.0, 7.0, 8.0, 13.0], 30.0, Random(0)))
    assert found == [Step(8.0, 3, 8.0), Step(4.0, 0), Step(8.0, 1, 7.0), Step(4.0, 0)]


@pytest.mark.parametrize("weather", [STEADY, RARE, Weather(0.5, 100.0, 100.0)], ids=["steady", "rare", "half"])
def test_losses_come_at_the_mean_rate_and_most_of_them_in_storms(weather: Weather) -> None:
    cycle = weather.calm + weather.length
    seconds = 200_000 // cycle * cycle
    losses = weather.losses(seconds, Random(3))
    assert losses == sorted(losses) and losses[-1] <= seconds
    assert len(losses) / seconds == pytest.approx(RATE, rel=0.06)
    stormy = mean(at % cycle > weather.calm for at in losses)
    share = weather.share * weather.contrast / (1 - weather.share + weather.share * weather.contrast)
    assert stormy == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("weather", [STEADY, RARE], ids=["steady", "storms"])
@pytest.mark.parametrize("strategy", DETERMINISTIC.values(), ids=DETERMINISTIC)
def test_the_client_is_the_model_where_nothing_arrives_but_by_checks(strategy: Checking, weather: Weather) -> None:
    losses = weather.losses(9000.0, Random(4))
    seen = observe(strategy, losses, 9000.0, Random(5))
    modelled = list(walk(strategy, losses, 9000.0, Random(6)))
    assert seen.losses == losses and seen.gaps == 0
    assert [check.lost for check in seen.checks] == [check.lost for check in modelled]
    assert [check.interval for check in seen.checks] == pytest.approx([check.interval for check in modelled])
    assert seen.waited == pytest.approx(sum(check.waited for check in modelled))


def test_a_client_that_is_notified_of_some_asks_less_and_sooner() -> None:
    published = [at / 2 for at in STEADY.losses(8000.0, Random(1))]
    seen = observe(Constant(20), published, 4000.0, Random(2), shed=0.5)
    assert 0.4 < len(seen.losses) / len(published) < 0.6
    assert seen.recovered == len([at for at in seen.losses if at <= 3980.0]) or seen.recovered == len(seen.losses)
    assert seen.gaps > 0 and len(seen.checks) < 200
    assert seen.waited / seen.recovered < 10, "half of the interval, by checks alone"


def test_what_is_printed_and_cannot_be() -> None:
    assert [(c.table, c.delta) for c in PRINTED if not c.is_consistent] == [(2, 20), (3, 40), (3, 60)]
    assert (case_1(20, 20, 1), case_2(20, 0.5, 1, 1)) == (20, 20), "rule (3) gives 40 and 15"


def test_printed_numbers_are_held_against_single_runs() -> None:
    kinds = dict.fromkeys(Kind("poisson", c.strategy, c.delta) for c in PRINTED)
    runs = measure_runs(list(kinds), 3300, BENCH)
    wrong = [(row["table"], row["delta"], row["quantity"]) for row in printed_rows(runs) if not row["agrees"]]
    assert wrong == [(3, 40, "k_avg"), (3, 60, "k_avg")]
    for quantity in ("ratio", "ratio_avg"):
        least = [row["least"] for row in rank_rows(runs) if row["quantity"] == quantity]
        assert 1 <= sum(least) < 1.02 and min(least) > 0.15, "each comes first about as often; some tie"


def verdicts(tables: dict[str, list[dict[str, object]]]) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in judge(tables)}


def verdict_on(found: dict[str, str], words: str) -> str:
    (one,) = [verdict for claim, verdict in found.items() if words in claim]
    return one


def test_claims_are_judged(result: Result) -> None:
    found = {claim.claim: claim.verdict for claim in result.claims}
    assert len(found) == 18
    assert verdict_on(found, "best of four") == verdict_on(found, "δ = 20 is the best") == "does not hold"
    assert verdict_on(found, "Case 1") == verdict_on(found, "Case 2") == "does not hold"
    assert verdict_on(found, "A small δ") == verdict_on(found, "as the model does") == "holds"
    assert verdict_on(found, "the printed k_avg / t_avg") == "holds in part"


def test_verdicts_follow_from_what_was_measured(result: Result) -> None:
    tables = {name: [dict(row) for row in rows] for name, rows in result.tables.items()}
    for row in tables["checking"]:
        if row["delta"] == 20:
            row["ratio"] -= 0.01
            row["ratio_avg"] -= 0.01
    for row in tables["checking-cases"]:
        row["printed"] = row["by_rule"]
    for row in tables["checking-storms"]:
        row["wait_share"] = 0.5
    for row in tables["checking-client"]:
        row["checks_p"] = 0.0
    found = verdicts(tables)
    for words in ("best of four", "δ = 20 is the best", "Case 1", "Case 2", "outperforms", "changes with time, the"):
        assert verdict_on(found, words) == "holds", words
    assert verdict_on(found, "as the model does") == "does not hold"


def test_the_files_and_the_page(result: Result, tmp_path: Path) -> None:
    written = write(result, tmp_path, checking_study.draw)
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    assert len([path for path in written if path.suffix == ".png"]) == 4
    assert "both rows rank noise" in render(tmp_path)
