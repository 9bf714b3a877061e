"""Those who came and went leave no trace."""

from __future__ import annotations

import pytest

from vestnik.lab.churn import MIXES, Task, churn, judge
from vestnik.sim.topologies import line

LEFT = {(4, 0): 120, (3, 1): 100, (2, 2): 80, (1, 3): 60, (0, 4): 40}


@pytest.mark.parametrize("mix", MIXES)
def test_so_many_come_and_leave(mix: tuple[int, int]) -> None:
    found = churn(Task("merging", *mix, 80, 1), line(3))
    assert found.left == LEFT[mix]
    assert found == churn(Task("merging", *mix, 80, 1), line(3))


def test_messages_and_entries_are_as_expected() -> None:
    found = [churn(Task("covering", *mix, 80, seed), line(3)) for mix in MIXES for seed in range(12)]
    claim = judge(found, line(3))
    assert claim.verdict == "holds"
    assert claim.measured.startswith("10 of 10 means")
    wrong = [one._replace(exact_entries=2 * one.exact_entries) for one in found]
    assert judge(wrong, line(3)).verdict == "does not hold"


def test_few_runs_without_spread_are_judged_by_the_exact_one() -> None:
    found = [churn(Task("simple", 2, 2, 80, 1), line(3))] * 2
    assert judge(found, line(3)).verdict == "holds"
