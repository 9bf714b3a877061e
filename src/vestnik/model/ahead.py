"""Answers that are found ahead: whether a set holds a value.

A pattern takes tens of milliseconds for a string of a megabyte, and so does ANY for a long list. A program that must
not stand still for so long first asks which questions there are, has them answered on another thread, and then does
what it was going to do: the answers are there.

    foresight = Foresight()
    while questions := foresight.questions(lambda: matcher.match(event)):
        foresight.settle(questions)  # on another thread
    matcher.match(event)
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, Final, NamedTuple, Protocol

SHORT: Final = 16
"""Characters or elements of a value about which the answer is found sooner than it is looked up."""
KEPT: Final = 4
"""Foresights whose answers are kept. What was found quickly enough to be followed by so many is found again quickly."""


class Holder(Protocol):
    """A set of values."""

    def contains(self, value: Any) -> bool: ...


class Question(NamedTuple):
    subject: Holder
    value: Any


_answers: dict[tuple[int, int], tuple[Question, bool]] = {}  # by the identities of what the question keeps alive
_asked: list[Question] | None = None  # while somebody asks which questions there are
_asking = 0  # the thread that does
_kept: deque[Foresight] = deque()


def known(subject: Holder, value: Any) -> bool | None:
    """The answer where it was found ahead. To who asks which questions there are it is yes, and the question noted."""
    if not _answers and _asked is None:
        return None
    found = _answers.get((id(subject), id(value)))
    if found is not None:
        return found[1]
    if _asked is None or get_ident() != _asking:
        return None
    _asked.append(Question(subject, value))
    return True


class Foresight:
    """The answers that somebody needs next. They are forgotten when others have been needed."""

    def __init__(self) -> None:
        self._questions: list[Question] = []
        _kept.append(self)
        while len(_kept) > KEPT:
            _kept.popleft()._forget()

    def questions(self, ask: Callable[[], object]) -> list[Question]:
        """What `ask` would have to find out and is not known. Beyond those there may be others."""
        global _asked, _asking
        _asked, _asking = [], get_ident()
        try:
            ask()
            return list({(id(one.subject), id(one.value)): one for one in _asked}.values())
        finally:
            _asked = None

    def settle(self, questions: Sequence[Question], within: float = float("inf")) -> Sequence[Question]:
        """Find answers for so many seconds; the questions that are left. Others may ask on other threads meanwhile."""
        until = time.perf_counter() + within
        for place, question in enumerate(questions):
            if place and time.perf_counter() > until:
                return questions[place:]
            self._questions.append(question)
            _answers[id(question.subject), id(question.value)] = question, question.subject.contains(question.value)
        return ()

    def _forget(self) -> None:
        for question in self._questions:
            _answers.pop((id(question.subject), id(question.value)), None)
