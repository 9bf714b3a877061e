"""Answers that are found ahead are those that would have been found."""

from __future__ import annotations

import threading

from hypothesis import given

from laws.strategies import Case, cases
from vestnik import Event, Filter
from vestnik.matching import Matcher
from vestnik.model import ahead
from vestnik.model.ahead import Foresight, OpenQuestion

LONG = Event("t", {"text": "abc" * 100, "items": [*range(100), "x", [1, 2]], "maps": [{"k": n} for n in range(50)]})
WANTED = Filter.parse("text LIKE '%z%'")
FILTERS = [
    "text LIKE '%bca%'", "text LIKE '%z%'", "text MATCHES '(abc)+'", "NOT text MATCHES '.*cb.*'", "ANY items > 98",
    "ALL items < 200", "ANY items LIKE '%y%'", "ANY maps (k = 49)", "ALL maps (k < 10)",
    "text LIKE '%a%c' AND ANY items = 7",
]  # fmt: skip


def matched_ahead(matcher: Matcher[int], event: Event) -> tuple[list[int], int]:
    """Match an event of which all answers are found ahead; what matches, and how many answers there were."""
    foresight, count = Foresight(), 0
    while questions := foresight.questions(lambda: matcher.match(event)):
        count += len(questions)
        other = threading.Thread(target=foresight.settle, args=(questions,))
        other.start()
        other.join()
    found = matcher.match(event)
    foresight.forget()
    assert not ahead._answers
    return list(found), count


@given(cases(trees=6, events=3))
def test_what_matches_is_the_same(case: Case) -> None:
    matcher: Matcher[int] = Matcher()
    for number, wanted in enumerate(case.filters):
        matcher.add(number, wanted)
    for event in case.events:
        assert matched_ahead(matcher, event)[0] == list(matcher.match(event))


def test_long_values_are_asked_about_ahead() -> None:
    matcher: Matcher[int] = Matcher()
    for number, text in enumerate(FILTERS):
        matcher.add(number, Filter.parse(text))
    expected = list(matcher.match(LONG))
    found, count = matched_ahead(matcher, LONG)
    assert found == expected and count >= 8


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


def test_a_piece_of_the_questions_is_settled_at_a_time() -> None:
    foresight = Foresight()
    filters = [Filter.parse(text) for text in FILTERS[:4]]
    questions = foresight.questions(lambda: [one.matches(LONG) for one in filters])
    left = foresight.settle(questions, within=0.0)
    assert list(left) == questions[1:]
    assert foresight.questions(lambda: [one.matches(LONG) for one in filters]) == questions[1:]
    foresight.forget()


def test_answers_last_until_they_are_forgotten_and_hold_nothing_then() -> None:
    foresight = Foresight()
    foresight.settle(foresight.questions(lambda: WANTED.matches(LONG)))
    assert not foresight.questions(lambda: WANTED.matches(LONG))
    foresight.forget()
    assert foresight.questions(lambda: WANTED.matches(LONG))
    assert not ahead._answers and not foresight._questions


def test_questions_that_are_forgotten_while_they_are_settled_are_left_at_the_next_one() -> None:
    foresight, asked = Foresight(), []

    class Forgetting:
        """A set of values that is forgotten while it is asked."""

        def contains(self, value: object) -> bool:
            asked.append(value)
            foresight.forget()
            return True

    subject = Forgetting()
    assert not foresight.settle([OpenQuestion(subject, "1"), OpenQuestion(subject, "2")])
    assert asked == ["1"] and not ahead._answers


def test_what_is_found_after_it_was_forgotten_leaves_nothing_behind() -> None:
    foresight = Foresight()
    questions = foresight.questions(lambda: WANTED.matches(LONG))
    foresight.forget()
    foresight.settle(questions)
    assert not ahead._answers
