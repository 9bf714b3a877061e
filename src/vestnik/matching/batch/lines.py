"""Rank lines: all that the filters tell apart at one path, numbered.

The end points of all sets at a path cut its universe into cells; a value's rank is the number of its cell. Every set
without patterns and list boxes is then a few intervals of ranks, whatever kinds of value it mixes, and what is exact
about numbers beyond 2**53 and about strings is settled once, here. The ranks of a line, in order: missing, null, false,
true, map, list, then the number cells, then the string cells.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf, isfinite, nextafter
from typing import Any

import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from vestnik.matching.batch.kernels import (
    FALSE_RANK,
    LIST_RANK,
    MAP_RANK,
    MISSING_RANK,
    NULL_RANK,
    TRUE_RANK,
    buckets_of,
    rank_bytes,
    rank_numbers,
)
from vestnik.model.cuts import NUMBER_BOTTOM, STRING_BOTTOM, NumberCut, NumberCuts, StringCuts
from vestnik.model.frozen import FrozenDict, FrozenList
from vestnik.model.lists import ALL_LISTS
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_MISSING, FLAG_NULL, FLAG_TRUE, Missing, ValueSet

Ranks = NDArray[np.int32]

FIRST_NUMBER = LIST_RANK + 1
_FLAG_RANKS = (
    (FLAG_MISSING, MISSING_RANK),
    (FLAG_NULL, NULL_RANK),
    (FLAG_FALSE, FALSE_RANK),
    (FLAG_TRUE, TRUE_RANK),
    (FLAG_MAP, MAP_RANK),
)
_FIXED: dict[type, int] = {
    Missing: MISSING_RANK,
    UnsetType: MISSING_RANK,
    type(None): NULL_RANK,
    dict: MAP_RANK,
    FrozenDict: MAP_RANK,
    list: LIST_RANK,
    FrozenList: LIST_RANK,
}
_BOOL, _INT, _FLOAT, _STR = 16, 17, 18, 19
_KIND_CODES = {**_FIXED, bool: _BOOL, int: _INT, float: _FLOAT, str: _STR}
_MOST_REMEMBERED = 65_536


class Line:
    """The rank line of one path."""

    __slots__ = (
        "_floats",
        "_ints",
        "_memo",
        "_number_index",
        "_only_points",
        "_points",
        "_string_cuts",
        "_string_index",
        "_string_offsets",
        "_string_text",
        "_strings_from",
        "size",
    )

    def __init__(self, numbers: Iterable[NumberCut], strings: Iterable[str], only_points: bool) -> None:
        """The line for sets with these cuts; `only_points` where every string set is single strings or all but such."""
        cuts = sorted(cut for cut in numbers if cut != NUMBER_BOTTOM)
        self._floats = _Thresholds(_fixed_array(_float_thresholds(cuts), np.float64))
        self._ints = _Thresholds(_fixed_array(_int_thresholds(cuts), np.int64))
        self._number_index: dict[NumberCut, int] | None = {NUMBER_BOTTOM: -1} | {cut: i for i, cut in enumerate(cuts)}
        self._strings_from = FIRST_NUMBER + len(cuts) + 1
        ordered = sorted(cut for cut in strings if cut != STRING_BOTTOM)
        self._string_index: dict[str, int] | None = {STRING_BOTTOM: -1} | {cut: i for i, cut in enumerate(ordered)}
        encoded = [cut.encode() for cut in ordered]
        self._string_text = _fixed_array(np.frombuffer(b"".join(encoded) or b"\0", np.uint8), np.uint8)
        self._string_offsets = _fixed_array(np.cumsum([0, *map(len, encoded)]), np.int64)
        self._only_points = only_points
        self.size = self._strings_from + len(ordered) + 1
        self._memo: _Memo | None = None
        self._points: tuple[list[str], Ranks] | None = None
        self._string_cuts: list[str] | None = ordered

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_floats", "_ints", "_strings_from", "_string_text", "_string_offsets", "_only_points", "size")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._number_index = self._string_index = self._memo = self._points = self._string_cuts = None

    # -- sets

    def intervals(self, values: ValueSet) -> tuple[tuple[int, int], ...]:
        """The ranks of `values`, as inclusive intervals in order, without patterns and list boxes."""
        assert self._number_index is not None and self._string_index is not None, "a line is complete when it travels"
        found = [(rank, rank) for flag, rank in _FLAG_RANKS if values.flags & flag]
        if values.lists == ALL_LISTS:
            found.append((LIST_RANK, LIST_RANK))
        last_number = self._strings_from - 1
        found += _runs(values.numbers, self._number_index, FIRST_NUMBER, last_number)
        found += _runs(values.strings.cuts, self._string_index, self._strings_from, self.size - 1)
        return tuple(_joined(found))

    @property
    def first_string(self) -> int:
        """The first rank of strings."""
        return self._strings_from

    # -- values

    def rank_floats(self, values: NDArray[np.float64]) -> Ranks:
        return self._floats.ranks(values)

    def rank_ints(self, values: NDArray[np.int64]) -> Ranks:
        return self._ints.ranks(values)

    def rank_text(self, text: NDArray[np.uint8], offsets: NDArray[Any]) -> Ranks:
        """The ranks of strings in UTF-8, whose byte order is code-point order."""
        ranks: Ranks = rank_bytes(self._string_text, self._string_offsets, text, offsets, self._strings_from)
        return ranks

    def points(self) -> tuple[list[str], Ranks] | None:
        """Where the line tells only single strings apart: these, and their ranks followed by that of all others."""
        if not self._only_points:
            return None
        if self._points is None:
            cuts = [STRING_BOTTOM, *self._cuts()]
            at = [i for i in range(len(cuts) - 1) if cuts[i + 1] == cuts[i] + "\0"]
            ranks = np.array([*at, len(cuts) - 1], np.int32) + np.int32(self._strings_from)
            self._points = [cuts[i] for i in at], ranks
        return self._points

    def rank_values(self, values: Sequence[Any]) -> Ranks:
        """The ranks of values of an event; MISSING or UNSET where there is none."""
        kinds = set(map(type, values))
        if kinds == {str}:
            return self._remembered(values)
        if kinds == {float}:
            return self.rank_floats(np.array(values, np.float64))
        if kinds == {int}:
            return self.rank_ints(np.array(values, np.int64))
        codes = np.fromiter(map(_KIND_CODES.__getitem__, map(type, values)), np.int32, len(values))
        ranks = codes.copy()
        for code in np.unique(codes):
            if code >= _BOOL:
                where = np.flatnonzero(codes == code)
                ranks[where] = self._rank_kind(int(code), [values[i] for i in where.tolist()])
        return ranks

    def _rank_kind(self, code: int, values: list[Any]) -> Ranks:
        if code == _BOOL:
            return np.where(values, TRUE_RANK, FALSE_RANK).astype(np.int32)
        if code == _INT:
            return self.rank_ints(np.array(values, np.int64))
        if code == _FLOAT:
            return self.rank_floats(np.array(values, np.float64))
        return self._remembered(values)

    def _remembered(self, values: Sequence[str]) -> Ranks:
        if self._memo is None or len(self._memo) > _MOST_REMEMBERED:
            self._memo = _Memo(self._cuts(), self._strings_from)
        return np.fromiter(map(self._memo.__getitem__, values), np.int32, len(values))

    def _cuts(self) -> list[str]:
        if self._string_cuts is None:
            text, at = self._string_text.tobytes(), self._string_offsets.tolist()
            self._string_cuts = [text[a:b].decode() for a, b in pairwise(at)]
        return self._string_cuts


class _Thresholds:
    """Sorted thresholds and a guide to them: how many lie before each of equal buckets of the line."""

    __slots__ = ("_guide", "_low", "_scale", "_values")

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values
        ends = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
        count = 2 * len(values) + 1
        self._low, self._scale = ends[0], count / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.0
        if not isfinite(self._low) or not isfinite(self._scale) or not self._scale:
            self._low, self._scale, count = 0.0, 0.0, 1
        buckets = buckets_of(values, self._low, self._scale, count)
        self._guide = _fixed_array(np.searchsorted(buckets, np.arange(count + 1)), np.int32)

    def ranks(self, values: NDArray[Any]) -> Ranks:
        ranks: Ranks = rank_numbers(self._values, self._guide, self._low, self._scale, values, FIRST_NUMBER)
        return ranks


class _Memo(dict[str, int]):
    """The ranks of strings seen before; a new one is found by bisection."""

    def __init__(self, cuts: list[str], first: int) -> None:
        super().__init__()
        self._cuts = cuts
        self._first = first

    def __missing__(self, value: str) -> int:
        rank = self[value] = self._first + bisect_right(self._cuts, value)
        return rank


def _runs(cuts: NumberCuts | StringCuts, index: dict[Any, int], first: int, last: int) -> list[tuple[int, int]]:
    at = [first + index[cut] for cut in cuts]
    if len(at) % 2:
        at.append(last)
    return [(at[i] + 1, at[i + 1]) for i in range(0, len(at), 2)]


def _joined(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for low, high in intervals:
        if out and out[-1][1] + 1 == low:
            out[-1] = (out[-1][0], high)
        else:
            out.append((low, high))
    return out


def are_points(cuts: StringCuts) -> bool:
    """Whether the set is single strings, or all strings but such."""
    pairs = cuts[1:] if cuts[:1] == ("",) and len(cuts) % 2 else cuts
    return not len(pairs) % 2 and all(pairs[i + 1] == pairs[i] + "\0" for i in range(0, len(pairs), 2))


def _float_thresholds(cuts: list[NumberCut]) -> list[float]:
    """For each cut the least float at or above it, so that a float v has passed it when threshold <= v."""
    out = []
    for value, side in cuts:
        at = float(value)
        if at < value or (side and at == value):
            at = nextafter(at, inf)
        out.append(at)
    return out


def _int_thresholds(cuts: list[NumberCut]) -> list[int]:
    """For each cut the least 64-bit integer at or above it; cuts above all of them are left out."""
    out = []
    for value, side in cuts:
        whole = int(value)
        at = whole if whole > value or (whole == value and not side) else whole + 1
        if at >= 2**63:
            break
        out.append(max(at, -(2**63)))
    return out


def _fixed_array(values: Any, dtype: Any) -> NDArray[Any]:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array
