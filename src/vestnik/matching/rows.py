"""A row: one box of one filter as the index keeps it, and the scan that asks rows about an event.

The three most selective spans stand in the row itself, so that most rows are refused without a function call; whatever
else the box says is one test.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from vestnik.matching.constraints import Check, Span, Test, atom_check, parts, within
from vestnik.matching.paths import CONSTANT, Paths
from vestnik.model.boxes import Box
from vestnik.model.spaces import Path

SPANS = 3
Row: TypeAlias = tuple[int, Any, Any, int, Any, Any, int, Any, Any, Test | None, Test | None, Hashable]
"""Three times slot, low, high; a test, and all further tests in one, where there are any; the filter's id."""

_NO_SPAN = (CONSTANT, 0, 0)


def scan(rows: Iterable[Row], values: list[Any]) -> list[Hashable]:
    """The ids of the rows that hold of an event's values."""
    return [
        id
        for a, low, high, b, low_b, high_b, c, low_c, high_c, test, more, id in rows
        if low <= values[a] <= high
        and low_b <= values[b] <= high_b
        and low_c <= values[c] <= high_c
        and (test is None or (test(values) and (more is None or more(values))))
    ]


def is_bare(row: Row) -> bool:
    """Whether there is no span in the row."""
    return row[0] == CONSTANT


def spans(row: Row) -> list[tuple[int, Any, Any]]:
    """The spans that stand in the row, each on a slot of its own."""
    return [span for span in (row[0:3], row[3:6], row[6:9]) if span[0] != CONSTANT]


def make_row(paths: Paths, box: Box, settled: Path | None, id: Hashable) -> Row:
    """The row of `box`, of which the constraint at `settled` needs no test. Acquires the views that it reads."""
    found, tests = [], []
    for path, part in _parts(box, settled):
        slot = paths.acquire(path, part.view)
        if isinstance(part, Span):
            found.append((part.rank, slot, part.low, part.high))
        else:
            tests.append(_shared_test(part, slot))
    found.sort(key=lambda span: span[0])
    first, second, third = ([span[1:] for span in found] + [_NO_SPAN] * SPANS)[:SPANS]
    more = [within(slot, (low, high)) for _, slot, low, high in found[SPANS:]]
    test, *others = [*more, *tests] or [None]
    return (*first, *second, *third, test, _conjunction(others), id)


def release_views(paths: Paths, box: Box, settled: Path | None) -> None:
    """Give back what `make_row` acquired."""
    for path, part in _parts(box, settled):
        paths.release(path, part.view)


def _parts(box: Box, settled: Path | None) -> Iterator[tuple[Path, Span | Check]]:
    for path, values in box.sets:
        if path != settled:
            spans, checks = parts(values)
            for part in (*spans, *checks):
                yield path, part
    for path, atom, holds in box.literals:
        yield path, atom_check(atom, holds)


def _shared_test(check: Check, slot: int) -> Test:
    """The test, one object for all the rows that have it: it is more often at hand, and takes less room."""
    key = (check.make, slot, check.argument)
    test = _tests.get(key)
    if test is None:
        test = _tests[key] = check.make(slot, check.argument)
    return test


_tests: WeakValueDictionary[tuple[Any, ...], Test] = WeakValueDictionary()


def _conjunction(tests: list[Test]) -> Test | None:
    if not tests:
        return None
    *before, test = tests
    for first in reversed(before):
        test = _both(first, test)
    return test


def _both(first: Test, second: Test) -> Test:
    return lambda v, first=first, second=second: first(v) and second(v)  # type: ignore[misc]
