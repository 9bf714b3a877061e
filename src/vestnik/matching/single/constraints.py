"""A value set as tests over the slots of an event (see `paths`).

Most sets are a span of one view, `low <= value <= high`, which needs no function call; what is left is said by checks,
each one closure over a slot. The spans and checks of a set hold together exactly when the value is in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import inf, nextafter
from typing import Any, NamedTuple, TypeAlias

from vestnik.matching.single.cells import LIST_KIND, MAP_KIND, NUMBER_KIND, TEXT_KIND
from vestnik.matching.single.paths import BLANKS, FALSE, KIND, NUMBER, RAW, TEXT, TRUE
from vestnik.matching.single.stems import content_of, ending_of
from vestnik.model import cuts as line
from vestnik.model.cuts import ALL_NUMBERS, Number, NumberCut, NumberCuts
from vestnik.model.kinds import Atom
from vestnik.model.lists import ALL_LISTS
from vestnik.model.strings import StringSet
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_MISSING, FLAG_NULL, FLAG_TRUE, ValueSet

Test: TypeAlias = Callable[[list[Any]], bool]


class _Top:
    """Above every string."""

    def __ge__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return "TOP"


TOP = _Top()


class Span(NamedTuple):
    """`low <= value <= high`; `rank` orders spans, the most selective first as far as a look tells."""

    rank: int
    view: int
    low: Any
    high: Any


class Check(NamedTuple):
    """`make(slot, argument)` is the test."""

    view: int
    make: Callable[[int, Any], Test]
    argument: Any


Parts: TypeAlias = tuple[list[Span], list[Check]]

EVERY_KIND = 255
SINGLE, PREFIX, TWO_SIDED, ONE_SIDED = range(4)


def parts(values: ValueSet) -> Parts:
    """The spans and checks that hold together exactly of the members of `values`."""
    kinds = _kinds(values)
    if kinds == 1 << NUMBER_KIND:
        return _numbers(values.numbers)
    if kinds == 1 << TEXT_KIND:
        return _strings(values.strings)
    if values.lists and values.lists != ALL_LISTS:
        return [], [Check(RAW, contained, values)]
    denied = _denied(values) if kinds == EVERY_KIND & ~1 else None
    if denied is not None:
        return [], [denied]
    checks = _of_kinds(kinds)
    if values.numbers and values.numbers != ALL_NUMBERS:
        checks.append(_no_number(line.complement(values.numbers, line.NUMBER_BOTTOM)))
    if values.strings and not values.strings.is_everything:
        checks.append(_no_string(values.strings.complement()))
    return [], checks


def _denied(values: ValueSet) -> Check | None:
    """What is there and is not one of some values, as one check; None where it takes more."""
    numbers, strings = values.numbers == ALL_NUMBERS, values.strings.is_everything
    if strings and not numbers:
        check = _no_number(line.complement(values.numbers, line.NUMBER_BOTTOM))
    elif numbers and not strings:
        check = _no_string(values.strings.complement())
    else:
        return None
    if check.make not in _THERE:
        return None
    return Check(check.view, _THERE[check.make], (check.argument, BLANKS[check.view]))


def atom_check(atom: Atom, holds: bool) -> Check:
    return Check(RAW, atom_holds, (atom, holds))


def keys(values: ValueSet) -> list[Any] | None:
    """The members as keys of a dict, where they are a few single values that an event can hold; else None."""
    if values.lists or values.flags & (FLAG_MISSING | FLAG_MAP):
        return None
    numbers, strings = number_points(values.numbers), values.strings.points
    if numbers is None or strings is None:
        return None
    flags = values.flags
    singles = [key for flag, key in ((FLAG_NULL, None), (FLAG_FALSE, FALSE), (FLAG_TRUE, TRUE)) if flags & flag]
    return [*singles, *numbers, *strings]


def number_points(cuts: NumberCuts) -> list[Number] | None:
    """The numbers of the set where it is nothing but single numbers, else None."""
    pairs = line.intervals(cuts)
    if all(high is not None and least(low) == greatest(high) for low, high in pairs):
        return [least(low) for low, _ in pairs]
    return None


def least(cut: NumberCut) -> Number:
    """The least number after a cut, of those an event can hold: 64-bit integers and doubles."""
    value, side = cut
    return _next(value, 1) if side else value


def greatest(cut: NumberCut) -> Number:
    """The greatest number before a cut."""
    value, side = cut
    return value if side else _next(value, -1)


def _next(value: Number, step: int) -> Number:
    """The neighbour of `value`: from 2**53 to 2**63 the next integer, elsewhere the next double."""
    if 2**53 <= abs(value) <= 2**63 and abs(int(value) + step) <= 2**63:
        return int(value) + step
    return nextafter(value, step * inf)


def _kinds(values: ValueSet) -> int:
    """The kinds of which the set has some, one bit each."""
    flags = values.flags
    kinds = flags & (FLAG_MISSING | FLAG_NULL | FLAG_FALSE | FLAG_TRUE)  # the first four kinds are in the flags' order
    kinds |= bool(values.numbers) << NUMBER_KIND | bool(values.strings) << TEXT_KIND
    return kinds | bool(values.lists) << LIST_KIND | bool(flags & FLAG_MAP) << MAP_KIND


def _of_kinds(kinds: int) -> list[Check]:
    return [] if kinds == EVERY_KIND else [Check(KIND, of_kinds, kinds)]


def _numbers(cuts: NumberCuts) -> Parts:
    low = least(cuts[0])
    high = greatest(cuts[-1]) if len(cuts) % 2 == 0 else inf
    rank = SINGLE if low == high else ONE_SIDED if low == -inf or high == inf else TWO_SIDED
    spans = [Span(rank, NUMBER, low, max(low, high))]
    if len(cuts) <= 2 and low <= high:
        return spans, []
    points = number_points(cuts)
    return spans, [Check(NUMBER, among_numbers, cuts) if points is None else Check(NUMBER, one_of, frozenset(points))]


def _no_number(cuts: NumberCuts) -> Check:
    points = number_points(cuts)
    if points is not None:
        return Check(NUMBER, differs, points[0]) if len(points) == 1 else Check(NUMBER, none_of, frozenset(points))
    spans, checks = _numbers(cuts)
    return Check(NUMBER, not_among_numbers, cuts) if checks else Check(NUMBER, outside, spans[0][-2:])


def _strings(strings: StringSet) -> Parts:
    if strings.automaton is not None:
        return [], [_pattern(strings)]
    cuts = strings.cuts
    span, exact = _text_span(cuts[0], cuts[-1] if len(cuts) % 2 == 0 else None)
    if len(cuts) <= 2:
        return [span], [] if exact else [Check(TEXT, differs, span.high)]
    points = strings.points
    return [span], [Check(TEXT, among_strings, cuts) if points is None else Check(TEXT, one_of, frozenset(points))]


def _text_span(first: str, last: str | None) -> tuple[Span, bool]:
    """The strings from cut to cut, and whether these are all: else it lets in the string `last` too."""
    if last is None:
        return Span(ONE_SIDED, TEXT, first, TOP), True
    if last[-1] == "\0":
        return Span(SINGLE if first == last[:-1] else TWO_SIDED, TEXT, first, last[:-1]), True
    return Span(PREFIX if first else ONE_SIDED, TEXT, first, last), False


def _no_string(strings: StringSet) -> Check:
    if strings.automaton is not None:
        inner = _pattern(strings)
        return Check(TEXT, not_, inner)
    points = strings.points
    if points is not None:
        return Check(TEXT, differs, points[0]) if len(points) == 1 else Check(TEXT, none_of, frozenset(points))
    return Check(TEXT, not_among_strings, strings.cuts)


def _pattern(strings: StringSet) -> Check:
    """A pattern, by a method of str where one says it."""
    ending, content = ending_of(strings), content_of(strings)
    if ending is not None:
        return Check(TEXT, ends, ending)
    return Check(TEXT, accepted, strings.automaton) if content is None else Check(TEXT, has, content)


# --- checks: the argument is bound as a default, which is the fastest and smallest closure there is ---


def outside(slot: int, ends: tuple[Any, Any]) -> Test:
    low, high = ends
    return lambda v, s=slot, low=low, high=high: not low <= v[s] <= high  # type: ignore[misc]


def differs(slot: int, other: Any) -> Test:
    return lambda v, s=slot, other=other: v[s] != other  # type: ignore[misc]


def one_of(slot: int, members: frozenset[Any]) -> Test:
    return lambda v, s=slot, members=members: v[s] in members  # type: ignore[misc]


def none_of(slot: int, members: frozenset[Any]) -> Test:
    return lambda v, s=slot, members=members: v[s] not in members  # type: ignore[misc]


def outside_there(slot: int, ends_and_gone: tuple[tuple[Any, Any], Any]) -> Test:
    (low, high), gone = ends_and_gone
    return lambda v, s=slot, low=low, high=high, gone=gone: not low <= v[s] <= high and v[s] is not gone  # type: ignore[misc]


def differs_there(slot: int, other_and_gone: tuple[Any, Any]) -> Test:
    other, gone = other_and_gone
    return lambda v, s=slot, other=other, gone=gone: v[s] != other and v[s] is not gone  # type: ignore[misc]


def none_of_there(slot: int, members_and_gone: tuple[frozenset[Any], Any]) -> Test:
    members, gone = members_and_gone
    return lambda v, s=slot, members=members, gone=gone: v[s] not in members and v[s] is not gone  # type: ignore[misc]


def of_kinds(slot: int, kinds: int) -> Test:
    return lambda v, s=slot, kinds=kinds: kinds >> v[s] & 1 == 1  # type: ignore[misc]


def among_numbers(slot: int, cuts: NumberCuts) -> Test:
    return lambda v, s=slot, cuts=cuts: v[s] == v[s] and bisect_right(cuts, (v[s], 0)) & 1 == 1  # type: ignore[misc]


def not_among_numbers(slot: int, cuts: NumberCuts) -> Test:
    return lambda v, s=slot, cuts=cuts: v[s] != v[s] or not bisect_right(cuts, (v[s], 0)) & 1  # type: ignore[misc]


def among_strings(slot: int, cuts: tuple[str, ...]) -> Test:
    return lambda v, s=slot, cuts=cuts: v[s] == v[s] and bisect_right(cuts, v[s]) & 1 == 1  # type: ignore[misc]


def not_among_strings(slot: int, cuts: tuple[str, ...]) -> Test:
    return lambda v, s=slot, cuts=cuts: v[s] != v[s] or not bisect_right(cuts, v[s]) & 1  # type: ignore[misc]


def ends(slot: int, end: str) -> Test:
    return lambda v, s=slot, end=end: v[s].endswith(end)  # type: ignore[misc]


def has(slot: int, inner: str) -> Test:
    return lambda v, s=slot, inner=inner: inner in v[s]  # type: ignore[misc]


def accepted(slot: int, automaton: Any) -> Test:
    accepts = automaton.accepts
    return lambda v, s=slot, accepts=accepts: v[s] == v[s] and accepts(v[s])  # type: ignore[misc]


def not_(slot: int, check: Check) -> Test:
    test = check.make(slot, check.argument)
    return lambda v, test=test: not test(v)  # type: ignore[misc]


def contained(slot: int, values: ValueSet) -> Test:
    contains = values.contains
    return lambda v, s=slot, contains=contains: contains(v[s])  # type: ignore[misc]


def atom_holds(slot: int, literal: tuple[Atom, bool]) -> Test:
    atom, holds = literal
    return lambda v, s=slot, atom=atom, holds=holds: atom.matches(v[s]) is holds  # type: ignore[misc]


_THERE = {outside: outside_there, differs: differs_there, none_of: none_of_there}
"""The same checks, false also where the path is missing."""
