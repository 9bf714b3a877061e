"""What settles a constraint where codes leave doubt: tests on the value itself, each asked once about an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from vestnik.model.kinds import Atom
from vestnik.model.values import ValueSet

Literal: TypeAlias = tuple[Atom, bool]
"""An atom that holds (True) or does not (False)."""


class Check:
    """A test on the value of a column."""

    __slots__ = ("column", "subject", "test", "users", "weight")

    def __init__(self, column: int, subject: ValueSet | Literal) -> None:
        self.column = column
        self.subject = subject
        self.test = _test(subject)
        self.users = 0
        self.weight = _weight(subject)


class Checks:
    """The checks in use, one for all the records that have it."""

    def __init__(self) -> None:
        self._checks: dict[tuple[int, ValueSet | Literal], Check] = {}
        self.weight = 0  # of all of them

    def __len__(self) -> int:
        return len(self._checks)

    def acquire(self, column: int, subject: ValueSet | Literal) -> Check:
        check = self._checks.get((column, subject))
        if check is None:
            check = self._checks[column, subject] = Check(column, subject)
            self.weight += check.weight
        check.users += 1
        return check

    def release(self, check: Check) -> None:
        check.users -= 1
        if not check.users:
            del self._checks[check.column, check.subject]
            self.weight -= check.weight


def asked_once(values: list[Any]) -> Callable[[Check], bool]:
    """The answers of checks about values by column."""
    known: dict[Check, bool] = {}

    def holds(check: Check) -> bool:
        answer = known.get(check)
        if answer is None:
            answer = known[check] = check.test(values[check.column])
        return answer

    return holds


def _weight(subject: ValueSet | Literal) -> int:
    """How much a test costs for each element of a list: as much as there are boxes, also in lists of lists."""
    if not isinstance(subject, ValueSet):
        return 1
    elements = [region for box in subject.lists for region in (*box.some, *([] if box.every is None else [box.every]))]
    return 1 + sum([_weight(values) for region in elements for box in region.boxes for _, values in box.sets])


def _test(subject: ValueSet | Literal) -> Callable[[Any], bool]:
    if not isinstance(subject, ValueSet):
        atom, holds = subject
        return lambda value: atom.matches(value) is holds
    return subject.contains
