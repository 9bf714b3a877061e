"""A bound on the work one question may cost.

Answers about unions of boxes can take exponential work. Whoever asks states how much it may
take; the set operations `spend` as they go and give up with `FilterTooComplex`. A question
that has a safe answer asks through `within`, and gets that answer instead of the error.
Questions that one operation asks of many filters share their steps through `together`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from vestnik.errors import FilterTooComplex

QUESTION = 20_000
"""Steps that one answer may cost."""
MAKING = 200_000
"""Steps that one filter may cost: to read it, or to make it of others."""
LEAST = 10
"""Steps that a question may cost although the operation has used up its own: enough for two ordinary filters."""
RESERVE = 10
"""The operation ends this many times its own steps later; then nothing more is asked."""
STEPS = "steps of box algebra"
"""The name of this limit in `FilterTooComplex`."""

Answer = TypeVar("Answer")


class Budget:
    """Steps that are allowed, and those that are left."""

    __slots__ = ("allowed", "left")

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.left: float = allowed


_budget: ContextVar[Budget | None] = ContextVar("vestnik_work", default=None)
_shared: ContextVar[Budget | None] = ContextVar("vestnik_shared_work", default=None)


@contextmanager
def bounded(allowed: int) -> Iterator[Budget]:
    """Let what runs inside spend at most `allowed` steps; an enclosing bound goes on counting alone."""
    enclosing = _budget.get()
    if enclosing is not None:
        yield enclosing
        return
    budget = Budget(allowed)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def spend(steps: float = 1) -> None:
    """Count `steps` against the bound in force, if any."""
    budget = _budget.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            raise FilterTooComplex(STEPS, budget.allowed)


@contextmanager
def together(allowed: int) -> Iterator[None]:
    """Let the questions asked inside cost at most `allowed` steps together, and LEAST each beyond that."""
    token = _shared.set(Budget(allowed)) if _shared.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _shared.reset(token)


def within(question: Callable[[], Answer], otherwise: Answer, allowed: int = QUESTION) -> Answer:
    """The answer to `question`, or `otherwise` where it costs more than `allowed` steps."""
    if _budget.get() is not None:
        return _answer(question, otherwise)
    shared = _shared.get()
    if shared is not None and shared.left < -RESERVE * shared.allowed:
        return otherwise
    budget = Budget(allowed if shared is None else max(LEAST, min(allowed, int(shared.left))))
    token = _budget.set(budget)
    try:
        return _answer(question, otherwise)
    finally:
        _budget.reset(token)
        if shared is not None:
            shared.left -= budget.allowed - budget.left


def _answer(question: Callable[[], Answer], otherwise: Answer) -> Answer:
    try:
        return question()
    except FilterTooComplex:
        return otherwise
