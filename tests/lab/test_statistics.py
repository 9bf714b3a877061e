from __future__ import annotations

import math

import pytest

from vestnik.lab.statistics import Estimate, estimate, holm, p_value, student_tail
from vestnik.report.numbers import number


@pytest.mark.parametrize(
    ("t", "freedom", "tail"),
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.571, 5, 0.05), (2.228, 10, 0.05), (3.169, 10, 0.01), (3.883, 19, 0.001)],
)
def test_the_tails_of_student(t: float, freedom: int, tail: float) -> None:
    assert student_tail(t, freedom) == pytest.approx(tail, rel=2e-3)


def test_an_estimate() -> None:
    assert estimate([1, 2, 3, 4]) == Estimate(2.5, math.sqrt(5 / 3 / 4), 4)
    assert estimate([7]).error == 0
    assert (str(estimate([1, 2])), str(estimate([3]))) == ("1.5 ± 0.5", "3")


def test_without_spread_only_equality_is_likely() -> None:
    assert p_value(estimate([5, 5]), 5 + 1e-12) == 1
    assert p_value(estimate([5, 5]), 5.1) == 0


def test_the_larger_error_counts() -> None:
    assert p_value(estimate([5, 5]), 5.1, 0.1) == pytest.approx(0.5)
    assert p_value(estimate([4, 6]), 5.5, 0.1) == p_value(estimate([4, 6]), 5.5) > 0.5
    assert p_value(estimate([5]), 5.1, 0.1) == pytest.approx(0.5)


def test_holm_names_the_cells_that_disagree() -> None:
    assert holm([0.5, 0.001, 0.02, 0.004], 0.05) == [1, 3, 2]
    assert holm([0.02, 0.03, 0.04], 0.05) == []


@pytest.mark.parametrize(
    ("value", "text"), [(212_000.0, "212,000"), (3.7313, "3.731"), (1234.6, "1,235"), (0.5, "0.5")]
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert number(value) == text
