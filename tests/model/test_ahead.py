"""Answers that are found ahead are those that would have been found."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given

from laws.strategies import Case, cases
from vestnik import Event, Filter
from vestnik.matching import Matcher
from vestnik.model import ahead
from vestnik.model.ahead import KEPT, Foresight

LONG = Event("t", {"text": "abc" * 100, "items": [*range(100), "x", [1, 2]], "maps": [{"k": n} for n in range(50)]})
WANTED = Filter.parse("text LIKE '%z%'")
FILTERS = [
    "text LIKE '%bca%'", "text LIKE '%z%'", "text MATCHES '(abc)+'", "NOT text MATCHES '.*cb.*'", "ANY items > 98",
    "ALL items < 200", "ANY items LIKE '%y%'", "ANY maps (k = 49)", "ALL maps (k < 10)",
    "text LIKE '%a%c' AND ANY items = 7",
]  # fmt: skip


def settled(matcher: Matcher[int], event: Event) -> int:
    """Find all answers about an event ahead; how many there are."""
    foresight, count = Foresight(), 0
    while questions := foresight.questions(lambda: matcher.match(event)):
        count += len(questions)
        other = threading.Thread(target=foresight.settle, args=(questions,))
        other.start()
        other.join()
    foresight.keep()
    return count


@given(cases(trees=6, events=3))
def test_what_matches_is_the_same(case: Case) -> None:
    matcher: Matcher[int] = Matcher()
    for number, wanted in enumerate(case.filters):
        matcher.add(number, wanted)
    for event in case.events:
        expected = matcher.match(event)
        settled(matcher, event)
        assert matcher.match(event) == expected


def test_long_values_are_asked_about_ahead() -> None:
    matcher: Matcher[int] = Matcher()
    for number, text in enumerate(FILTERS):
        matcher.add(number, Filter.parse(text))
    expected = matcher.match(LONG)
    assert settled(matcher, LONG) >= 8
    assert matcher.match(LONG) == expected


def test_to_ask_what_the_questions_are_answers_nobody_else() -> None:
    wanted = Filter.parse("text LIKE '%z%'")
    answers: list[bool] = []

    def ask() -> None:
        assert wanted.matches(LONG)  # as it seems to who asks
        other = threading.Thread(target=lambda: answers.append(wanted.matches(LONG)))
        other.start()
        other.join()

    assert len(Foresight().questions(ask)) == 1
    assert answers == [False] and not wanted.matches(LONG)


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Iterator[None]:
    for _ in range(KEPT):
        Foresight().keep()
    yield
    for _ in range(KEPT):
        Foresight().keep()


def test_a_piece_of_the_questions_is_settled_at_a_time() -> None:
    foresight = Foresight()
    filters = [Filter.parse(text) for text in FILTERS[:4]]
    questions = foresight.questions(lambda: [one.matches(LONG) for one in filters])
    left = foresight.settle(questions, within=0.0)
    assert list(left) == questions[1:]
    assert foresight.questions(lambda: [one.matches(LONG) for one in filters]) == questions[1:]
    foresight.forget()


def test_answers_are_forgotten_when_others_are_kept() -> None:
    foresight = settled_about(WANTED)
    foresight.keep()
    assert ahead._answers
    for _ in range(KEPT):
        Foresight().keep()
    assert not ahead._answers


def test_answers_last_while_others_are_looked_for() -> None:
    foresight = settled_about(WANTED)
    for _ in range(2 * KEPT):
        Foresight().keep()
    assert not foresight.questions(lambda: WANTED.matches(LONG))
    foresight.forget()
    assert foresight.questions(lambda: WANTED.matches(LONG))


def test_what_is_found_after_it_was_forgotten_leaves_nothing_behind() -> None:
    foresight = Foresight()
    questions = foresight.questions(lambda: WANTED.matches(LONG))
    foresight.forget()
    foresight.settle(questions)
    assert not ahead._answers


def settled_about(wanted: Filter) -> Foresight:
    foresight = Foresight()
    foresight.settle(foresight.questions(lambda: wanted.matches(LONG)))
    return foresight
