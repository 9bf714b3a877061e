"""What the paths of a filter lead through: an event, or one element of a list.

A space knows what can be at a path at all (its universe) and reads the value that is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from vestnik.model.cuts import string_range, whole_numbers
from vestnik.model.frozen import MAX_INT
from vestnik.model.strings import StringSet
from vestnik.model.times import FIRST, LAST
from vestnik.model.values import (
    ABSENT,
    ANYTHING,
    FLAG_MISSING,
    MAP,
    MISSING,
    PRESENT,
    ValueSet,
)

Path: TypeAlias = tuple[str, ...]

DATA = "data"


def walk(value: Any, path: Path) -> Any:
    """The value at `path` below `value`, or MISSING."""
    for name in path:
        if not isinstance(value, dict):
            return MISSING
        value = value.get(name, MISSING)
    return value


class Space(ABC):
    """A space in which every path may hold anything, except those in `universes`.

    No constraint is on a path of less than `depth` names with something below it.
    """

    __slots__ = ("_universes", "_whole", "depth", "name")

    def __init__(
        self, name: str, depth: int, universes: dict[Path, ValueSet], whole: frozenset[Path] = frozenset()
    ) -> None:
        self.name = name
        self.depth = depth
        self._universes = universes
        self._whole = whole

    def __reduce__(self) -> str:
        return self.name

    def has(self, path: Path) -> bool:
        """Whether `path` is a path of this space."""
        return True

    def universe(self, path: Path) -> ValueSet:
        """All that can be at `path`."""
        return self._universes.get(path, ANYTHING)

    def is_whole(self, path: Path) -> bool:
        """Whether numbers at `path` are integers."""
        return path in self._whole

    def clip(self, path: Path, values: ValueSet) -> ValueSet:
        """The part of `values` that can be at `path`."""
        universe = self._universes.get(path)
        if universe is None:
            return values
        clipped = values.intersection(universe)
        if path in self._whole:
            clipped = ValueSet(clipped.flags, whole_numbers(clipped.numbers), clipped.strings, clipped.lists)
        if clipped.strings.automaton is not None:
            strings = _as_written(clipped.strings, values.strings)
            clipped = ValueSet(clipped.flags, clipped.numbers, strings, clipped.lists)
        return clipped

    @abstractmethod
    def read(self, root: Any, path: Path) -> Any:
        """The value at `path` of `root`, or MISSING."""


class _EventSpace(Space):
    def has(self, path: Path) -> bool:
        return len(path) > 1 if path[:1] == (DATA,) else len(path) == 1 and path in self._universes

    def read(self, root: Any, path: Path) -> Any:
        if path[0] == DATA:
            return root.body.get(path[1], MISSING) if len(path) == 2 else walk(root.body, path[1:])
        value = getattr(root, path[0])
        return MISSING if value is None else value


class _ElementSpace(Space):
    def read(self, root: Any, path: Path) -> Any:
        return walk(root, path)


def _as_written(strings: StringSet, before: StringSet) -> StringSet:
    """Clipped `strings`, written as they were before: what can be at the path at all goes without saying."""
    return StringSet(strings.cuts, strings.automaton, before.expression)


_NAME = ValueSet(strings=StringSet(string_range("\0", None)))
_INSTANT = ValueSet(FLAG_MISSING, ((FIRST, 0), (LAST + 1, 0)))

EVENT = _EventSpace(
    "EVENT",
    2,
    {
        (): MAP,
        (DATA,): MAP,
        ("id",): _NAME,
        ("source",): _NAME,
        ("type",): _NAME,
        ("subject",): _NAME.union(ABSENT),
        ("time",): _INSTANT,
        ("priority",): ValueSet(numbers=((0, 0), (10, 0))),
        ("seq",): ValueSet(FLAG_MISSING, ((1, 0), (MAX_INT + 1, 0))),
        ("not_before",): _INSTANT,
        ("expires",): _INSTANT,
    },
    whole=frozenset((name,) for name in ("time", "priority", "seq", "not_before", "expires")),
)
ELEMENT = _ElementSpace("ELEMENT", 0, {(): PRESENT})

ENVELOPE_PATHS = frozenset(path[0] for path in EVENT._universes if path and path != (DATA,))
