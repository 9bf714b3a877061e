"""Value sets: what a path may hold.

The universe of a path is the disjoint sum missing | null | bool | number | string | list | map.
A value set takes a part of each: a flag for the single values and for maps (what is inside a map
is said by constraints on longer paths), cuts for numbers, a string set, a list set. Value sets are
closed under union, intersection and complement; equal sets are equal objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from vestnik.model import cuts as line
from vestnik.model import lists as list_sets
from vestnik.model.ahead import SHORT, known
from vestnik.model.cuts import ALL_NUMBERS, NUMBER_BOTTOM, NumberCuts
from vestnik.model.frozen import FrozenDict, FrozenList
from vestnik.model.lists import ALL_LISTS, NO_LISTS, ListSet
from vestnik.model.strings import EVERY_STRING, NO_STRINGS, StringSet


class Missing:
    """The type of MISSING, which stands for a path that is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

FLAG_MISSING, FLAG_NULL, FLAG_FALSE, FLAG_TRUE, FLAG_MAP = 1, 2, 4, 8, 16
ALL_FLAGS = 31


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values; see the module."""

    flags: int = 0
    numbers: NumberCuts = ()
    strings: StringSet = NO_STRINGS
    lists: ListSet = NO_LISTS

    def contains(self, value: Any) -> bool:
        """Whether the set holds a value of an event, or MISSING."""
        return _CONTAINS[type(value)](self, value)

    def __bool__(self) -> bool:
        return bool(self.flags or self.numbers or self.strings or self.lists)

    def complement(self) -> ValueSet:
        return ValueSet(
            ALL_FLAGS & ~self.flags,
            line.complement(self.numbers, NUMBER_BOTTOM),
            self.strings.complement(),
            list_sets.complement(self.lists),
        )

    def union(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            self.flags | other.flags,
            line.union(self.numbers, other.numbers),
            self.strings.union(other.strings),
            list_sets.union(self.lists, other.lists),
        )

    def intersection(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            self.flags & other.flags,
            line.intersection(self.numbers, other.numbers),
            self.strings.intersection(other.strings),
            list_sets.intersection(self.lists, other.lists),
        )

    def includes(self, other: ValueSet) -> bool:
        return (
            not other.flags & ~self.flags
            and line.includes(self.numbers, other.numbers)
            and self.strings.includes(other.strings)
            and list_sets.includes(self.lists, other.lists)
        )

    def sort_key(self) -> tuple[Any, ...]:
        """What orders value sets the same way in every process."""
        return self.flags, self.numbers, self.strings.sort_key(), tuple(map(list_sets.sort_key, self.lists))


NOTHING = ValueSet()
ANYTHING = ValueSet(ALL_FLAGS, ALL_NUMBERS, EVERY_STRING, ALL_LISTS)
ABSENT = ValueSet(FLAG_MISSING)
NULL = ValueSet(FLAG_NULL)
BOOLEAN = ValueSet(FLAG_TRUE | FLAG_FALSE)
NUMBER = ValueSet(numbers=ALL_NUMBERS)
STRING = ValueSet(strings=EVERY_STRING)
LIST = ValueSet(lists=ALL_LISTS)
MAP = ValueSet(FLAG_MAP)
PRESENT = ABSENT.complement()


def value_points(values: list[Any]) -> ValueSet:
    """The set of just these scalars."""
    flags = 0
    numbers, strings = [], []
    for value in values:
        if isinstance(value, str):
            strings.append(value)
        elif value is None:
            flags |= FLAG_NULL
        elif isinstance(value, bool):
            flags |= FLAG_TRUE if value else FLAG_FALSE
        else:
            numbers.append(value)
    return ValueSet(flags, line.number_points(numbers), StringSet(line.string_points(strings)))


def _flag(flag: int) -> Callable[[ValueSet, Any], bool]:
    return lambda values, value: bool(values.flags & flag)


def _number(values: ValueSet, value: line.Number) -> bool:
    return line.contains(values.numbers, (value, 0))


def _string(values: ValueSet, value: str) -> bool:
    if len(value) > SHORT and values.strings.automaton is not None:
        answer = known(values, value)
        if answer is not None:
            return answer
    return value in values.strings


def _list(values: ValueSet, value: list[Any]) -> bool:
    if len(value) > SHORT:
        answer = known(values, value)
        if answer is not None:
            return answer
    return list_sets.contains(values.lists, value)


_CONTAINS: dict[type, Callable[[ValueSet, Any], bool]] = {
    Missing: _flag(FLAG_MISSING),
    type(None): _flag(FLAG_NULL),
    bool: lambda values, value: bool(values.flags & (FLAG_TRUE if value else FLAG_FALSE)),
    int: _number,
    float: _number,
    str: _string,
    list: _list,
    FrozenList: _list,
    dict: _flag(FLAG_MAP),
    FrozenDict: _flag(FLAG_MAP),
}
