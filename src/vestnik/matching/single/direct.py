"""Candidates one by one: where they are few, to ask each of them is faster than to read the event for a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Final, TypeAlias

from vestnik.matching.single.buckets import Bucket
from vestnik.matching.single.store import Store
from vestnik.model.boxes import Box
from vestnik.model.cuts import NumberCut
from vestnik.model.events import Event
from vestnik.model.kinds import Atom
from vestnik.model.spaces import DATA, EVENT, Path
from vestnik.model.values import MISSING, ValueSet

FEW_HEADS = 8
"""Heads that are asked one by one."""


_NUMBERS: Final = frozenset({int, float})
_TOP: Final[NumberCut] = (inf, 1)

Test: TypeAlias = Callable[[Event], bool]
Tests: TypeAlias = tuple[Test, ...]
"""What must hold of an event."""


def tests_of(box: Box, settled: Path | None) -> Tests:
    """What is left to ask about a box once `settled` is."""
    sets = [_within(path, values) for path, values in box.sets if path != settled]
    return (*sets, *[_literal(path, atom, holds) for path, atom, holds in box.literals])


def _literal(path: Path, atom: Atom, holds: bool) -> Test:
    return lambda event: atom.matches(EVENT.read(event, path)) is holds


def _within(path: Path, values: ValueSet) -> Test:
    """Whether what is at a path is one of these: mostly a name in the data, and numbers from one to another."""
    cuts, contains = values.numbers, values.contains
    if path[0] != DATA or len(path) != 2:
        return lambda event: contains(EVENT.read(event, path))
    name = path[1]
    if len(cuts) not in (1, 2) or values != ValueSet(numbers=cuts):
        return lambda event: contains(event.body.get(name, MISSING))
    low, high = (*cuts, _TOP)[:2]

    def is_between(event: Event) -> bool:
        value = event.body.get(name)
        return type(value) in _NUMBERS and low <= (value, 0) < high

    return is_between


def asked(store: Store, buckets: Iterable[Bucket], tests: Sequence[Tests], event: Event) -> tuple[int, ...]:
    """The rows in `buckets`, to which `event` has led, that hold of it."""
    found: list[int] = []
    for bucket in buckets:
        for row in bucket.rows or bucket.known_rows(store):
            for test in tests[row]:
                if not test(event):
                    break
            else:
                found.append(row)
    return tuple(found)
