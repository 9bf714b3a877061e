"""Candidates one by one: where they are few, to ask each of them is faster than to read the event for a scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from vestnik.matching.single.buckets import Bucket
from vestnik.matching.single.store import HEAD, RECORD, ROW, Store
from vestnik.model.boxes import Box
from vestnik.model.events import Event
from vestnik.model.kinds import Atom
from vestnik.model.spaces import EVENT, Path

FEW = 8
"""Heads that are asked one by one."""


class Values(Protocol):
    def contains(self, value: Any) -> bool: ...


Tests: TypeAlias = tuple[tuple[Path, Values], ...]
"""What must be at which path."""


class Literal:
    """The values of which an atom holds, or does not."""

    __slots__ = ("_atom", "_holds")

    def __init__(self, atom: Atom, holds: bool) -> None:
        self._atom = atom
        self._holds = holds

    def contains(self, value: Any) -> bool:
        return self._atom.matches(value) is self._holds


def tests_of(box: Box, settled: Path | None) -> Tests:
    """What is left to ask about a box once `settled` is."""
    literals = [(path, Literal(atom, holds)) for path, atom, holds in box.literals]
    return (*[pair for pair in box.sets if pair[0] != settled], *literals)


def asked(store: Store, buckets: Iterable[Bucket], tests: Sequence[Tests], event: Event) -> list[int]:
    """The rows in `buckets`, to which `event` has led, that hold of it."""
    heads, records, read = store.heads, store.records, EVENT.read
    found: list[int] = []
    for bucket in buckets:
        for block in bucket.blocks:
            for at in range(HEAD * block.at + RECORD, HEAD * (block.at + block.size), HEAD):
                row = records[heads[at]] >> ROW
                for path, values in tests[row]:
                    if not values.contains(read(event, path)):
                        break
                else:
                    found.append(row)
    return found
