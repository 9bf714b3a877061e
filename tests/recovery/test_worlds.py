"""The core in random worlds: nothing acknowledged and wanted is lost, repeated or out of order, whatever fails.

`VESTNIK_RUNS=4000 script/test tests/recovery` runs that many worlds.
"""

from __future__ import annotations

import os

import pytest

from recovery.mistakes import MISTAKES, Plant
from recovery.worlds import SMALL, World

RUNS = int(os.environ.get("VESTNIK_RUNS", "1000"))
TOGETHER = 50


@pytest.mark.parametrize("first", range(0, RUNS, TOGETHER))
def test_nothing_is_lost_in_random_worlds(first: int) -> None:
    wrong = {seed: blames for seed in range(first, first + TOGETHER) if (blames := World(seed).run())}
    assert wrong == {}


@pytest.mark.parametrize(("plant", "seed"), MISTAKES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_mistake_is_found(plant: Plant, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the checker, or by an invariant that the code asserts."""
    assert World(seed).run() == [], "nothing is wrong without the mistake"
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        assert World(seed).run() == []


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_logs_may_be_read_by_what_is_wanted_in_a_direction(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In worlds as small as these, the filters of all readers would travel otherwise."""
    monkeypatch.setitem(SMALL, "vestnik.recovery.reads.FEW_FILTERS", 1)
    assert World(seed).run() == []
