"""Candidates one by one: where they are few, to ask each of them is faster than to read the event for a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, TypeAlias

from vestnik.matching.single.buckets import Bucket
from vestnik.matching.single.store import HEAD, RECORD, ROW, Store
from vestnik.model.boxes import Box
from vestnik.model.cuts import NumberCut
from vestnik.model.events import Event
from vestnik.model.kinds import Atom
from vestnik.model.spaces import EVENT, Path
from vestnik.model.values import ValueSet

FEW = 8
"""Heads that are asked one by one."""


_NUMBERS: Final = frozenset({int, float})
_TOP: Final[NumberCut] = (inf, 1)

Holds: TypeAlias = Callable[[Any], bool]
Tests: TypeAlias = tuple[tuple[Path, Holds], ...]
"""What must hold of what is at which path."""


def tests_of(box: Box, settled: Path | None) -> Tests:
    """What is left to ask about a box once `settled` is."""
    sets = [(path, _within(values)) for path, values in box.sets if path != settled]
    return (*sets, *[(path, _literal(atom, holds)) for path, atom, holds in box.literals])


def _literal(atom: Atom, holds: bool) -> Holds:
    return lambda value: atom.matches(value) is holds


def _within(values: ValueSet) -> Holds:
    """Whether a value is one of these, which mostly are numbers from one to another."""
    cuts = values.numbers
    if len(cuts) not in (1, 2) or values != ValueSet(numbers=cuts):
        return values.contains
    low, high = (*cuts, _TOP)[:2]
    return lambda value: type(value) in _NUMBERS and low <= (value, 0) < high


def asked(store: Store, buckets: Iterable[Bucket], tests: Sequence[Tests], event: Event) -> list[int]:
    """The rows in `buckets`, to which `event` has led, that hold of it."""
    heads, records, read = store.heads, store.records, EVENT.read
    found: list[int] = []
    for bucket in buckets:
        for block in bucket.blocks:
            for at in range(HEAD * block.at + RECORD, HEAD * (block.at + block.size), HEAD):
                row = records[heads[at]] >> ROW
                for path, holds in tests[row]:
                    if not holds(read(event, path)):
                        break
                else:
                    found.append(row)
    return found
