"""How many events plain filters match, by direct evaluation in numpy: it shares no code with what is measured."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from benchmarks.columns import Columns, Mask, Numbers, Words
from benchmarks.workloads import Constraint, PlainFilter, Value


class Truth:
    """Evaluates filters on `columns`. Remembers the answer for each constraint on a string."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.events = len(next(iter(columns.values())).present)
        self._known: dict[Constraint, Mask] = {}

    def counts(self, filters: Iterable[PlainFilter]) -> NDArray[np.int64]:
        """Matches of each event."""
        total = np.zeros(self.events, dtype=np.int64)
        for plain in filters:
            total += self.matches(plain)
        return total

    def matches(self, plain: PlainFilter) -> Mask:
        return reduce(np.logical_or, (reduce(np.logical_and, map(self.holds, box)) for box in plain.boxes))

    def holds(self, constraint: Constraint) -> Mask:
        column = self.columns[constraint.path]
        if isinstance(column, Numbers):
            held = number_holds(constraint.operator, constraint.operands, column)
        else:
            held = self.words_hold(constraint._replace(denied=False), column)[column.codes]
        return column.present & np.logical_xor(held, constraint.denied)

    def words_hold(self, constraint: Constraint, column: Words) -> Mask:
        """The verdict on each word of the vocabulary."""
        known = self._known.get(constraint)
        if known is None:
            known = self._known[constraint] = words_hold(constraint.operator, constraint.operands, column.vocabulary)
        return known


def number_holds(operator: str, operands: tuple[Value, ...], column: Numbers) -> Mask:
    values = column.values
    match operator:
        case "=" | "IN":
            return np.isin(values, operands)
        case "<":
            return np.less(values, operands[0])
        case ">=":
            return np.greater_equal(values, operands[0])
        case "BETWEEN":
            return np.greater_equal(values, operands[0]) & np.less_equal(values, operands[1])
    raise ValueError(operator)


def words_hold(operator: str, operands: tuple[Value, ...], vocabulary: list[str]) -> Mask:
    """The verdict on each word of `vocabulary`, which is sorted."""
    texts = [str(operand) for operand in operands]
    held = np.zeros(len(vocabulary), dtype=np.bool_)
    match operator:
        case "=" | "IN":
            for text in texts:
                held[bisect_left(vocabulary, text) : bisect_right(vocabulary, text)] = True
        case "<":
            held[: bisect_left(vocabulary, texts[0])] = True
        case ">=":
            held[bisect_left(vocabulary, texts[0]) :] = True
        case "BETWEEN":
            held[bisect_left(vocabulary, texts[0]) : bisect_right(vocabulary, texts[1])] = True
        case "LIKE":
            pattern = re.compile(texts[0].replace("%", ".*").replace("_", "."))
            held[:] = [pattern.fullmatch(word) is not None for word in vocabulary]
        case _:
            raise ValueError(operator)
    return held
