"""From boxes to the flat tables of a compiled index.

Each box becomes tests on ranks. Its most selective test is its access key; the next best is the first test of its
record; the rest follow in the order of their selectivity. How selective a test is, is estimated by the share of the
ranks of its line that pass: the end points that subscribers chose stand for the values that will come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.kernels import BOUNDS, LISTED, MISSING_RANK, MIXED, OTHER_THAN, PATTERN, POINTS, RANGE, RANGES, UNLESS, Tables
from vestnik.matching.lines import Line, are_points
from vestnik.matching.patterns import PatternTables
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
SMALLEST_GROUP = 32
"""Fewer records of a cluster than this with their first test on one path are not worth a group of their own."""
WIDEST_KEY = 0.5
"""A test that passes more than this share of the ranks is no key; its box is looked at for every event."""
ASIDE_SHARE = 0.3
"""What a pattern or a list test is taken to let through, for the order of tests."""
_TOP = 2**31 - 1
_PASSES = (0, 0, _TOP, 0)


Pieces: TypeAlias = tuple[tuple[int, int], ...]


class Test(NamedTuple):
    """One test on the rank at `slot`: `kind` with `a` and `b` as the kernels read them; `pieces` are its intervals."""

    share: float
    slot: int
    kind: int
    a: int
    b: int
    pieces: Pieces


class Built(NamedTuple):
    """The tables; the list tests in their order; the boxes whose candidates need exact evaluation, and their filters."""

    tables: Tables
    paths: list[Path]
    lines: list[Line]
    list_tests: list[tuple[Path, ListSet]]
    exact: dict[int, Box]
    exact_owner: dict[int, int]


class Key(NamedTuple):
    slot: int
    level: int
    cell: int


EVERY_EVENT = Key(-1, 0, 0)


@dataclass
class _Records:
    """Records in the making, column by column; test runs are filed per box."""

    keys: list[Key] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    slot: list[int] = field(default_factory=list)
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)
    box: list[int] = field(default_factory=list)


def build(regions: Iterable[Region]) -> Built:
    """The tables for regions, which are numbered in the order they come."""
    owners: list[int] = []
    boxes: list[Box] = []
    for owner, region in enumerate(regions):
        boxes += region.boxes
        owners += [owner] * len(region.boxes)
    return _Builder(boxes, owners).built()


class _Builder:
    def __init__(self, boxes: list[Box], owners: list[int]) -> None:
        self._boxes = boxes
        self._owners = owners
        self._slots, self._lines = _lines(boxes)
        self._patterns = PatternTables()
        self._bounds: dict[Pieces, int] = {}
        self._list_tests: dict[tuple[Path, ListSet], int] = {}
        self._exact: dict[int, Box] = {}
        self._records = _Records()
        self._seconds: list[tuple[int, ...]] = []
        self._more: list[list[int]] = []
        self._runs: list[list[Test]] = []
        self._referred: list[list[Test]] = []

    def built(self) -> Built:
        for _, numbers in groupby(range(len(self._boxes)), key=self._owners.__getitem__):
            self._file_filter(list(numbers))
        exact_owner = {number: self._owners[number] for number in self._exact}
        return Built(
            self._tables(), list(self._slots), self._lines, list(self._list_tests), self._exact, exact_owner
        )

    # -- boxes to records

    def _file_filter(self, numbers: list[int]) -> None:
        """File the boxes of one filter; each but the first refers to those before it.

        Where one of them needs exact evaluation they do not: whoever evaluates them then drops what is reported twice.
        """
        exact = [number for number in numbers if self._boxes[number].literals]
        self._exact |= {number: self._boxes[number] for number in exact}
        first = len(self._referred)
        for count, number in enumerate(numbers):
            tests = sorted(test for path, values in self._boxes[number].sets for test in self._tests(path, values))
            unless = [Test(1.0, 0, UNLESS, first, first + count, ())] if count and not exact else []
            self._file(number, tests, unless)
            if len(numbers) > 1 and not exact:
                self._referred.append(tests)

    def _file(self, number: int, tests: list[Test], unless: list[Test]) -> None:
        """File a box under its keys."""
        keys = [EVERY_EVENT]
        best = next((test for test in tests if test.pieces), None)
        if best is not None and best.share <= WIDEST_KEY:
            keys = _keys(best)
            if keys[0].level == 0:
                tests = [test for test in tests if test is not best]
        first = next((test for test in tests if 0 < len(test.pieces) * len(keys) <= MOST_RECORDS), None)
        tests = [test for test in tests if test is not first]
        second = next((test for test in tests if test.kind == RANGE), None)
        more = [test for test in tests if test.kind in (RANGE, OTHER_THAN) and test is not second][:2]
        self._seconds.append((second.slot, second.a, second.b) if second else _PASSES[:3])
        self._more.append([part for test in more for part in _inline(test)] + [*_PASSES] * (2 - len(more)))
        self._runs.append([test for test in tests if test is not second and test not in more] + unless)
        for key in keys:
            for low, high in first.pieces if first else ((0, _TOP),):
                self._record(number, key, first, low, high)

    def _record(self, box: int, key: Key, first: Test | None, low: int, high: int) -> None:
        records = self._records
        records.keys.append(key)
        records.kind.append(MIXED if first is None else POINTS if low == high else RANGES)
        records.slot.append(0 if first is None else first.slot)
        records.low.append(low)
        records.high.append(high)
        records.box.append(box)

    def _tests(self, path: Path, values: ValueSet) -> list[Test]:
        """The tests that hold together exactly of the members of `values`."""
        slot = self._slots[path]
        line = self._lines[slot]
        automaton, lists = values.strings.automaton, values.lists
        tests = []
        if automaton is not None:
            others = self._bound(line.intervals(replace(values, lists=ALL_LISTS) if lists else values))
            tests.append(Test(ASIDE_SHARE, slot, PATTERN, self._patterns.number(slot, automaton), others, ()))
        if lists not in (NO_LISTS, ALL_LISTS):
            others = self._bound(line.intervals(replace(values, strings=EVERY_STRING) if automaton else values))
            which = self._list_tests.setdefault((path, lists), len(self._list_tests))
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
        return self._bounds.setdefault(pieces, len(self._bounds))

    # -- records to tables

    def _tables(self) -> Tables:
        records = self._records
        clusters: dict[Key, int] = {}
        cluster = np.array([clusters.setdefault(key, len(clusters)) for key in records.keys], np.int64)
        every = clusters.setdefault(EVERY_EVENT, len(clusters))
        cluster[cluster == every] = len(clusters)
        low, high, slot = (np.array(column, np.int64) for column in (records.low, records.high, records.slot))
        kind = _mixed_where_few(cluster, np.array(records.kind, np.int64), slot)
        grouped = np.where(kind == MIXED, 0, slot)
        order = np.lexsort((low, grouped, kind, cluster))
        cluster, kind, grouped, slot = cluster[order], kind[order], grouped[order], slot[order]
        low, high, box = low[order], high[order], np.array(records.box, np.int64)[order]
        new_group = _changes(cluster, kind, grouped)
        record_at = np.append(np.flatnonzero(new_group), len(order))
        run_at, runs = self._flat_runs(box)
        owners = np.array(self._owners, np.int64)
        referred = self._flat(self._referred)
        exact = np.isin(box, list(self._exact))
        second = np.array(self._seconds, np.int64).reshape(-1, 3)[box]
        more = np.array(self._more, np.int64).reshape(-1, 8)[box]
        alone = (run_at[:-1] == run_at[1:]) & (second[:, 2] == _TOP) & (more[:, 2] == _TOP) & ~exact
        rows = np.column_stack([slot, low, high, second, run_at[:-1], np.where(exact, ~box, owners[box])])
        return _frozen(
            Tables(
                **self._key_tables(clusters),
                group_at=np.searchsorted(cluster[new_group], np.arange(len(clusters) + 2)),
                group_slot=grouped[new_group],
                group_kind=kind[new_group],
                group_plain=np.logical_and.reduceat(alone, record_at[:-1]) if len(order) else alone,
                record_at=record_at,
                low=low,
                high_sorted=_sorted_within(high, record_at),
                more=more,
                records=np.vstack([rows, [0, 0, 0, 0, 0, 0, run_at[-1], 0]]),
                tests=np.vstack([runs, referred]),
                box_from=len(runs) + np.cumsum([0, *map(len, self._referred)]),
                **self._bound_tables(),
                sizes=np.array([line.size for line in self._lines], np.int64),
                text_slot=self._text_slots(),
                first_string=np.array([line.string_ranks()[0] for line in self._lines], np.int64),
                **self._patterns.tables(),
            )
        )

    def _flat_runs(self, boxes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tests of each record, one after the other in the order of records, and where they begin."""
        lengths = np.array([len(run) for run in self._runs], np.int64)
        starts = np.cumsum(lengths) - lengths
        at = np.append(0, np.cumsum(lengths[boxes]))
        offsets = np.arange(at[-1]) - np.repeat(at[:-1], lengths[boxes])
        return at, self._flat(self._runs)[np.repeat(starts[boxes], lengths[boxes]) + offsets]

    def _flat(self, runs: list[list[Test]]) -> NDArray[np.int64]:
        return np.array([test[1:5] for run in runs for test in run], np.int64).reshape(-1, 4)

    def _key_tables(self, clusters: dict[Key, int]) -> dict[str, Any]:
        levels: dict[tuple[int, int], list[Key]] = defaultdict(list)
        for key in clusters:
            if key is not EVERY_EVENT:
                levels[key.slot, key.level].append(key)
        tables = []
        for (slot, level), keys in sorted(levels.items()):
            cells = np.full((self._lines[slot].size >> level) + 1, -1, np.int64)
            cells[[key.cell for key in keys]] = [clusters[key] for key in keys]
            tables.append(cells)
        return {
            "key_slot": np.array([slot for slot, _ in sorted(levels)], np.int64),
            "key_level": np.array([level for _, level in sorted(levels)], np.int64),
            "key_at": np.cumsum([0, *map(len, tables)]),
            "cells": np.concatenate([*tables, np.zeros(0, np.int64)]),
        }

    def _bound_tables(self) -> dict[str, Any]:
        lists = [[end for low, high in pieces for end in (low, high + 1)] for pieces in self._bounds]
        return {
            "bound_at": np.cumsum([0, *map(len, lists)]),
            "bounds": np.array([end for ends in lists for end in ends], np.int64),
        }

    def _text_slots(self) -> NDArray[np.int64]:
        slots = self._patterns.slots()
        rows = np.full(len(self._lines), -1, np.int64)
        rows[slots] = np.arange(len(slots))
        return rows


def _inline(test: Test) -> tuple[int, int, int, int]:
    return test.slot, test.a, test.b, int(test.kind == OTHER_THAN)


def _lines(boxes: list[Box]) -> tuple[dict[Path, int], list[Line]]:
    slots: dict[Path, int] = {}
    numbers: list[set[Any]] = []
    strings: list[set[str]] = []
    points: list[bool] = []
    for box in boxes:
        for path, values in box.sets:
            slot = slots.get(path)
            if slot is None:
                slot = slots[path] = len(slots)
                numbers.append(set())
                strings.append(set())
                points.append(True)
            numbers[slot].update(values.numbers)
            cuts = values.strings.cuts
            if cuts:
                strings[slot].update(cuts)
                points[slot] = points[slot] and are_points(cuts)
    return slots, [Line(*line) for line in zip(numbers, strings, points, strict=True)]


def _keys(test: Test) -> list[Key]:
    """Disjoint cells of one size that hold the pieces of `test`: at most three for the widest piece."""
    widest = max(high - low for low, high in test.pieces)
    level = max(0, widest.bit_length() - 1)
    cells = {cell for low, high in test.pieces for cell in range(low >> level, (high >> level) + 1)}
    return [Key(test.slot, level, cell) for cell in sorted(cells)]


def _gaps(pieces: Pieces, size: int) -> list[tuple[int, int]]:
    ends = [-1, *(end for piece in pieces for end in piece), size]
    return [(ends[i] + 1, ends[i + 1] - 1) for i in range(0, len(ends), 2) if ends[i] + 1 < ends[i + 1]]


def _changes(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    changed = np.ones(len(columns[0]), bool)
    if len(changed):
        changed[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changed


def _mixed_where_few(cluster: NDArray[np.int64], kind: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.int64]:
    """The kind of group of each record: as it asks for where enough of its cluster do, or all, else mixed."""
    asked = (cluster * 4 + kind) * (slot.max(initial=0) + 1) + slot
    _, which, sizes = np.unique(asked, return_inverse=True, return_counts=True)
    few = (sizes[which] < SMALLEST_GROUP) & (sizes[which] < np.bincount(cluster)[cluster])
    return np.where(few, MIXED, kind)


def _sorted_within(values: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
    groups = np.repeat(np.arange(len(at) - 1), np.diff(at))
    return values[np.lexsort((values, groups))]


def _frozen(tables: Tables) -> Tables:
    """The arrays in the types that the kernels were compiled for, read-only as they are when mapped from a file."""
    wide = {"key_at", "pattern_move_at"}
    kept = {"group_plain": bool, "pattern_accepts": bool, "pattern_ascii": np.int16}
    arrays = {}
    for name, array in tables._asdict().items():
        fixed = np.ascontiguousarray(array, kept.get(name, np.int64 if name in wide else np.int32))
        fixed.flags.writeable = False
        arrays[name] = fixed
    return Tables(**arrays)
