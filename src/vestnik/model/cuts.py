"""Subsets of an ordered line, as the points where one steps in or out.

A set is a strictly increasing tuple of cuts: below the first cut one is outside, each cut
toggles, and an odd number of cuts leaves the set unbounded above. Equal sets are equal tuples.
What a cut is, is up to the line: for numbers `(value, 0)` lies just before a value and
`(value, 1)` just after it; for strings the cut `s` lies just before `s`, and just after `s`
is just before `s + '\\0'`, its successor. Every line has a least cut, its bottom.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import zip_longest
from math import ceil, floor, inf
from typing import Any, TypeAlias, TypeVar

Number: TypeAlias = int | float
NumberCut: TypeAlias = tuple[Number, int]
NumberCuts: TypeAlias = tuple[NumberCut, ...]
StringCuts: TypeAlias = tuple[str, ...]
Cut = TypeVar("Cut", bound=NumberCut | str)

FEW_RUNS = 16
"""A set with so many times the cuts of another has many."""

NUMBER_BOTTOM: NumberCut = (-inf, 0)
STRING_BOTTOM = ""
ALL_NUMBERS: NumberCuts = (NUMBER_BOTTOM,)
ALL_STRINGS: StringCuts = (STRING_BOTTOM,)


def complement(cuts: tuple[Cut, ...], bottom: Cut) -> tuple[Cut, ...]:
    """Everything on the line that is not in `cuts`."""
    return cuts[1:] if cuts and cuts[0] == bottom else (bottom, *cuts)


def union(a: tuple[Cut, ...], b: tuple[Cut, ...]) -> tuple[Cut, ...]:
    if not a or a == b:
        return b
    if not b:
        return a
    if len(a) < len(b):
        a, b = b, a
    runs = _beyond(a, b)
    return _with_few(a, runs) if FEW_RUNS * len(runs) < len(a) else _combine(a, b, 1)


def _with_few(many: tuple[Cut, ...], runs: Iterable[tuple[Cut, Cut | None]]) -> tuple[Cut, ...]:
    """The union where one set has many cuts: the intervals of the other are put in one by one."""
    for low, high in runs:
        first = bisect_left(many, low)
        last = len(many) if high is None else bisect_right(many, high)
        begins = () if first & 1 else (low,)
        ends = () if last & 1 or high is None else (high,)
        many = (*many[:first], *begins, *ends, *many[last:])
    return many


def intersection(a: tuple[Cut, ...], b: tuple[Cut, ...]) -> tuple[Cut, ...]:
    if not a or a == b:
        return a
    if not b:
        return b
    return _combine(a, b, 2)


def _combine(a: tuple[Any, ...], b: tuple[Any, ...], needed: int) -> tuple[Any, ...]:
    """The points that lie in at least `needed` (1 or 2) of the two sets."""
    out: list[Any] = []
    i = j = 0
    in_a = in_b = inside = False
    while i < len(a) or j < len(b):
        if j == len(b) or (i < len(a) and a[i] <= b[j]):
            cut = a[i]
            if j < len(b) and b[j] == cut:
                in_b = not in_b
                j += 1
            in_a = not in_a
            i += 1
        else:
            cut = b[j]
            in_b = not in_b
            j += 1
        if (in_a + in_b >= needed) != inside:
            inside = not inside
            out.append(cut)
    return tuple(out)


def includes(wide: tuple[Cut, ...], narrow: tuple[Cut, ...]) -> bool:
    if len(narrow) <= 2:
        return not narrow or _includes_interval(wide, narrow[0], narrow[1] if len(narrow) == 2 else None)
    return all(_includes_interval(wide, low, high) for low, high in _beyond(wide, narrow))


def _beyond(one: tuple[Cut, ...], other: tuple[Cut, ...]) -> list[tuple[Cut, Cut | None]]:
    """The runs of `other` that are no runs of `one`; where they are few, all of them."""
    runs = intervals(other)
    if len(runs) <= FEW_RUNS:
        return runs
    end_of = dict(zip_longest(one[0::2], one[1::2])).get
    return [(low, high) for low, high in runs if end_of(low, low) != high]


def _includes_interval(wide: tuple[Cut, ...], low: Cut, high: Cut | None) -> bool:
    """Whether one run of `wide` reaches from `low` to `high`."""
    end = bisect_right(wide, low)
    return end & 1 == 1 and (end == len(wide) or (high is not None and bisect_left(wide, high) <= end))


def contains(cuts: tuple[Cut, ...], position: Cut) -> bool:
    """Whether what lies just after the cut `position` is in the set."""
    return bool(bisect_right(cuts, position) & 1)


def intervals(cuts: tuple[Cut, ...]) -> list[tuple[Cut, Cut | None]]:
    """The maximal runs of the set, each as (first cut, last cut or None for unbounded)."""
    return list(zip_longest(cuts[0::2], cuts[1::2]))


def tidy(value: Number) -> Number:
    """The one way to write a number: an int where it is integral and fits 64 bits, else a float."""
    if not -(2**63) <= value < 2**63:
        return float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def number_points(values: Iterable[Number]) -> NumberCuts:
    """The set of just these numbers."""
    return tuple(cut for value in sorted({tidy(v) for v in values}) for cut in ((value, 0), (value, 1)))


def number_range(
    low: Number | None, high: Number | None, *, open_low: bool = False, open_high: bool = False
) -> NumberCuts:
    """The numbers from `low` to `high`; None is unbounded."""
    first = NUMBER_BOTTOM if low is None else (tidy(low), int(open_low))
    if high is None:
        return (first,)
    last = (tidy(high), int(not open_high))
    return (first, last) if first < last else ()


def whole_numbers(cuts: NumberCuts) -> NumberCuts:
    """The integers of the set, in the one form in which every cut lies just before an integer."""
    out: list[NumberCut] = []
    for value, side in cuts:
        at = value if value == -inf else (floor(value) + 1 if side else ceil(value))
        if out and out[-1][0] == at:
            out.pop()
        else:
            out.append((at, 0))
    return tuple(out)


def string_points(values: Iterable[str]) -> StringCuts:
    """The set of just these strings."""
    out: list[str] = []
    for value in sorted(set(values)):
        if out and out[-1] == value:
            out.pop()
        else:
            out.append(value)
        out.append(value + "\0")
    return tuple(out)


def string_range(low: str, high: str | None) -> StringCuts:
    """The strings from `low` on, before `high`; None is unbounded."""
    if high is None:
        return (low,)
    return (low, high) if low < high else ()


def after_prefix(prefix: str) -> str | None:
    """The least string above everything that starts with `prefix`, or None."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)
