"""What questions and filters may cost."""

from __future__ import annotations

import pytest

from vestnik.errors import FilterTooComplex
from vestnik.model.filters import Filter
from vestnik.model.parser import Limits
from vestnik.model.work import LEAST, RESERVE, STEPS, spend, together, within


def costing(steps: int) -> bool:
    """Whether a question that takes so many steps gets its answer."""

    def question() -> bool:
        for _ in range(steps):
            spend()
        return True

    return within(question, otherwise=False)


def test_questions_of_one_operation_share_its_steps() -> None:
    assert costing(900) and costing(900)
    with together(1000):
        assert costing(900)
        assert not costing(900)
    assert costing(900)


def test_an_ordinary_question_is_answered_although_the_operation_has_no_steps_left() -> None:
    with together(100):
        assert not costing(1000)
        assert all(costing(LEAST) for _ in range(100))
        assert not costing(LEAST + 1)


def test_an_operation_that_has_spent_its_reserve_asks_nothing_more() -> None:
    asked = 0

    def question() -> bool:
        nonlocal asked
        asked += 1
        spend(LEAST)
        return True

    with together(100):
        answers = [within(question, otherwise=False) for _ in range(1000)]
    assert asked == answers.count(True) == (1 + RESERVE) * 100 / LEAST + 1
    assert within(question, otherwise=False)


def test_the_outer_operation_counts() -> None:
    with together(1000):
        with together(10_000):
            assert not costing(1100)
        assert not costing(900)


def test_the_patterns_of_a_filter_count_against_its_steps() -> None:
    one = "x MATCHES '(a|b)*a(a|b){9}'"
    Filter.parse(one, limits=Limits(steps=25_000))
    many = " AND ".join(f"x{i} MATCHES '(a|b|{i})*a(a|b|c){{8}}'" for i in range(30))
    with pytest.raises(FilterTooComplex) as refused:
        Filter.parse(many, limits=Limits(steps=25_000))
    assert refused.value.limit == STEPS
