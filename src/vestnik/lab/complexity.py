"""How much a filter says."""

from __future__ import annotations

from functools import lru_cache

from vestnik.model.cuts import ALL_NUMBERS
from vestnik.model.filters import Filter
from vestnik.model.lists import ALL_LISTS
from vestnik.model.strings import EVERY_STRING
from vestnik.model.values import ValueSet


@lru_cache(maxsize=65_536)
def complexity(wanted: Filter) -> int:
    """How many values and intervals a filter names: 1 for `x > 3`, 2 for `x IN (3, 7)`, 2 for `x = 3 AND y > 7`."""
    return sum(sum(_parts(values) for _, values in box.sets) + len(box.literals) for box in wanted.region.boxes)


def _parts(values: ValueSet) -> int:
    """The intervals of numbers and of strings, and the sets of lists. A kind that is there as a whole is not named."""
    parts = 0
    if values.numbers != ALL_NUMBERS:
        parts += (len(values.numbers) + 1) // 2
    if values.strings != EVERY_STRING:
        parts += (len(values.strings.cuts) + 1) // 2 if values.strings.automaton is None else 1
    if values.lists != ALL_LISTS:
        parts += len(values.lists)
    return max(1, parts)
