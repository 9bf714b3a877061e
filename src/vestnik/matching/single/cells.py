"""Cells: a coarse view of a path, good enough to decide most questions about a value set.

The universe of a path is cut into cells: one for each kind of value that has no order, some for strings and some for
numbers, at quantiles of the constants that filters name. Of a cell, a value set holds all values, or none, or it is
unsure. Where the cells are cut changes what matching costs, never an answer.

Sets of strings by what they end with are asked of the strings backwards, in cells of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

from vestnik.matching.single.stems import ending_of, stem_of
from vestnik.model import cuts as line
from vestnik.model.lists import ALL_LISTS
from vestnik.model.strings import StringSet
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_MISSING, FLAG_NULL, FLAG_TRUE, ValueSet

SURE, REFUSED, UNSURE = range(3)

MISSING_KIND, NULL_KIND, FALSE_KIND, TRUE_KIND, LIST_KIND, MAP_KIND, TEXT_KIND, NUMBER_KIND = range(8)
"""The kinds of values. The first six are the first cells; those of strings and then those of numbers follow."""

COARSE, FINE = 16, 64
"""Cells that strings, and numbers, are cut into at most."""


class Cells:
    """The cells of one path. Which of them an event's value is in stands in `slot` of the event's values.

    The cells of strings are cut at `texts` and begin with number TEXT_KIND, those of numbers are cut at `numbers` and
    begin with `first_number`.
    """

    def __init__(self, slot: int, backwards: bool, count: int, constants: list[Any], made_at: int) -> None:
        self.slot = slot
        self.backwards = backwards
        self.count = count
        self.texts = _quantiles([constant for constant in constants if isinstance(constant, str)], count)
        self.numbers = _quantiles([constant for constant in constants if not isinstance(constant, str)], count)
        self._text_cuts = [line.STRING_BOTTOM, *self.texts]
        self._number_cuts = [line.NUMBER_BOTTOM, *[(bound, 0) for bound in self.numbers]]
        self.first_number = NUMBER_KIND + len(self.texts)
        self.made_at = made_at
        self.users = 0

    def __len__(self) -> int:
        return self.first_number + len(self.numbers) + 1

    def verdicts(self, values: ValueSet) -> list[int]:
        """What `values` says of each cell."""
        flags = values.flags
        kinds = [SURE if flags & flag else REFUSED for flag in (FLAG_MISSING, FLAG_NULL, FLAG_FALSE, FLAG_TRUE)]
        lists = REFUSED if not values.lists else SURE if values.lists == ALL_LISTS else UNSURE
        maps = SURE if flags & FLAG_MAP else REFUSED
        return [*kinds, lists, maps, *self._of_strings(values.strings), *_verdicts(self._number_cuts, values.numbers)]

    def _of_strings(self, strings: StringSet) -> list[int]:
        if strings.automaton is None:
            return _verdicts(self._text_cuts, strings.cuts)
        stem = stem_of(strings.automaton)
        around = _verdicts(self._text_cuts, line.string_range(stem, line.after_prefix(stem)))
        return [verdict or UNSURE for verdict in around]


class Aspect(NamedTuple):
    """A value set as cells see it: whether strings are read backwards, and the set of what is then read."""

    backwards: bool
    values: ValueSet


def aspect(values: ValueSet) -> Aspect:
    ending = None if values.strings.automaton is None else ending_of(values.strings)
    if ending is None or values != ValueSet(strings=values.strings):
        return Aspect(False, values)
    stem = ending[::-1]
    return Aspect(True, ValueSet(strings=StringSet(line.string_range(stem, line.after_prefix(stem)))))


def constants(values: ValueSet) -> list[Any]:
    """The ends of what `values` holds of strings and numbers."""
    return [*values.strings.cuts, *[value for value, _ in values.numbers if value != line.NUMBER_BOTTOM[0]]]


def _quantiles(constants: list[Any], count: int) -> list[Any]:
    """The bounds of at most `count` cells; a cell holds what is at or above one and below the next."""
    ordered = sorted(constants)
    return sorted({ordered[len(ordered) * i // count] for i in range(1, count)}) if ordered else []


def _verdicts(starts: list[Any], cuts: tuple[Any, ...]) -> list[int]:
    """What the set of `cuts` says of the cells that begin at `starts`."""
    verdicts: list[int] = []
    inside = REFUSED
    for cut in cuts:
        cell = bisect_left(starts, cut)
        within = cell == len(starts) or starts[cell] != cut  # within the cell before
        verdicts += [inside] * (cell - within - len(verdicts))
        if within and len(verdicts) < cell:
            verdicts.append(UNSURE)
        inside = REFUSED if inside == SURE else SURE
    return verdicts + [inside] * (len(starts) - len(verdicts))
