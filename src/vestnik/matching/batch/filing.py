"""From boxes to records: under which keys a box is filed, and what is left to test.

Each box becomes tests on ranks. Its most selective test is its access key; the next best is the first test of its
record; the rest follow in the order of their selectivity. How selective a test is, is estimated by the share of the
ranks of its line that pass: the end points that subscribers chose stand for the values that will come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from vestnik.matching.batch.kernels import BOUNDS, LISTED, MISSING_RANK, OTHER_THAN, PATTERN, RANGE, UNLESS
from vestnik.matching.batch.lines import Line, are_points
from vestnik.matching.batch.patterns import PatternTables
from vestnik.model.boxes import Box
from vestnik.model.lists import ALL_LISTS, NO_LISTS, ListSet
from vestnik.model.regions import Region
from vestnik.model.spaces import Path
from vestnik.model.strings import EVERY_STRING
from vestnik.model.values import ValueSet

MOST_SPREAD = 16
"""An interval list of at most this many pieces may be a key: the box is filed under each piece."""
MOST_RECORDS = 48
"""A box is filed at most this many times: under each of its keys, once for each piece of its first test."""
WIDEST_KEY = 0.5
"""A test that passes more than this share of the ranks is no key; its box is looked at for every event."""
ASIDE_SHARE = 0.3
"""What a pattern or a list test is taken to let through, for the order of tests."""
TOP = 2**31 - 1

Pieces: TypeAlias = tuple[tuple[int, int], ...]


class Test(NamedTuple):
    """One test on the rank at `slot`: `kind` with `a` and `b` as the kernels read them; `pieces` are its intervals."""

    share: float
    slot: int
    kind: int
    a: int
    b: int
    pieces: Pieces


class Key(NamedTuple):
    """A cell of 2**level ranks of a path."""

    slot: int
    level: int
    cell: int


EVERY_EVENT = Key(-1, 0, 0)
PASSES = Test(1.0, 0, RANGE, 0, TOP, ((0, TOP),))


@dataclass(frozen=True)
class Filed:
    """What is filed for one box: a record for each key and each piece of the first test."""

    keys: list[Key]
    first: Test
    second: Test
    more: tuple[Test, Test]
    rest: list[Test]
    owner: int


@dataclass
class Filing:
    """Boxes filed one after the other, and what their tests refer to by number."""

    paths: list[Path]
    lines: list[Line]
    filed: list[Filed] = field(default_factory=list)
    patterns: PatternTables = field(default_factory=PatternTables)
    bounds: dict[Pieces, int] = field(default_factory=dict)
    list_tests: dict[tuple[Path, ListSet], int] = field(default_factory=dict)
    referred: list[list[Test]] = field(default_factory=list)
    exact: dict[int, tuple[Box, int]] = field(default_factory=dict)
    """The boxes whose candidates need exact evaluation, and their regions, by box number."""

    def file(self, owner: int, boxes: tuple[Box, ...]) -> None:
        """File the boxes of one region; each but the first refers to those before it.

        Where one of them needs exact evaluation they do not: whoever evaluates them then drops what is reported twice.
        """
        exact = any(box.literals for box in boxes)
        first = len(self.referred)
        for count, box in enumerate(boxes):
            tests = sorted(test for path, values in box.sets for test in self._tests(path, values))
            unless = [Test(1.0, 0, UNLESS, first, first + count, ())] if count and not exact else []
            if box.literals:
                self.exact[len(self.filed)] = box, owner
            self.filed.append(_filed(tests, unless, owner))
            if len(boxes) > 1 and not exact:
                self.referred.append(tests)

    def _tests(self, path: Path, values: ValueSet) -> list[Test]:
        """The tests that hold together exactly of the members of `values`."""
        slot = self._slots[path]
        line = self.lines[slot]
        automaton, lists = values.strings.automaton, values.lists
        tests = []
        if automaton is not None:
            others = self._bound(line.intervals(replace(values, lists=ALL_LISTS) if lists else values))
            tests.append(Test(ASIDE_SHARE, slot, PATTERN, self.patterns.number(slot, automaton), others, ()))
        if lists not in (NO_LISTS, ALL_LISTS):
            others = self._bound(line.intervals(replace(values, strings=EVERY_STRING) if automaton else values))
            which = self.list_tests.setdefault((path, lists), len(self.list_tests))
            tests.append(Test(ASIDE_SHARE, slot, LISTED, which, others, ()))
        return tests or [self._rank_test(slot, line.size, line.intervals(values))]

    def _rank_test(self, slot: int, size: int, pieces: Pieces) -> Test:
        share = sum(high - low + 1 for low, high in pieces) / size
        if len(pieces) == 1:
            return Test(share, slot, RANGE, *pieces[0], pieces)
        gaps = _gaps(pieces, size)
        if len(gaps) == 2 and gaps[0] == (MISSING_RANK, MISSING_RANK):
            return Test(share, slot, OTHER_THAN, *gaps[1], ())
        return Test(share, slot, BOUNDS, self._bound(pieces), 0, pieces if len(pieces) <= MOST_SPREAD else ())

    def _bound(self, pieces: Pieces) -> int:
        return self.bounds.setdefault(pieces, len(self.bounds))

    def __post_init__(self) -> None:
        self._slots = {path: slot for slot, path in enumerate(self.paths)}


def file_regions(regions: Iterable[Region]) -> Filing:
    """The boxes of all regions, which are numbered in the order they come."""
    regions = list(regions)
    filing = Filing(*lines_of(box for region in regions for box in region.boxes))
    for owner, region in enumerate(regions):
        filing.file(owner, region.boxes)
    return filing


def _filed(tests: list[Test], unless: list[Test], owner: int) -> Filed:
    keys = [EVERY_EVENT]
    best = next((test for test in tests if test.pieces), PASSES)
    if best.share <= WIDEST_KEY:
        keys = _keys(best)
        if keys[0].level == 0:
            tests = _without(tests, best)
    first = next((test for test in tests if 0 < len(test.pieces) * len(keys) <= MOST_RECORDS), PASSES)
    tests = _without(tests, first)
    second = next((test for test in tests if test.kind == RANGE), PASSES)
    tests = _without(tests, second)
    third = next((test for test in tests if test.kind in (RANGE, OTHER_THAN)), PASSES)
    tests = _without(tests, third)
    fourth = next((test for test in tests if test.kind in (RANGE, OTHER_THAN)), PASSES)
    return Filed(keys, first, second, (third, fourth), _without(tests, fourth) + unless, owner)


def _without(tests: list[Test], one: Test) -> list[Test]:
    return [test for test in tests if test is not one]


def _keys(test: Test) -> list[Key]:
    """Disjoint cells of one size that hold the pieces of `test`: at most three for the widest piece."""
    widest = max(high - low for low, high in test.pieces)
    level = max(0, widest.bit_length() - 1)
    cells = {cell for low, high in test.pieces for cell in range(low >> level, (high >> level) + 1)}
    return [Key(test.slot, level, cell) for cell in sorted(cells)]


def _gaps(pieces: Pieces, size: int) -> list[tuple[int, int]]:
    ends = [-1, *(end for piece in pieces for end in piece), size]
    return [(ends[i] + 1, ends[i + 1] - 1) for i in range(0, len(ends), 2) if ends[i] + 1 < ends[i + 1]]


def lines_of(boxes: Iterable[Box]) -> tuple[list[Path], list[Line]]:
    """The paths that boxes name, and their rank lines."""
    found: dict[Path, tuple[set[Any], set[str], list[bool]]] = {}
    for box in boxes:
        for path, values in box.sets:
            numbers, strings, points = found.setdefault(path, (set(), set(), [True]))
            numbers.update(values.numbers)
            cuts = values.strings.cuts
            if cuts:
                strings.update(cuts)
                points[0] = points[0] and are_points(cuts)
    return list(found), [Line(numbers, strings, points[0]) for numbers, strings, points in found.values()]
