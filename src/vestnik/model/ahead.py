"""Precomputed answers to the question whether a value set holds a value.

A pattern takes tens of milliseconds on a string of a megabyte, and so does ANY on a long list. A program that must not
block for so long first collects the questions, has them answered on another thread, and then runs its code: the code
finds the answers here.

    foresight = Foresight()
    while questions := foresight.questions(lambda: matcher.match(event)):
        foresight.settle(questions)  # on another thread
    matcher.match(event)
    foresight.forget()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, Final, NamedTuple, Protocol

SHORT: Final = 16
"""Length of a string or list up to which computing the answer is faster than looking it up."""


class Holder(Protocol):
    """A set of values."""

    def contains(self, value: Any) -> bool: ...


class OpenQuestion(NamedTuple):
    subject: Holder
    value: Any


_answers: dict[tuple[int, int], tuple[OpenQuestion, bool]] = {}  # by the identities of what the question keeps alive
_asked: list[OpenQuestion] | None = None  # while somebody asks which questions there are
_asking = 0  # the thread that does


def known(subject: Holder, value: Any) -> bool | None:
    """Return the precomputed answer, or None. While questions are collected, note the question and return True."""
    if not _answers and _asked is None:
        return None
    found = _answers.get((id(subject), id(value)))
    if found is not None:
        return found[1]
    if _asked is None or get_ident() != _asking:
        return None
    _asked.append(OpenQuestion(subject, value))
    return True


class Foresight:
    """The precomputed answers for one message. They, and the values they are about, stay in memory until `forget`."""

    def __init__(self) -> None:
        self._questions: list[OpenQuestion] = []
        self._is_forgotten = False

    def questions(self, ask: Callable[[], object]) -> list[OpenQuestion]:
        """Run `ask` and return the open questions that it met; repeat until there are none."""
        global _asked, _asking
        _asked, _asking = [], get_ident()
        try:
            ask()
            return list({_key(one): one for one in _asked}.values())
        finally:
            _asked = None

    def settle(self, questions: Sequence[OpenQuestion], within: float = float("inf")) -> Sequence[OpenQuestion]:
        """Answer questions for `within` seconds, at least one, and return the rest.

        Any thread may call this; after `forget` it stops at the next question.
        """
        until = time.perf_counter() + within
        for place, question in enumerate(questions):
            if place and time.perf_counter() > until:
                return questions[place:]
            self._questions.append(question)
            _answers[_key(question)] = question, question.subject.contains(question.value)
            if self._is_forgotten:  # by another thread, maybe before this answer was there
                _answers.pop(_key(question), None)
                break
        return ()

    def forget(self) -> None:
        """Drop the answers and the values they are about; `settle` stops on whatever thread it runs."""
        self._is_forgotten = True
        for question in self._questions:
            _answers.pop(_key(question), None)
        self._questions = []


def _key(question: OpenQuestion) -> tuple[int, int]:
    return id(question.subject), id(question.value)
