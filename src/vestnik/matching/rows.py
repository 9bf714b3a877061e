"""A row: one box of one filter as the index keeps it, and the scan that asks rows about an event.

The most selective span stands in the row itself, so that most rows are refused without a function call; what else the
box says is one test.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from vestnik.matching.cells import constants
from vestnik.matching.constraints import Check, Span, Test, atom_check, parts, within
from vestnik.matching.paths import CONSTANT, Paths
from vestnik.model.boxes import Box
from vestnik.model.spaces import Path
from vestnik.model.values import ValueSet


class Source(NamedTuple):
    """Where a row comes from: a box of the filter `id`, filed in the way `choice`, which settles one of its paths."""

    id: Hashable
    box: Box
    choice: int
    settled: Path | None

    def open_sets(self) -> Iterator[tuple[Path, ValueSet]]:
        """The value sets that are left to ask about."""
        return (constraint for constraint in self.box.sets if constraint[0] != self.settled)


Row: TypeAlias = tuple[int, Any, Any, Test | None, Source]
"""The slot of the span, its low and high end; all further tests in one, where there are any."""


def scan(rows: Iterable[Row], values: list[Any]) -> list[Hashable]:
    """The ids of the rows that hold of an event's values."""
    return [
        source[0]
        for slot, low, high, test, source in rows
        if low <= values[slot] <= high and (test is None or test(values))
    ]


def make_row(paths: Paths, source: Source) -> Row:
    """The row of a box. Acquires the views that it reads."""
    spans: list[tuple[Span, int]] = []
    tests: list[Test] = []
    for path, part in _parts(source):
        slot = paths.acquire(path, part.view)
        if isinstance(part, Span):
            spans.append((part, slot))
        else:
            tests.append(_shared_test(part, slot))
    for path, values in source.open_sets():
        paths.note(path, constants(values))
    if not spans:
        return CONSTANT, 0, 0, _conjunction(tests), source
    spans.sort(key=lambda found: found[0].rank)
    more = [within(slot, (span.low, span.high)) for span, slot in spans[1:]]
    span, slot = spans[0]
    return slot, span.low, span.high, _conjunction(more + tests), source


def release_views(paths: Paths, source: Source) -> None:
    """Give back what `make_row` acquired."""
    for path, part in _parts(source):
        paths.release(path, part.view)


def _parts(source: Source) -> Iterator[tuple[Path, Span | Check]]:
    for path, values in source.open_sets():
        spans, checks = parts(values)
        for part in (*spans, *checks):
            yield path, part
    for path, atom, holds in source.box.literals:
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
