"""From filed boxes to the flat arrays that the kernels read."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.batch.filing import EVERY_EVENT, PASSES, TOP, Filing, Key, Test
from vestnik.matching.batch.kernels import MIXED, OTHER_THAN, POINTS, RANGES, Tables

SMALLEST_GROUP = 32
"""Fewer records of a cluster than this with their first test on one path are not worth a group of their own."""
_TYPES = {
    "key_at": np.int64,
    "pattern_move_at": np.int64,
    "group_plain": np.bool_,
    "pattern_accepts": np.bool_,
    "pattern_ascii": np.int16,
}
"""The types of arrays that are not int32."""

Longs = NDArray[np.int64]


class _Records(NamedTuple):
    """Columns of all records, sorted by cluster and group."""

    cluster: Longs
    kind: Longs
    group_slot: Longs
    slot: Longs
    low: Longs
    high: Longs
    box: Longs


def make_tables(filing: Filing) -> Tables:
    """The tables for filed boxes, read-only as they are when mapped from a file."""
    clusters: dict[Key, int] = {}
    for filed in filing.filed:
        for key in filed.keys:
            clusters.setdefault(key, len(clusters))
    clusters.pop(EVERY_EVENT, None)
    clusters = {key: number for number, key in enumerate([*clusters, EVERY_EVENT])}
    records = _records(filing, clusters)
    new_group = _changes(records.cluster, records.kind, records.group_slot)
    record_at = np.append(np.flatnonzero(new_group), len(records.box))
    rows, more, alone, tests = _record_tables(filing, records)
    arrays = {
        **_key_tables(filing, clusters),
        "group_at": np.searchsorted(records.cluster[new_group], np.arange(len(clusters) + 1)),
        "group_slot": records.group_slot[new_group],
        "group_kind": records.kind[new_group],
        "group_plain": np.logical_and.reduceat(alone, record_at[:-1]) if len(alone) else alone,
        "record_at": record_at,
        "low": records.low,
        "high_sorted": _sorted_within(records.high, record_at),
        "records": rows,
        "more": more,
        "tests": np.vstack([tests, _flat(filing.referred)]),
        "box_from": len(tests) + np.cumsum([0, *map(len, filing.referred)]),
        **_bound_tables(filing),
        "sizes": np.array([line.size for line in filing.lines], np.int64),
        "text_slot": _text_slots(filing),
        "first_string": np.array([line.first_string for line in filing.lines], np.int64),
        **filing.patterns.tables(),
    }
    return Tables(**{name: _frozen(array, _TYPES.get(name, np.int32)) for name, array in arrays.items()})


def _records(filing: Filing, clusters: dict[Key, int]) -> _Records:
    columns = [
        (clusters[key], POINTS if low == high else RANGES, filed.first.slot, low, high, number)
        for number, filed in enumerate(filing.filed)
        for key in filed.keys
        for low, high in filed.first.pieces
    ]
    cluster, kind, slot, low, high, box = np.array(columns, np.int64).reshape(-1, 6).T
    kind = np.where(high == TOP, MIXED, _mixed_where_few(cluster, kind, slot))
    group_slot = np.where(kind == MIXED, 0, slot)
    order = np.lexsort((low, group_slot, kind, cluster))
    return _Records(*(column[order] for column in (cluster, kind, group_slot, slot, low, high, box)))


def _mixed_where_few(cluster: Longs, kind: Longs, slot: Longs) -> Longs:
    """The kind of group of each record: as it asks for where enough of its cluster do, or all, else mixed."""
    asked = (cluster * 4 + kind) * (slot.max(initial=0) + 1) + slot
    _, which, sizes = np.unique(asked, return_inverse=True, return_counts=True)
    few = (sizes[which] < SMALLEST_GROUP) & (sizes[which] < np.bincount(cluster)[cluster])
    return np.where(few, MIXED, kind)


def _record_tables(filing: Filing, records: _Records) -> tuple[Longs, Longs, NDArray[np.bool_], Longs]:
    """The rows of records, their third and fourth tests, which of them have one test only, and all further tests."""
    filed, box = filing.filed, records.box
    second = np.array([_inline(f.second)[:3] for f in filed], np.int64).reshape(-1, 3)[box]
    more = np.array([_inline(f.more[0]) + _inline(f.more[1]) for f in filed], np.int64).reshape(-1, 8)[box]
    only_first = np.array([f.second is f.more[0] is PASSES and not f.rest for f in filed], bool)[box]
    owners = np.array([f.owner for f in filed], np.int64)[box]
    exact = np.isin(box, list(filing.exact))
    at, tests = _runs([f.rest for f in filed], box)
    owner = np.where(exact, ~box, owners)
    rows = np.column_stack([records.slot, records.low, records.high, second, at[:-1], owner])
    return np.vstack([rows, [0, 0, 0, 0, 0, 0, at[-1], 0]]), more, only_first & ~exact, tests


def _inline(test: Test) -> tuple[int, int, int, int]:
    return test.slot, test.a, test.b, int(test.kind == OTHER_THAN)


def _runs(runs: list[list[Test]], box: Longs) -> tuple[Longs, Longs]:
    """The run of each record's box, one after the other in the order of records, and where they begin."""
    lengths = np.array([len(run) for run in runs], np.int64)
    starts = np.cumsum(lengths) - lengths
    at = np.append(0, np.cumsum(lengths[box]))
    offsets = np.arange(at[-1]) - np.repeat(at[:-1], lengths[box])
    return at, _flat(runs)[np.repeat(starts[box], lengths[box]) + offsets]


def _flat(runs: list[list[Test]]) -> Longs:
    return np.array([test[1:5] for run in runs for test in run], np.int64).reshape(-1, 4)


def _key_tables(filing: Filing, clusters: dict[Key, int]) -> dict[str, Any]:
    levels: dict[tuple[int, int], list[Key]] = defaultdict(list)
    for key in clusters:
        if key is not EVERY_EVENT:
            levels[key.slot, key.level].append(key)
    tables = []
    for slot, level in sorted(levels):
        keys = levels[slot, level]
        cells = np.full((filing.lines[slot].size >> level) + 1, -1, np.int64)
        cells[[key.cell for key in keys]] = [clusters[key] for key in keys]
        tables.append(cells)
    return {
        "key_slot": np.array([slot for slot, _ in sorted(levels)], np.int64),
        "key_level": np.array([level for _, level in sorted(levels)], np.int64),
        "key_at": np.cumsum([0, *map(len, tables)]),
        "cells": np.concatenate([*tables, np.zeros(0, np.int64)]),
    }


def _bound_tables(filing: Filing) -> dict[str, Any]:
    lists = [[end for low, high in pieces for end in (low, high + 1)] for pieces in filing.bounds]
    return {
        "bound_at": np.cumsum([0, *map(len, lists)]),
        "bounds": np.array([end for ends in lists for end in ends], np.int64),
    }


def _text_slots(filing: Filing) -> Longs:
    slots = filing.patterns.slots()
    rows = np.full(len(filing.lines), -1, np.int64)
    rows[slots] = np.arange(len(slots))
    return rows


def _changes(*columns: Longs) -> NDArray[np.bool_]:
    changed = np.ones(len(columns[0]), bool)
    if len(changed):
        changed[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changed


def _sorted_within(values: Longs, at: Longs) -> Longs:
    groups = np.repeat(np.arange(len(at) - 1), np.diff(at))
    return values[np.lexsort((values, groups))]


def _frozen(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    fixed = np.ascontiguousarray(array, kind)
    fixed.flags.writeable = False
    return fixed
