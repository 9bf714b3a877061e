"""A value set as spans of codes.

A span is a first and a last code. The spans are sure of a value unless its code is odd, and an end of a span: then the
set may have some of the values that share this code and not others. What strings contain is no span: it is said apart.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from vestnik.matching.single.codes import (
    FALSE,
    GREATEST,
    LIST,
    MAP,
    MISSING,
    NULL,
    NUMBERS,
    STRINGS,
    TRUE,
    number_code,
    string_code,
)
from vestnik.matching.single.stems import beginning_of, content_of, ending_of
from vestnik.model.cuts import ALL_STRINGS, NumberCuts, StringCuts, after_prefix, complement, string_range
from vestnik.model.lists import ALL_LISTS
from vestnik.model.strings import StringSet
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_MISSING, FLAG_NULL, FLAG_TRUE, ValueSet

Span: TypeAlias = tuple[int, int]

FORWARD, BACKWARD, CONTENT = range(3)
"""The views of a path: what is there, the same with strings read backwards, and the bytes of a string."""

SURE, UNSURE_AT_ENDS, UNSURE, CONTAINS = range(4)
"""How sure spans are of their members. CONTAINS has instead of a span some bytes, as a number, and how many they are,
less than 0 where they are denied; what is no string passes."""
UNSETTLED = (UNSURE_AT_ENDS, UNSURE)

MOST_BYTES = 7
"""What CONTAINS can say."""

_ABSENT = (MISSING, NUMBERS - 1)
_SINGLES = (
    (FLAG_NULL, (NULL, NULL + 1)),
    (FLAG_FALSE, (FALSE, FALSE + 1)),
    (FLAG_TRUE, (TRUE, TRUE + 1)),
    (FLAG_MAP, (MAP, MAP + 1)),
)
_NUMBERS_END = NULL - 1
_LISTS = (LIST, STRINGS - 1)
_STARTS = {NUMBERS, NULL, FALSE, TRUE, MAP, LIST, STRINGS}
"""Where a kind begins: there spans may be joined, for no doubt is lost."""


class Spans(NamedTuple):
    """`spans` in order over one view of a path. How sure they are: see the constants."""

    view: int
    spans: list[Span]
    doubt: int

    @property
    def width(self) -> int:
        """How much of the line they take, as a power of two: a guess at how many values pass."""
        if self.doubt == CONTAINS:
            return WIDEST
        return (self.spans[-1][1] - self.spans[0][0]).bit_length()


WIDEST = 65

EVERYTHING = Spans(FORWARD, [(MISSING, GREATEST)], UNSURE)
"""What codes know about a constraint of an added kind."""


def spans_of(values: ValueSet) -> list[Spans]:
    """What holds together of the members of a set that is not empty."""
    strings = values.strings
    if not (values.flags or values.lists):
        if not strings:
            return [Spans(FORWARD, *_numbers(values.numbers))]
        if not values.numbers and strings.automaton is None:
            return [Spans(FORWARD, *_strings(strings.cuts))]
    view, cuts, doubt, *apart = _view(strings)
    numbers, doubt_of_numbers = _numbers(values.numbers)
    texts, doubt_of_strings = _strings(cuts)
    spans = [_ABSENT, *numbers] if values.flags & FLAG_MISSING else numbers
    spans += [span for flag, span in _SINGLES if values.flags & flag]
    if values.lists:
        spans.append(_LISTS)
        if values.lists != ALL_LISTS:
            doubt = UNSURE
    spans += texts
    return [Spans(view, _joined(spans), max(doubt, doubt_of_numbers, doubt_of_strings)), *apart]


def _view(strings: StringSet) -> tuple[int, StringCuts, int, *tuple[Spans, ...]]:
    """How to look at a set of strings, cuts that hold all of it, whether there is doubt, and what is said apart."""
    if strings.automaton is None:
        return FORWARD, strings.cuts, SURE
    ending = ending_of(strings)
    if ending is not None:
        text, denied = ending
        cuts = _starting_with(text[::-1])
        return BACKWARD, complement(cuts, "") if denied else cuts, SURE
    content = content_of(strings)
    if content is not None:
        text, denied = content
        data = text.encode()
        if len(data) <= MOST_BYTES:
            size = -len(data) if denied else len(data)
            return FORWARD, ALL_STRINGS, SURE, Spans(CONTENT, [(int.from_bytes(data, "big"), size)], CONTAINS)
    return FORWARD, _starting_with(beginning_of(strings.automaton)), UNSURE


def _starting_with(text: str) -> StringCuts:
    return string_range(text, after_prefix(text))


def _numbers(cuts: NumberCuts) -> tuple[list[Span], int]:
    return _between([(number_code(value), side) for value, side in cuts], _NUMBERS_END)


def _strings(cuts: StringCuts) -> tuple[list[Span], int]:
    """A cut after a string is the string with U+0000 behind it."""
    sides = [(string_code(cut[:-1]), 1) if cut[-1:] == "\0" else (string_code(cut), 0) for cut in cuts]
    return _between(sides, GREATEST)


def _between(cuts: list[tuple[int, int]], last: int) -> tuple[list[Span], int]:
    """The spans from cut to cut, to `last` where no cut is left. A cut lies before (0) or after (1) a code."""
    if len(cuts) == 2:
        (low, after_low), (high, after_high) = cuts
        if not (low | high) & 1:
            return [(low + after_low, high + after_high - 1)], SURE
    doubt = SURE
    ends: list[int] = []
    for code, side in cuts:
        if code & 1:
            doubt = UNSURE_AT_ENDS
            ends.append(code)
        else:
            ends.append(code + side - (len(ends) & 1))
    if len(cuts) & 1:
        ends.append(last)
    return [span for span in zip(ends[::2], ends[1::2], strict=True) if span[0] <= span[1]], doubt


def _joined(spans: list[Span]) -> list[Span]:
    """Spans in order, those that go on into the next kind made one."""
    joined: list[Span] = []
    for low, high in spans:
        if joined and low in _STARTS and low == joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined
