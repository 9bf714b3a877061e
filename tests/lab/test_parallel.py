from __future__ import annotations

import math

import pytest

from vestnik.lab.parallel import Bench, each


@pytest.mark.parametrize("jobs", [1, 2])
def test_outcomes_come_in_the_order_of_the_tasks(jobs: int) -> None:
    shares: list[float] = []
    assert list(each(math.sqrt, [9.0, 4.0, 1.0], Bench(jobs, shares.append))) == [3.0, 2.0, 1.0]
    assert shares == [1 / 3, 2 / 3, 1.0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_goes_wrong_in_a_task_is_raised(jobs: int) -> None:
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        list(each(math.sqrt, [1.0, -1.0], Bench(jobs, lambda share: None)))


def test_a_part_of_the_work_advances_within_its_share() -> None:
    shares: list[float] = []
    list(each(math.sqrt, [9.0, 4.0], Bench(1, shares.append).part(0.5, 1.0)))
    assert shares == [0.75, 1.0]
