"""Regular expressions over MessagePack: for a set of values, one that matches how each value in it may be packed.

An expression may match more: what it finds is looked at again. It never matches less, whichever of its forms a packer
has chosen for a value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from vestnik.model.cuts import NumberCut, NumberCuts, intervals
from vestnik.model.strings import StringSet

ANY_STRING: Final = rb"[\xa0-\xbf\xd9-\xdb]"
ANY_NUMBER: Final = rb"[\x00-\x7f\xe0-\xff\xca-\xd3]"
ANY_LIST: Final = rb"[\x90-\x9f\xdc\xdd]"
ANY_MAP: Final = rb"[\x80-\x8f\xde\xdf]"
NULL, FALSE, TRUE = rb"\xc0", rb"\xc2", rb"\xc3"

MOST_INTERVALS: Final = 32
"""Intervals of numbers that are told apart. More of them are taken for one, from the lowest to the highest."""
UNSIGNED: Final = ((rb"\xcc", 1), (rb"\xcd", 2), (rb"\xce", 4), (rb"\xcf", 8))
SIGNED: Final = ((rb"\xd0", 1), (rb"\xd1", 2), (rb"\xd2", 4), (rb"\xd3", 8))
SHORT_FLOAT: Final = rb"\xca.{4}"
LONG_FLOAT: Final = rb"\xcb"
LOWEST, HIGHEST = -(1 << 63), (1 << 64) - 1


def one_of(expressions: Iterable[bytes]) -> bytes:
    """Return an expression that matches what any of some does. There is at least one."""
    first, *others = dict.fromkeys(expressions)
    return b"(?:" + b"|".join([first, *others]) + b")" if others else first


def exactly(data: bytes) -> bytes:
    return b"".join([b"\\x%02x" % byte for byte in data])


def between(low: bytes, high: bytes) -> bytes:
    """Match the strings of bytes from `low` to `high`, both included, which are equally long."""
    if low == high:
        return exactly(low)
    first, last, width = low[0], high[0], len(low) - 1
    if first == last:
        return exactly(low[:1]) + between(low[1:], high[1:])
    parts: list[bytes] = []
    if any(low[1:]):
        parts.append(exactly(low[:1]) + between(low[1:], b"\xff" * width))
        first += 1
    if any(byte != 0xFF for byte in high[1:]):
        parts.append(exactly(high[:1]) + between(bytes(width), high[1:]))
        last -= 1
    if first <= last:
        parts.append(b"[\\x%02x-\\x%02x]" % (first, last) + (b".{%d}" % width if width else b""))
    return one_of(parts)


# --- strings ---


def text(values: Sequence[str]) -> bytes:
    """Match any of some strings with its length before it."""
    packed = sorted([value.encode() for value in values], key=len)
    return one_of([_length(size) + _same_length(sorted(same)) for size, same in groupby(packed, key=len)])


def _length(size: int) -> bytes:
    forms = [(0xD9, 1), (0xDA, 2), (0xDB, 4)]
    long = [exactly(bytes([form]) + size.to_bytes(width, "big")) for form, width in forms if size < 1 << 8 * width]
    return one_of([*([exactly(bytes([0xA0 + size]))] if size < 32 else []), *long])


def _same_length(values: Sequence[bytes]) -> bytes:
    """Match any of some strings of bytes, which are sorted and equally long, looking at each byte once."""
    if len(values) == 1:
        return exactly(values[0])
    parts = []
    for first, same in groupby(values, key=lambda value: value[:1]):
        parts.append(exactly(first) + _same_length([value[1:] for value in same]))
    return one_of(parts)


def prefix(low: str, high: str | None) -> tuple[bytes, bytes]:
    """Return what all strings from `low` on and before `high` begin with, and an expression for the byte after it."""
    first, last = low.encode(errors="surrogatepass"), b"\xff" if high is None else high.encode(errors="surrogatepass")
    size = next((n for n, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    if size == len(first):
        return first, b""
    end = last[size] - (len(last) == size + 1)
    return first[:size], b"[\\x%02x-\\x%02x]" % (first[size], end)


def strings(found: StringSet) -> bytes:
    """Match the packed strings of a set."""
    if found.points is not None:
        return text(found.points)
    if found.automaton is not None:
        return ANY_STRING
    starts = [prefix(low, high) for low, high in intervals(found.cuts)]
    if not all(start or after for start, after in starts):
        return ANY_STRING
    return rb"(?:[\xa0-\xbf]|\xd9.|\xda..|\xdb....)" + one_of([exactly(start) + after for start, after in starts])


# --- numbers ---


def numbers(cuts: NumberCuts) -> bytes:
    """Match the packed numbers of a set."""
    spans = intervals(cuts)
    if len(spans) > MOST_INTERVALS:
        spans = [(spans[0][0], spans[-1][1])]
    return one_of([part for low, high in spans for part in _numbers(low, high)])


def _numbers(low: NumberCut, high: NumberCut | None) -> list[bytes]:
    """Match the numbers between two cuts in any of their forms."""
    least, most = low[0], math.inf if high is None else high[0]
    first = LOWEST if least == -math.inf else max(LOWEST, math.ceil(least))
    last = HIGHEST if most == math.inf else min(HIGHEST, math.floor(most))
    parts = [SHORT_FLOAT, *_floats(float(least), float(most))]
    if max(first, 0) <= min(last, 0x7F):
        parts.append(between(bytes([max(first, 0)]), bytes([min(last, 0x7F)])))
    if max(first, -32) <= min(last, -1):
        parts.append(between(bytes([256 + max(first, -32)]), bytes([256 + min(last, -1)])))
    for form, width in UNSIGNED:
        parts += _integers(form, width, max(first, 0), min(last, (1 << 8 * width) - 1))
    for form, width in SIGNED:
        half = 1 << 8 * width - 1
        parts += _integers(form, width, max(first, 0), min(last, half - 1))
        parts += _integers(form, width, max(first, -half), min(last, -1))
    return parts


def _integers(form: bytes, width: int, first: int, last: int) -> list[bytes]:
    """Match integers of one form and sign."""
    if first > last:
        return []
    mask = (1 << 8 * width) - 1
    return [form + between((first & mask).to_bytes(width, "big"), (last & mask).to_bytes(width, "big"))]


def _floats(low: float, high: float) -> list[bytes]:
    """Match doubles: those above zero are packed in their order, those below in the reverse.

    A bound that is no double may have been rounded to either side: there is no other double between.
    """
    parts = []
    if high >= 0:
        first, last = low if low > 0 else 0.0, high if high > 0 else 0.0
        parts.append(LONG_FLOAT + between(struct.pack(">d", first), struct.pack(">d", last)))
    if low <= 0:
        first, last = high if high < 0 else -0.0, low if low < 0 else -0.0
        parts.append(LONG_FLOAT + between(struct.pack(">d", first), struct.pack(">d", last)))
    return parts
