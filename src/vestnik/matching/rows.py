"""A row: one box of one filter as the index keeps it, and the scan that asks rows about an event.

The two most selective spans stand in the row itself, so that most rows are refused without a function call; whatever
else the box says is one test.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeAlias

from vestnik.matching.constraints import Check, Span, Test, atom_check, parts, within
from vestnik.matching.paths import CONSTANT, Paths
from vestnik.model.boxes import Box
from vestnik.model.spaces import Path

Row: TypeAlias = tuple[int, Any, Any, int, Any, Any, Test | None, Hashable]
"""slot, low, high; slot, low, high; the rest, or None; the filter's id."""

_NO_SPAN = (CONSTANT, 0, 0)


def scan(rows: Iterable[Row], values: list[Any]) -> list[Hashable]:
    """The ids of the rows that hold of an event's values."""
    return [
        id
        for slot, low, high, other, least, most, rest, id in rows
        if low <= values[slot] <= high and least <= values[other] <= most and (rest is None or rest(values))
    ]


def make_row(paths: Paths, box: Box, settled: Path | None, id: Hashable) -> Row:
    """The row of `box`, of which the constraint at `settled` needs no test. Acquires the views that it reads."""
    spans, tests = [], []
    for path, part in _parts(box, settled):
        slot = paths.acquire(path, part.view)
        if isinstance(part, Span):
            spans.append((part.rank, slot, part.low, part.high))
        else:
            tests.append(part.make(slot, part.argument))
    spans.sort(key=lambda span: span[0])
    first, second = ([span[1:] for span in spans[:2]] + [_NO_SPAN, _NO_SPAN])[:2]
    more = [within(slot, (low, high)) for _, slot, low, high in spans[2:]]
    return (*first, *second, _conjunction(more + tests), id)


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


def _conjunction(tests: list[Test]) -> Test | None:
    if not tests:
        return None
    *before, test = tests
    for first in reversed(before):
        test = _both(first, test)
    return test


def _both(first: Test, second: Test) -> Test:
    return lambda v, first=first, second=second: first(v) and second(v)  # type: ignore[misc]
