"""The loops, compiled by numba.

`Tables` is a compiled index laid out flat. A box is kept under one access key (path, level, cell): its most selective
interval of ranks lies in one to three cells of 2**level ranks. The boxes under a key, a cluster, are in groups that
share the path of their first test: points sorted for bisection, ranges sorted by their lower end, or none. What is
left of a box is a run of tests. An event's ranks are one row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

RANGE, NOT_RANGE, BOUNDS, PATTERN = range(4)
POINTS, RANGES, BARE = range(3)

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Tables(NamedTuple):
    """Arrays of a compiled index; `*_at` are offsets, with one more entry than there are owners."""

    key_slot: Ints  # access tables: the path they look at,
    key_level: Ints  # the size of their cells,
    key_at: Longs  # and where their cells begin in
    cells: Ints  # the cluster of each cell, or -1
    group_at: Ints  # cluster -> groups; the last cluster is for every event
    group_slot: Ints
    group_kind: Ints
    group_plain: NDArray[np.bool_]  # no record of the group has tests or shares its filter with another
    record_at: Ints  # group -> records
    low: Ints  # the first test of a record
    high: Ints
    high_sorted: Ints  # of plain ranges: the upper ends alone, for counting
    owner: Ints  # the filter of a record, or ~box where the box needs exact evaluation
    test_from: Ints
    test_to: Ints
    test_slot: Ints
    test_kind: Ints
    test_a: Ints
    test_b: Ints
    bound_at: Ints  # bounds of sets of many intervals: positions where one steps in or out
    bounds: Ints
    shared: NDArray[np.bool_]  # filters of more than one box
    text_slot: Ints  # path -> its row among the text columns, or -1
    first_string: Ints  # path -> its first string rank
    pattern_classes: Ints  # patterns: number of character classes,
    pattern_ascii: NDArray[np.int16]  # class of each ASCII character, 128 a pattern,
    pattern_break_at: Ints
    pattern_breaks: Ints  # first code point of each class,
    pattern_move_at: Longs
    pattern_moves: Ints  # state x class -> state,
    pattern_state_at: Ints
    pattern_accepts: NDArray[np.bool_]
    pattern_none: Ints  # the state that accepts nothing more, or -1
    pattern_all: Ints  # the state that accepts all, or -1


class Texts(NamedTuple):
    """The text columns that patterns read: offsets[row, event] into `text`, in UTF-8."""

    text: NDArray[np.uint8]
    offsets: Longs  # rows x (events + 1)


@njit(cache=True, nogil=True)
def rank_numbers(thresholds: Any, values: Any, first: int) -> Any:
    """For each value the number of thresholds it has reached, from `first` on."""
    out = np.empty(len(values), np.int32)
    size = len(thresholds)
    for i in range(len(values)):
        value = values[i]
        base = 0
        left = size
        while left > 0:
            half = left >> 1
            if thresholds[base + half] <= value:
                base += half + 1
                left -= half + 1
            else:
                left = half
        out[i] = first + base
    return out


@njit(cache=True, nogil=True)
def rank_bytes(cuts: Any, cut_at: Any, text: Any, at: Any, first: int) -> Any:
    """For each string the number of cuts at or below it, from `first` on."""
    count = len(at) - 1
    out = np.empty(count, np.int32)
    for i in range(count):
        start, size = at[i], at[i + 1] - at[i]
        low, high = 0, len(cut_at) - 1
        while low < high:
            middle = (low + high) >> 1
            cut, length = cut_at[middle], cut_at[middle + 1] - cut_at[middle]
            k = 0
            while k < size and k < length and text[start + k] == cuts[cut + k]:
                k += 1
            if k == length or (k < size and text[start + k] > cuts[cut + k]):
                low = middle + 1
            else:
                high = middle
        out[i] = first + low
    return out


@njit(cache=True, nogil=True, inline="always")
def _accepts(t: Any, pattern: int, text: Any, at: int, end: int) -> bool:
    """Run a pattern's automaton over UTF-8 text."""
    state = 0
    none, everything = t.pattern_none[pattern], t.pattern_all[pattern]
    classes = t.pattern_classes[pattern]
    moves = t.pattern_move_at[pattern]
    while at < end:
        if state == everything:
            return True
        if state == none:
            return False
        byte = np.int64(text[at])
        if byte < 0x80:
            kind = np.int64(t.pattern_ascii[pattern * 128 + byte])
            at += 1
        else:
            if byte < 0xE0:
                code = (byte & 0x1F) << 6 | (np.int64(text[at + 1]) & 0x3F)
                at += 2
            elif byte < 0xF0:
                code = (byte & 0x0F) << 12 | (np.int64(text[at + 1]) & 0x3F) << 6 | (np.int64(text[at + 2]) & 0x3F)
                at += 3
            else:
                code = (
                    (byte & 0x07) << 18
                    | (np.int64(text[at + 1]) & 0x3F) << 12
                    | (np.int64(text[at + 2]) & 0x3F) << 6
                    | (np.int64(text[at + 3]) & 0x3F)
                )
                at += 4
            low, high = np.int64(t.pattern_break_at[pattern]), np.int64(t.pattern_break_at[pattern + 1])
            first = low
            while low < high:
                middle = (low + high) >> 1
                if t.pattern_breaks[middle] <= code:
                    low = middle + 1
                else:
                    high = middle
            kind = low - first - 1
        state = t.pattern_moves[moves + state * classes + kind]
    return t.pattern_accepts[t.pattern_state_at[pattern] + state]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True, inline="always")
def _in_bounds(t: Any, which: int, rank: int) -> bool:
    first, high = t.bound_at[which], t.bound_at[which + 1]
    low = first
    while low < high:
        middle = (low + high) >> 1
        if t.bounds[middle] <= rank:
            low = middle + 1
        else:
            high = middle
    return ((low - first) & 1) == 1


@njit(cache=True, nogil=True)
def _passes(t: Any, row: Any, event: int, texts: Any, test: int, end: int) -> bool:
    """Whether the event passes all tests from `test` to `end`."""
    while test < end:
        slot = t.test_slot[test]
        rank = row[slot]
        kind = t.test_kind[test]
        a, b = t.test_a[test], t.test_b[test]
        if kind == RANGE:
            if rank < a or rank > b:
                return False
        elif kind == NOT_RANGE:
            if a <= rank <= b:
                return False
        elif kind == BOUNDS:
            if not _in_bounds(t, a, rank):
                return False
        elif rank >= t.first_string[slot]:
            where = t.text_slot[slot]
            if not _accepts(t, a, texts.text, texts.offsets[where, event], texts.offsets[where, event + 1]):
                return False
        elif not _in_bounds(t, b, rank):
            return False
        test += 1
    return True


@njit(cache=True, nogil=True, inline="always")
def _upper(values: Any, low: int, high: int, rank: int) -> int:
    """The first position in values[low:high], sorted, whose value is above `rank`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= rank:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, inline="always")
def _candidates(t: Any, group: int, rank: int) -> tuple[int, int]:
    """The records of a group whose lower end allows `rank`; for points those that are it."""
    start, end = t.record_at[group], t.record_at[group + 1]
    if t.group_kind[group] == BARE:
        return start, end
    last = _upper(t.low, start, end, rank)
    if t.group_kind[group] == POINTS:
        return _upper(t.low, start, last, rank - 1), last
    return start, last


@njit(cache=True, nogil=True, inline="always")
def _cluster(t: Any, key: int, row: Any) -> int:
    if key == len(t.key_slot):
        return len(t.group_at) - 2
    return t.cells[t.key_at[key] + (row[t.key_slot[key]] >> t.key_level[key])]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def match_rows(t: Any, rows: Any, texts: Any, stamps: Any, first: int, out_events: Any, out_owners: Any) -> Any:
    """Write (event, owner) pairs for the events from `first` on, in the order of events.

    Returns how many were written and the first event not done: where the output would overflow, the call stops before
    that event, and is to be repeated from there with more room.
    """
    count = 0
    room = len(out_events)
    for event in range(first, len(rows)):
        row = rows[event]
        begun = count
        for key in range(len(t.key_slot) + 1):
            cluster = _cluster(t, key, row)
            if cluster < 0:
                continue
            for group in range(t.group_at[cluster], t.group_at[cluster + 1]):
                rank = row[t.group_slot[group]]
                start, end = _candidates(t, group, rank)
                if count + end - start > room:
                    return begun, event
                for record in range(start, end):
                    if t.high[record] < rank:
                        continue
                    test, tests_end = t.test_from[record], t.test_to[record]
                    if test < tests_end and not _passes(t, row, event, texts, test, tests_end):
                        continue
                    owner = t.owner[record]
                    if owner >= 0 and t.shared[owner]:
                        if stamps[owner] == event:
                            continue
                        stamps[owner] = event
                    out_events[count] = event
                    out_owners[count] = owner
                    count += 1
    return count, len(rows)


@njit(cache=True, nogil=True)
def count_rows(t: Any, rows: Any, texts: Any, stamps: Any) -> Any:
    """The number of filters that each event matches; no box may need exact evaluation."""
    counts = np.zeros(len(rows), np.int64)
    for event in range(len(rows)):
        row = rows[event]
        total = 0
        for key in range(len(t.key_slot) + 1):
            cluster = _cluster(t, key, row)
            if cluster < 0:
                continue
            for group in range(t.group_at[cluster], t.group_at[cluster + 1]):
                rank = row[t.group_slot[group]]
                start, end = _candidates(t, group, rank)
                if t.group_plain[group]:
                    total += end - start
                    if t.group_kind[group] == RANGES:
                        total -= _upper(t.high_sorted, start, t.record_at[group + 1], rank - 1) - start
                    continue
                for record in range(start, end):
                    if t.high[record] < rank:
                        continue
                    test, tests_end = t.test_from[record], t.test_to[record]
                    if test < tests_end and not _passes(t, row, event, texts, test, tests_end):
                        continue
                    owner = t.owner[record]
                    if t.shared[owner]:
                        if stamps[owner] == event:
                            continue
                        stamps[owner] = event
                    total += 1
        counts[event] = total
    return counts
