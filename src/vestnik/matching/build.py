"""From boxes to the flat tables of a compiled index.

Each box becomes tests on ranks. Its most selective test is its access key; the next best is the first test of its
record; the rest follow in the order of their selectivity. How selective a test is, is estimated by the share of the
ranks of its line that pass: the end points that subscribers chose stand for the values that will come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.kernels import BARE, BOUNDS, NOT_RANGE, PATTERN, POINTS, RANGE, RANGES, Tables
from vestnik.matching.lines import Line, are_points
from vestnik.matching.patterns import PatternTables
from vestnik.model.boxes import Box
from vestnik.model.lists import ALL_LISTS
from vestnik.model.spaces import Path
from vestnik.model.values import ValueSet

MOST_SPREAD = 16
"""An interval list of at most this many pieces may be a key: the box is filed under each piece."""
MOST_RECORDS = 48
"""A box is filed at most this many times: under each of its keys, once for each piece of its first test."""
WIDEST_KEY = 0.5
"""A test that passes more than this share of the ranks is no key; its box is looked at for every event."""
_TOP = 2**31 - 1


class Test(NamedTuple):
    """One test on the rank at `slot`: `kind` with `a` and `b` as the kernels read them; `pieces` are its intervals."""

    share: float
    slot: int
    kind: int
    a: int
    b: int
    pieces: tuple[tuple[int, int], ...]


class Built(NamedTuple):
    """The tables, and for boxes whose candidates need exact evaluation the box and its filter, by box number."""

    tables: Tables
    paths: list[Path]
    lines: list[Line]
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


def build(regions: Iterable[tuple[Box, ...]]) -> Built:
    """The tables for filters given by their boxes, numbered in the order they come."""
    owners: list[int] = []
    boxes: list[Box] = []
    filters = 0
    for region in regions:
        boxes += region
        owners += [filters] * len(region)
        filters += 1
    return _Builder(boxes, owners, filters).built()


class _Builder:
    def __init__(self, boxes: list[Box], owners: list[int], filters: int) -> None:
        self._boxes = boxes
        self._owners = owners
        self._filters = filters
        self._slots, self._lines = _lines(boxes)
        self._patterns = PatternTables()
        self._bounds: dict[tuple[tuple[int, int], ...], int] = {}
        self._exact: dict[int, Box] = {}
        self._records = _Records()
        self._runs: list[list[Test]] = []

    def built(self) -> Built:
        for number, box in enumerate(self._boxes):
            self._file(number, box)
        exact_owner = {number: self._owners[number] for number in self._exact}
        return Built(self._tables(), list(self._slots), self._lines, self._exact, exact_owner)

    # -- boxes to records

    def _file(self, number: int, box: Box) -> None:
        tests = [self._test(path, values) for path, values in box.sets]
        if box.literals or any(values.lists and values.lists != ALL_LISTS for _, values in box.sets):
            self._exact[number] = box
        tests.sort()
        keys, first = [EVERY_EVENT], None
        if tests and tests[0].pieces and tests[0].share <= WIDEST_KEY:
            keys = _keys(tests[0])
            if all(key.level == 0 for key in keys):
                tests = tests[1:]
        if tests and 0 < len(tests[0].pieces) * len(keys) <= MOST_RECORDS:
            first = tests[0]
            tests = tests[1:]
        self._runs.append(tests)
        for key in keys:
            for low, high in first.pieces if first else ((0, _TOP),):
                self._record(number, key, first, low, high)

    def _record(self, box: int, key: Key, first: Test | None, low: int, high: int) -> None:
        records = self._records
        records.keys.append(key)
        records.kind.append(BARE if first is None else POINTS if low == high else RANGES)
        records.slot.append(0 if first is None else first.slot)
        records.low.append(low)
        records.high.append(high)
        records.box.append(box)

    def _test(self, path: Path, values: ValueSet) -> Test:
        slot = self._slots[path]
        line = self._lines[slot]
        pieces = tuple(line.intervals(values))
        if values.strings.automaton is not None:
            which = self._patterns.number(values.strings.automaton)
            return Test(1.0, slot, PATTERN, which, self._bound(pieces), ())
        share = sum(high - low + 1 for low, high in pieces) / line.size
        if len(pieces) == 1:
            return Test(share, slot, RANGE, *pieces[0], pieces)
        gaps = _gaps(pieces, line.size)
        if len(gaps) == 1:
            return Test(share, slot, NOT_RANGE, *gaps[0], ())
        return Test(share, slot, BOUNDS, self._bound(pieces), 0, pieces if len(pieces) <= MOST_SPREAD else ())

    def _bound(self, pieces: tuple[tuple[int, int], ...]) -> int:
        return self._bounds.setdefault(pieces, len(self._bounds))

    # -- records to tables

    def _tables(self) -> Tables:
        records = self._records
        clusters: dict[Key, int] = {}
        cluster = np.array([clusters.setdefault(key, len(clusters)) for key in records.keys], np.int64)
        every = clusters.setdefault(EVERY_EVENT, len(clusters))
        cluster[cluster == every] = len(clusters)
        kind, slot, low = (np.array(column, np.int64) for column in (records.kind, records.slot, records.low))
        order = np.lexsort((low, slot, kind, cluster))
        cluster, kind, slot = cluster[order], kind[order], slot[order]
        high, box = np.array(records.high, np.int64)[order], np.array(records.box, np.int64)[order]
        new_group = _changes(cluster, kind, slot)
        record_at = np.append(np.flatnonzero(new_group), len(order))
        group_cluster = cluster[new_group]
        run_at, runs = self._flat_runs()
        owners = np.array(self._owners, np.int64)
        shared = np.bincount(owners, minlength=self._filters) > 1
        owner = owners[box] if len(box) else box
        exact = np.isin(box, list(self._exact))
        alone = (run_at[box] == run_at[box + 1]) & ~shared[owner] & ~exact
        group_plain = np.logical_and.reduceat(alone, record_at[:-1]) if len(order) else np.zeros(0, bool)
        return _frozen(
            Tables(
                **self._key_tables(clusters),
                group_at=np.searchsorted(group_cluster, np.arange(len(clusters) + 2)),
                group_slot=slot[new_group],
                group_kind=kind[new_group],
                group_plain=group_plain,
                record_at=record_at,
                low=low[order],
                high=high,
                high_sorted=_sorted_within(high, record_at),
                owner=np.where(exact, ~box, owner),
                test_from=run_at[box],
                test_to=run_at[box + 1],
                test_slot=runs[:, 0],
                test_kind=runs[:, 1],
                test_a=runs[:, 2],
                test_b=runs[:, 3],
                **self._bound_tables(),
                shared=shared,
                text_slot=self._text_slots(runs),
                first_string=np.array([line.string_ranks()[0] for line in self._lines], np.int64),
                **self._patterns.tables(),
            )
        )

    def _flat_runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        at = np.cumsum([0, *map(len, self._runs)])
        flat = [(test.slot, test.kind, test.a, test.b) for run in self._runs for test in run]
        return at, np.array(flat, np.int64).reshape(-1, 4)

    def _key_tables(self, clusters: dict[Key, int]) -> dict[str, Any]:
        levels: dict[tuple[int, int], list[Key]] = defaultdict(list)
        for key in clusters:
            if key is not EVERY_EVENT:
                levels[key.slot, key.level].append(key)
        tables = []
        for (slot, level), keys in levels.items():
            cells = np.full((self._lines[slot].size >> level) + 1, -1, np.int64)
            cells[[key.cell for key in keys]] = [clusters[key] for key in keys]
            tables.append(cells)
        return {
            "key_slot": np.array([slot for slot, _ in levels], np.int64),
            "key_level": np.array([level for _, level in levels], np.int64),
            "key_at": np.cumsum([0, *map(len, tables)]),
            "cells": np.concatenate([*tables, np.zeros(0, np.int64)]),
        }

    def _bound_tables(self) -> dict[str, Any]:
        lists = [[end for low, high in pieces for end in (low, high + 1)] for pieces in self._bounds]
        return {
            "bound_at": np.cumsum([0, *map(len, lists)]),
            "bounds": np.array([end for ends in lists for end in ends], np.int64),
        }

    def _text_slots(self, runs: NDArray[np.int64]) -> NDArray[np.int64]:
        slots = np.unique(runs[runs[:, 1] == PATTERN, 0])
        rows = np.full(len(self._lines), -1, np.int64)
        rows[slots] = np.arange(len(slots))
        return rows


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


def _gaps(pieces: tuple[tuple[int, int], ...], size: int) -> list[tuple[int, int]]:
    ends = [-1, *(end for piece in pieces for end in piece), size]
    return [(ends[i] + 1, ends[i + 1] - 1) for i in range(0, len(ends), 2) if ends[i] + 1 < ends[i + 1]]


def _changes(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    changed = np.ones(len(columns[0]), bool)
    if len(changed):
        changed[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changed


def _sorted_within(values: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
    groups = np.repeat(np.arange(len(at) - 1), np.diff(at))
    return values[np.lexsort((values, groups))]


def _frozen(tables: Tables) -> Tables:
    """The arrays in the types that the kernels were compiled for, read-only as they are when mapped from a file."""
    wide = {"key_at", "pattern_move_at"}
    kept = {"group_plain": bool, "shared": bool, "pattern_accepts": bool, "pattern_ascii": np.int16}
    arrays = {}
    for name, array in tables._asdict().items():
        fixed = np.ascontiguousarray(array, kept.get(name, np.int64 if name in wide else np.int32))
        fixed.flags.writeable = False
        arrays[name] = fixed
    return Tables(**arrays)
