"""Random scenarios, and whether a wrong network is found out."""

from __future__ import annotations

import pytest

from vestnik.broker import catching, clients, confluence, missed, selection
from vestnik.broker.behind import Behind
from vestnik.cli.sim.soak import check
from vestnik.routing import registry
from vestnik.routing.reductions import Nothing, Reduction
from vestnik.sim.soak import random_scenario, soak
from vestnik.verify.violations import Violation
from vestnik.wire import pages
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


@pytest.mark.parametrize("seed", [seed for seed in range(40) if random_scenario(seed).clients.newcomers][:20])
def test_networks_are_right_where_brokers_hold_little_of_the_past(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = {clients: ("ROOM", 20), catching: ("MOST_LIVE", 4), confluence: ("FEW_HERE", 5), selection: ("UNASKED", 2)}
    for module, (name, most) in {**bounds, missed: ("MOST_LATE", 4), pages: ("PAGE", 5)}.items():
        monkeypatch.setattr(module, name, most)
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


def test_effects_that_overtake_causes_which_wait_for_the_past_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Behind, "_is_effect", lambda behind, event: False)
    wrong = soak(95, check).wrong
    assert {violation.rule for violation in wrong if isinstance(violation, Violation)} == {"causal"}
