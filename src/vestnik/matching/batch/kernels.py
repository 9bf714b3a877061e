"""The loops, compiled by numba.

`Tables` is a compiled index laid out flat. A box is kept under one access key (path, level, cell): its most selective
interval of ranks lies in one to three cells of 2**level ranks. The boxes under a key are a cluster of records: four
range tests in the record itself, the rest a run of tests. Where many records of a cluster have their first test on the
same path they are a group, sorted by its lower end for bisection; the others are together in a mixed group. An event's
ranks are one row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

RANGE, OTHER_THAN, BOUNDS, PATTERN, LISTED, UNLESS = range(6)
POINTS, RANGES, MIXED = range(3)
FIRST_SLOT, LOW, HIGH, SECOND_SLOT, SECOND_LOW, SECOND_HIGH, TESTS_FROM, OWNER = range(8)
"""A record: two range tests, where its further tests begin (they end where those of the next begin), and its filter, or
~box where the box needs exact evaluation."""
MISSING_RANK, NULL_RANK, FALSE_RANK, TRUE_RANK, MAP_RANK, LIST_RANK = range(6)
UNKNOWN, REFUSED, ACCEPTED = range(3)

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
    group_plain: NDArray[np.bool_]  # its records have one test only and do not share their filter with others
    record_at: Ints  # group -> records
    low: Ints  # lower end of a record's first test
    high_sorted: Ints  # within each group: the upper ends alone, for counting
    records: Ints  # columns FIRST_SLOT to OWNER; one row more than there are records
    more: Ints  # a third and a fourth test: path, lower end, upper end, 1 where it is OTHER_THAN
    tests: Ints  # path, kind, and two numbers that depend on the kind
    bound_at: Ints  # bounds of sets of many intervals: positions where one steps in or out
    bounds: Ints
    box_from: Ints  # boxes that others of their filter refer to: where all their tests begin
    sizes: Ints  # path -> number of its ranks
    text_slot: Ints  # path -> its row among the text columns, or -1
    first_string: Ints  # path -> its first string rank
    pattern_slot: Ints  # patterns: the path that they are asked of,
    pattern_ascii: NDArray[np.int16]  # the character class of each ASCII character, 128 a pattern,
    pattern_break_at: Ints
    pattern_breaks: Ints  # first code point of each class,
    pattern_move_at: Longs
    pattern_moves: Ints  # state x class -> state,
    pattern_state_at: Ints
    pattern_accepts: NDArray[np.bool_]
    pattern_none: Ints  # the state that accepts nothing more, or -1
    pattern_all: Ints  # the state that accepts all, or -1


class Beside(NamedTuple):
    """What tests read beside the ranks: the text columns of patterns, each string once, and whether lists pass."""

    text: NDArray[np.uint8]  # in UTF-8
    at: Longs  # where each distinct string begins
    codes: Ints  # column x event -> distinct string
    memo_at: Longs  # where the answers of each pattern begin, so that the distinct string counts from there
    memo: NDArray[np.uint8]  # UNKNOWN until a pattern is first asked about a string
    lists: NDArray[np.bool_]  # list test x event


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
    """The bucket of a number, or NaN, among `count`; a larger number is never in an earlier bucket."""
    at = (np.float64(value) - low) * scale
    if not at > 0:  # NaN too
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
def _code_point(text: Any, at: int) -> tuple[Any, int]:
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
def _grown(array: Any) -> Any:
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(cache=True, nogil=True)
def _order(ranks: Any, size: int) -> Any:
    """The events in the order of their ranks, which are below `size`."""
    if size > 8 * len(ranks):
        return np.argsort(ranks)
    place = np.zeros(size + 1, np.int64)
    for rank in ranks:
        place[rank + 1] += 1
    place = np.cumsum(place)
    order = np.empty(len(ranks), np.int64)
    for event in range(len(ranks)):
        order[place[ranks[event]]] = event
        place[ranks[event]] += 1
    return order


@njit(cache=True, nogil=True)
def _sift(row: Any, records: Any, start: int, end: int, passed: Any) -> int:
    """Put the records from `start` to `end` whose two range tests the event passes into `passed`; how many they are.

    There is no branch on the outcome of a test: mispredicting it would cost more than the test.
    """
    count = 0
    for record in range(start, end):
        first, second = row[records[record, FIRST_SLOT]], row[records[record, SECOND_SLOT]]
        passed[count] = record
        count += (
            (records[record, LOW] <= first)
            & (first <= records[record, HIGH])
            & (records[record, SECOND_LOW] <= second)
            & (second <= records[record, SECOND_HIGH])
        )
    return count


@njit(cache=True, nogil=True)
def _sift_more(row: Any, more: Any, passed: Any, count: int) -> int:
    """Keep those of the first `count` records in `passed` whose third and fourth test the event passes."""
    kept = 0
    for i in range(count):
        record = passed[i]
        third, fourth = row[more[record, 0]], row[more[record, 4]]
        in_third = (more[record, 1] <= third) & (third <= more[record, 2])
        in_fourth = (more[record, 5] <= fourth) & (fourth <= more[record, 6])
        passed[kept] = record
        kept += (
            (in_third != more[record, 3])
            & (third >= more[record, 3])
            & (in_fourth != more[record, 7])
            & (fourth >= more[record, 7])
        )
    return kept


@njit(cache=True, nogil=True)
def match_rows(
    t: Any,
    rows: Any,
    beside: Any,
    column_from: int,
    first: int,
    counts: Any,
    out_events: Any,
    out_owners: Any,
    written: int,
) -> Any:
    """Write the (event, owner) pairs of a block of events, numbered from `first`, in no particular order.

    They go to the two arrays after the `written` that are there; returns the arrays, larger ones where there was no
    room left, and how many pairs they hold now. With `counts` of the length of `rows` the matches of each event are
    added there instead, and no box may need exact evaluation. The events of a block are taken cluster by cluster, so
    that the records of a cluster stay in cache. A filter is reported by the first of its boxes that matches: the test
    UNLESS refuses where an earlier one does.
    """
    key_slot, key_level, key_at, cells = t.key_slot, t.key_level, t.key_at, t.cells
    group_at, group_slot, group_kind, group_plain = t.group_at, t.group_slot, t.group_kind, t.group_plain
    record_at, low, high_sorted = t.record_at, t.low, t.high_sorted
    records, more, tests = t.records, t.more, t.tests
    bound_at, bounds, box_from = t.bound_at, t.bounds, t.box_from
    sizes, text_slot, first_string = t.sizes, t.text_slot, t.first_string
    ascii_class, break_at, breaks = t.pattern_ascii, t.pattern_break_at, t.pattern_breaks
    move_at, moves, state_at, accepts = t.pattern_move_at, t.pattern_moves, t.pattern_state_at, t.pattern_accepts
    pattern_none, pattern_all = t.pattern_none, t.pattern_all
    text, text_at, codes, memo_at, memo = beside.text, beside.at, beside.codes, beside.memo_at, beside.memo
    lists = beside.lists
    counting = len(counts) > 0
    keys = len(key_slot)
    size = len(rows)
    passed = np.empty(np.max(np.diff(record_at)) if len(record_at) > 1 else 0, np.int64)
    order = np.arange(size)
    sorted_slot = -1
    for key in range(keys + 1):
        if key < keys and key_slot[key] != sorted_slot:
            sorted_slot = key_slot[key]
            order = _order(rows[:, sorted_slot], sizes[sorted_slot])
        run = 0
        while run < size:
            run_from = run
            if key < keys:
                cell = rows[order[run], sorted_slot] >> key_level[key]
                while run < size and rows[order[run], sorted_slot] >> key_level[key] == cell:
                    run += 1
                cluster = cells[key_at[key] + cell]
                if cluster < 0:
                    continue
            else:
                run = size
                cluster = np.int32(len(group_at) - 2)
            for group in range(group_at[cluster], group_at[cluster + 1]):
                slot_of_group, kind_of_group = group_slot[group], group_kind[group]
                group_from, group_to = record_at[group], record_at[group + 1]
                plain = counting and group_plain[group]
                for at in range(run_from, run):
                    event = order[at]
                    start, end = int(group_from), int(group_to)
                    if kind_of_group != MIXED:
                        rank = rows[event, slot_of_group]
                        end = _upper(low, start, end, rank)
                        if kind_of_group == POINTS:
                            start = _upper(low, start, end, rank - 1)
                        if plain:
                            counts[event] += end - start
                            if kind_of_group == RANGES:
                                counts[event] -= _upper(high_sorted, start, group_to, rank - 1) - start
                            continue
                    while written + end - start > len(out_events):
                        out_events, out_owners = _grown(out_events), _grown(out_owners)
                    row = rows[event]
                    count = _sift_more(row, more, passed, _sift(row, records, start, end, passed))
                    for i in range(count):
                        record = passed[i]
                        test, tests_end = records[record, TESTS_FROM], records[record + 1, TESTS_FROM]
                        earlier, earlier_end = np.int32(-1), np.int32(-1)
                        matches = True
                        while test < tests_end:
                            slot, kind, a, b = tests[test, 0], tests[test, 1], tests[test, 2], tests[test, 3]
                            value = row[slot]
                            if kind == RANGE:
                                passes = (a <= value) & (value <= b)
                            elif kind == OTHER_THAN:
                                passes = (value != MISSING_RANK) & ((value < a) | (value > b))
                            elif kind == UNLESS:
                                earlier, earlier_end = a, b
                                test, tests_end = box_from[a], box_from[a + 1]
                                matches = test < tests_end
                                continue
                            elif kind == PATTERN and value >= first_string[slot]:
                                code = codes[text_slot[slot], column_from + event]
                                known = memo[memo_at[a] + code]
                                if known == UNKNOWN:
                                    known = REFUSED + _accepts(
                                        text,
                                        text_at[code],
                                        text_at[code + 1],
                                        ascii_class[a * 128 : a * 128 + 128],
                                        breaks[break_at[a] : break_at[a + 1]],
                                        moves[move_at[a] : move_at[a + 1]],
                                        pattern_none[a],
                                        pattern_all[a],
                                        accepts[state_at[a] : state_at[a + 1]],
                                    )
                                    memo[memo_at[a] + code] = known
                                passes = known == ACCEPTED
                            elif kind == LISTED and value == LIST_RANK:
                                passes = lists[a, column_from + event]
                            else:
                                which = a if kind == BOUNDS else b
                                from_ = bound_at[which]
                                passes = ((_upper(bounds, from_, bound_at[which + 1], value) - from_) & 1) == 1
                            if passes:
                                test += 1
                                matches = bool(test < tests_end or earlier < 0)
                                continue
                            if earlier < 0:
                                matches = False
                                break
                            earlier += 1
                            matches = True
                            if earlier == earlier_end:
                                break
                            test, tests_end = box_from[earlier], box_from[earlier + 1]
                        if matches:
                            if counting:
                                counts[event] += 1
                            else:
                                out_events[written] = first + event
                                out_owners[written] = records[record, OWNER]
                                written += 1
    return out_events, out_owners, written
