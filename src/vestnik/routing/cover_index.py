"""Which of many filters cover a given one, and which does it cover.

Both questions are narrowed down by examples. A filter that covers F matches every event of F, so a matcher finds the
candidates by one of them. And F matches every event of what it covers, so the examples of all members are kept by the
values in them. The candidates are then asked by the algebra.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, TypeAlias

from vestnik.matching import Matcher
from vestnik.matching.single.keys import key_of, single_values
from vestnik.model.boxes import Box
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import DATA, ENVELOPE_PATHS, Path
from vestnik.model.values import FLAG_MISSING, ValueSet

Numbers: TypeAlias = dict[int, None]
"""Members by number, in the order in which they came."""

NOWHERE: Path = ()
"""Where members without an example are kept."""


class CoverIndex:
    """A set of filters. What is added and removed again leaves nothing behind."""

    def __init__(self) -> None:
        self._count = count()
        self._numbers: dict[Filter, int] = {}
        self._members: dict[int, Filter] = {}
        self._matcher: Matcher[int] = Matcher()
        self._by_value: dict[tuple[Path, Any], Numbers] = {}
        self._by_path: dict[Path, Numbers] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member: object) -> bool:
        return member in self._numbers

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._numbers)

    def add(self, member: Filter) -> None:
        number = self._numbers[member] = next(self._count)
        self._members[number] = member
        self._matcher.add(number, member)
        for index, key in self._places(member):
            index.setdefault(key, {})[number] = None

    def remove(self, member: Filter) -> None:
        number = self._numbers.pop(member)
        del self._members[number]
        self._matcher.remove(number)
        for index, key in self._places(member):
            del index[key][number]
            if not index[key]:
                del index[key]

    def covering(self, narrow: Filter) -> Iterator[Filter]:
        """The members that cover `narrow`, in the order in which they came."""
        example = narrow.example()
        numbers = self._members if example is None else sorted(self._matcher.match(example))
        return (member for member in map(self._members.__getitem__, numbers) if member.covers(narrow))

    def covered_by(self, wide: Filter) -> list[Filter]:
        """The members that `wide` covers, in the order in which they came."""
        numbers = {number for box in wide.region.boxes for number in self._near(box)}
        numbers.update(self._by_path.get(NOWHERE, {}))
        return [member for member in map(self._members.__getitem__, sorted(numbers)) if wide.covers(member)]

    def _places(self, member: Filter) -> list[tuple[dict[Any, Numbers], Any]]:
        """Where a member is found by what is in its example."""
        example = member.example()
        if example is None:
            return [(self._by_path, NOWHERE)]
        found: list[tuple[dict[Any, Numbers], Any]] = []
        for path, value in _values(example):
            found.append((self._by_path, path))
            if not isinstance(value, dict | list):
                found.append((self._by_value, (path, key_of(value))))
        return found

    def _near(self, box: Box) -> Numbers:
        """Members, among them all whose example is in `box`."""
        choices = [self._at(path, values) for path, values in box.sets if not values.flags & FLAG_MISSING]
        nearest = min(choices, key=_size, default=None)
        if nearest is None:
            return dict.fromkeys(self._members)
        return {number: None for numbers in nearest for number in numbers}

    def _at(self, path: Path, values: ValueSet) -> list[Numbers]:
        """Members, among them all whose example has at `path` one of `values`, which must be there."""
        keys = single_values(values)
        if keys is None:
            return [self._by_path.get(path, {})]
        return [self._by_value.get((path, key), {}) for key in keys]


def _size(groups: list[Numbers]) -> int:
    return sum(map(len, groups))


def _values(event: Event) -> Iterator[tuple[Path, Any]]:
    """Everything that is in an event, with its path."""
    for name in sorted(ENVELOPE_PATHS):
        value = getattr(event, name)
        if value is not None:
            yield (name,), value
    yield from _below((DATA,), event.data)


def _below(path: Path, values: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for name, value in values.items():
        inner = (*path, name)
        yield inner, value
        if isinstance(value, dict):
            yield from _below(inner, value)
