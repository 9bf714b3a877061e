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
def _upper(values: Any, low: int, high: int, rank: int) -> int:
    """The first position in values[low:high], sorted, that is above `rank`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= rank:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _bucket(value: Any, low: float, scale: float, count: int) -> int:
    """The bucket of a number among `count`; a larger number is never in an earlier bucket."""
    at = (np.float64(value) - low) * scale
    if at <= 0:
        return 0
    return count - 1 if at >= count else int(at)


@njit(cache=True, nogil=True)
def buckets_of(values: Any, low: float, scale: float, count: int) -> Any:
    out = np.empty(len(values), np.int64)
    for i in range(len(values)):
        out[i] = _bucket(values[i], low, scale, count)
    return out


@njit(cache=True, nogil=True)
def rank_numbers(thresholds: Any, guide: Any, low: float, scale: float, values: Any, first: int) -> Any:
    """For each value the number of thresholds it has reached, from `first` on.

    `guide[b]` thresholds lie in the buckets before b, so only those in the value's own bucket are compared.
    """
    out = np.empty(len(values), np.int32)
    for i in range(len(values)):
        b = _bucket(values[i], low, scale, len(guide) - 1)
        out[i] = first + _upper(thresholds, guide[b], guide[b + 1], values[i])
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


@njit(cache=True, nogil=True)
def _code_point(text: Any, at: int) -> tuple[int, int]:
    """The code point of two or more bytes at `at`, and how many they are."""
    byte = np.int64(text[at])
    second = np.int64(text[at + 1]) & 0x3F
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | second, 2
    third = np.int64(text[at + 2]) & 0x3F
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | second << 6 | third, 3
    return (byte & 0x07) << 18 | second << 12 | third << 6 | (np.int64(text[at + 3]) & 0x3F), 4


@njit(cache=True, nogil=True)
def _accepts(
    text: Any, at: int, end: int, ascii_class: Any, breaks: Any, moves: Any, none: int, everything: int, accepts: Any
) -> bool:
    """Run an automaton over UTF-8 text."""
    state = 0
    classes = len(breaks)
    while at < end:
        if state == everything:
            return True
        if state == none:
            return False
        byte = text[at]
        if byte < 0x80:
            state = moves[state * classes + ascii_class[byte]]
            at += 1
        else:
            code, length = _code_point(text, at)
            state = moves[state * classes + _upper(breaks, 0, classes, code) - 1]
            at += length
    return accepts[state]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def match_rows(t: Any, rows: Any, texts: Any, stamps: Any, first: int, counts: Any, out_events: Any, out_owners: Any) -> Any:
    """Write (event, owner) pairs for the events from `first` on, in the order of events, or count them.

    With `counts` of the length of `rows`, the number of matches of each event goes there and no pair is written; no box
    may then need exact evaluation. Returns how many pairs were written and the first event not done: where the output
    would overflow, the call stops before that event, and is to be repeated from there with more room.
    """
    key_slot, key_level, key_at, cells = t.key_slot, t.key_level, t.key_at, t.cells
    group_at, group_slot, group_kind, group_plain = t.group_at, t.group_slot, t.group_kind, t.group_plain
    record_at, lows, highs, high_sorted = t.record_at, t.low, t.high, t.high_sorted
    owners, test_from, test_to = t.owner, t.test_from, t.test_to
    test_slot, test_kind, test_a, test_b = t.test_slot, t.test_kind, t.test_a, t.test_b
    bound_at, bounds, shared = t.bound_at, t.bounds, t.shared
    text_slot, first_string = t.text_slot, t.first_string
    ascii_class, break_at, breaks = t.pattern_ascii, t.pattern_break_at, t.pattern_breaks
    move_at, moves, state_at, accepts = t.pattern_move_at, t.pattern_moves, t.pattern_state_at, t.pattern_accepts
    pattern_none, pattern_all = t.pattern_none, t.pattern_all
    text, text_at = texts.text, texts.offsets
    counting = len(counts) > 0
    keys = len(key_slot)
    room = len(out_events)
    written = 0
    for event in range(first, len(rows)):
        begun = written
        total = 0
        for key in range(keys + 1):
            if key < keys:
                cluster = cells[key_at[key] + (rows[event, key_slot[key]] >> key_level[key])]
                if cluster < 0:
                    continue
            else:
                cluster = np.int32(len(group_at) - 2)
            for group in range(group_at[cluster], group_at[cluster + 1]):
                rank = rows[event, group_slot[group]]
                start, end = record_at[group], record_at[group + 1]
                kind = group_kind[group]
                last = end
                if kind != BARE:
                    end = np.int32(_upper(lows, start, end, rank))
                    if kind == POINTS:
                        start = np.int32(_upper(lows, start, end, rank - 1))
                if counting and group_plain[group]:
                    total += end - start
                    if kind == RANGES:
                        total -= _upper(high_sorted, start, last, rank - 1) - start
                    continue
                if not counting and written + end - start > room:
                    return begun, event
                for record in range(start, end):
                    if highs[record] < rank:
                        continue
                    passes = True
                    for test in range(test_from[record], test_to[record]):
                        slot = test_slot[test]
                        value = rows[event, slot]
                        a, b = test_a[test], test_b[test]
                        kind = test_kind[test]
                        if kind == RANGE:
                            passes = a <= value <= b
                        elif kind == NOT_RANGE:
                            passes = value < a or value > b
                        elif kind == PATTERN and value >= first_string[slot]:
                            column = text_slot[slot]
                            passes = _accepts(
                                text,
                                text_at[column, event],
                                text_at[column, event + 1],
                                ascii_class[a * 128 : a * 128 + 128],
                                breaks[break_at[a] : break_at[a + 1]],
                                moves[move_at[a] : move_at[a + 1]],
                                pattern_none[a],
                                pattern_all[a],
                                accepts[state_at[a] : state_at[a + 1]],
                            )
                        else:
                            which = b if kind == PATTERN else a
                            at = bound_at[which]
                            passes = ((_upper(bounds, at, bound_at[which + 1], value) - at) & 1) == 1
                        if not passes:
                            break
                    if not passes:
                        continue
                    owner = owners[record]
                    if owner >= 0 and shared[owner]:
                        if stamps[owner] == event:
                            continue
                        stamps[owner] = event
                    if counting:
                        total += 1
                    else:
                        out_events[written] = event
                        out_owners[written] = owner
                        written += 1
        if counting:
            counts[event] = total
    return written, len(rows)
