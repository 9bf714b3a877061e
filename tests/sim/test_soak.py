"""Random scenarios, and whether a wrong network is found out."""

from __future__ import annotations

import pytest

from sim.worlds import small_pages
from vestnik.cli.sim.soak import check
from vestnik.recovery.feed import Feed, FeedState
from vestnik.routing import registry
from vestnik.routing.reductions import Nothing, Reduction
from vestnik.sim import runs
from vestnik.sim.soak import random_scenario, soak
from vestnik.verify.violations import Violation
from vestnik.wire.messages import NodeId

SEEDS = 100


def test_scenarios_depend_on_their_seed_alone() -> None:
    assert random_scenario(5) == random_scenario(5) != random_scenario(6)


def test_there_are_many_faults() -> None:
    assert sum(len(random_scenario(seed).faults) for seed in range(SEEDS)) >= 10_000


def test_all_kinds_of_faults_and_strategies_come_up() -> None:
    scenarios = [random_scenario(seed) for seed in range(200)]
    faults = {type(fault).__name__ for scenario in scenarios for fault in scenario.faults}
    assert faults == {"CutLink", "Crash", "Away", "Move", "CrashClient", "Corrupt", "Pause", "Stall", "BadDisk"}
    assert any(scenario.clients.replay for scenario in scenarios) and any(
        scenario.clients.newcomers for scenario in scenarios
    )
    assert any(scenario.links.loss for scenario in scenarios) and any(
        scenario.links.duplication for scenario in scenarios
    )
    assert {scenario.routing.strategy for scenario in scenarios} == set(registry.known_strategies())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_networks_are_right(seed: int) -> None:
    outcome = soak(seed, check)
    assert not outcome.wrong, outcome.wrong[0]


BURST, FLOOD, LONG, ROUND_TRIPS, REPEATED = 7047, 3676, 7203, 7162, 2102
"""Bursts larger than the windows; a long replay through a small window; a replay under load; a repeat."""


@pytest.mark.parametrize("seed", [BURST, FLOOD, LONG, ROUND_TRIPS, REPEATED])
def test_networks_are_right_in_rare_cases(seed: int) -> None:
    outcome = soak(seed, check)
    assert not outcome.wrong, outcome.wrong[0]


@pytest.mark.parametrize("seed", [seed for seed in range(40) if random_scenario(seed).clients.newcomers][:20])
def test_networks_are_right_where_brokers_hold_little_of_the_past(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    monkeypatch.setattr(runs, "PATIENCE", 30.0)
    outcome = soak(seed, check)
    assert not outcome.wrong, outcome.wrong[0]


class Mute:
    """A strategy that tells nobody anything, and forwards only what is asked for."""

    name = "mute"
    tagged = False
    hides = False

    def reduction(self, neighbour: NodeId) -> Reduction:
        return Nothing()

    def floods(self, neighbour: NodeId) -> bool:
        return False


@pytest.fixture
def mute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_strategies", {"mute": Mute})


@pytest.mark.usefixtures("mute")
def test_a_wrong_strategy_is_found_out() -> None:
    wrong = [violation for seed in range(10) for violation in soak(seed, check).wrong]
    assert {violation.rule for violation in wrong if isinstance(violation, Violation)} == {"liveness", "kept"}


def test_a_frontier_that_moves_feeds_which_are_not_live_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they have not read yet was not sent to them."""

    def pass_frontier(feed: Feed, offset: int) -> None:
        feed.cursor = max(feed.cursor, offset)

    monkeypatch.setattr(Feed, "pass_frontier", pass_frontier)
    wrong = [violation for seed in range(1, 8) for violation in soak(seed, check).wrong]
    assert {violation.rule for violation in wrong if isinstance(violation, Violation)} == {"kept"}


def test_a_feed_that_becomes_live_before_the_edge_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def go_live(feed: Feed, edge: int) -> bool:
        feed._become(FeedState.LIVE)
        return True

    monkeypatch.setattr(Feed, "go_live", go_live)
    with pytest.raises(AssertionError, match="beyond the edge"):
        [soak(seed, check) for seed in range(8)]
