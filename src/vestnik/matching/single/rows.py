"""A row: one box of one filter as the index keeps it, and the scan that asks rows about an event.

The most selective span stands in the row itself, so that most rows are refused without a function call.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from vestnik.matching.single.cells import Aspect, aspect, constants
from vestnik.matching.single.constraints import Check, Span, Test, atom_check, atom_holds, contained, parts
from vestnik.matching.single.paths import CONSTANT, Paths
from vestnik.model.boxes import Box
from vestnik.model.spaces import Path
from vestnik.model.values import ValueSet

Row: TypeAlias = tuple[int, Any, Any, tuple[Test, ...], tuple[Any, ...], Hashable, Box, int, Path | None]
"""A span as slot, low, high; the tests; the other spans, one after another; the filter's id; its box, the way in which
it is filed, and the path that need not be asked about where it is filed. A plain tuple: a scan touches as little of it
as it can, since what a scan costs is fetching things from memory."""


def scan(rows: Iterable[Row], values: list[Any]) -> list[Hashable]:
    """The ids of the rows that hold of an event's values."""
    return [row[5] for row in rows if row[1] <= values[row[0]] <= row[2] and _holds(row[3], row[4], values)]


def scan_unsure(rows: Iterable[Row], values: list[Any]) -> list[Hashable]:
    """The same for rows whose spans most likely hold."""
    return [row[5] for row in rows if _holds(row[3], row[4], values) and row[1] <= values[row[0]] <= row[2]]


def _holds(tests: tuple[Test, ...], spans: tuple[Any, ...], values: list[Any]) -> bool:
    for test in tests:
        if not test(values):
            return False
    if spans:
        ends = iter(spans)
        for slot, low, high in zip(ends, ends, ends, strict=True):
            if not low <= values[slot] <= high:
                return False
    return True


def aspects(row: Row) -> Iterator[tuple[Path, Aspect]]:
    """What is left to ask about, as cells see it."""
    return ((path, aspect(values)) for path, values in _open_sets(row[6], row[8]))


def aspect_at(row: Row, path: Path) -> Aspect | None:
    """What is left to ask about at one path."""
    if path != row[8]:
        for at, values in row[6].sets:
            if at == path:
                return aspect(values)
    return None


def has_literals(row: Row) -> bool:
    return bool(row[6].literals)


def make_row(paths: Paths, id: Hashable, box: Box, choice: int, settled: Path | None) -> Row:
    """The row of a box. Acquires the views that it reads."""
    spans: list[tuple[int, tuple[int, Any, Any]]] = []
    tests: list[Test] = []
    for path, part in _parts(box, settled):
        slot = paths.acquire(path, part.view)
        if isinstance(part, Span):
            spans.append((part.rank, (slot, part.low, part.high)))
        else:
            tests.append(_shared_test(part, slot))
    for path, values in _open_sets(box, settled):
        backwards, read = aspect(values)
        paths.note(path, backwards, constants(read))
    spans.sort(key=lambda span: span[0])
    first, *more = [ends for _, ends in spans] or [(CONSTANT, 0, 0)]
    return (*first, tuple(tests), tuple([end for ends in more for end in ends]), id, box, choice, settled)


def release_views(paths: Paths, row: Row) -> None:
    """Give back what `make_row` acquired."""
    for path, part in _parts(row[6], row[8]):
        paths.release(path, part.view)


def _open_sets(box: Box, settled: Path | None) -> Iterator[tuple[Path, ValueSet]]:
    return (constraint for constraint in box.sets if constraint[0] != settled)


def _parts(box: Box, settled: Path | None) -> Iterator[tuple[Path, Span | Check]]:
    for path, values in _open_sets(box, settled):
        spans, checks = parts(values)
        yield from ((path, span) for span in spans)
        yield from ((path, check) for check in checks)
    for path, atom, holds in box.literals:
        yield path, atom_check(atom, holds)


def _shared_test(check: Check, slot: int) -> Test:
    """The test, one object for all the rows that have it: it is more often at hand, and takes less room.

    Except where an argument may hold literals of added kinds, of which 1 and TRUE are equal and not the same.
    """
    if check.make in (contained, atom_holds):
        return check.make(slot, check.argument)
    key = (check.make, slot, check.argument)
    test = _tests.get(key)
    if test is None:
        test = _tests[key] = check.make(slot, check.argument)
    return test


_tests: WeakValueDictionary[tuple[Any, ...], Test] = WeakValueDictionary()
