"""The same interests served by channels, by subjects and by content."""

from __future__ import annotations

import pytest

from vestnik.lab.selection import SELECTIONS, Task, judge, reached, select
from vestnik.lab.statistics import estimate, p_value
from vestnik.sim.topologies import line

SEEDS = range(12)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_deliveries_are_as_expected(selection: str) -> None:
    found = [select(Task(selection, "identity", 200, seed), line(2)) for seed in SEEDS]
    assert p_value(estimate([one.deliveries for one in found]), found[0].exact_deliveries) > 0.01
    assert p_value(estimate([one.unwanted for one in found]), found[0].exact_unwanted) > 0.01
    assert all((one.unwanted == 0) == (selection == "content") for one in found)


def test_the_share_of_consumers_that_an_event_reaches() -> None:
    assert reached("channel") == pytest.approx(1 - 0.95**10, rel=0.01)
    assert (reached("subject"), reached("content")) == (0.01, 0.005)


def test_content_saves_deliveries_and_costs_entries() -> None:
    found = [select(Task(kind, "covering", 100, seed), line(4)) for kind in SELECTIONS for seed in (1, 2)]
    claim = judge(found)
    assert claim.verdict == "holds in part"
    assert "0 by content" in claim.measured
    assert all(one.deliveries - one.unwanted == found[-1].deliveries for one in found if one.seed == 2)
