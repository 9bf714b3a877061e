"""Values as integers on one line, in their order: what the scan compares.

Missing paths come first, then numbers, then single values, maps and lists, then strings. An even code stands for one
value. The odd code after it stands for all values up to the next even one, which 64 bits cannot tell apart: strings
that go on after seven bytes, integers between two doubles, numbers beyond 2**256 or nearer to zero than 2**-255.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf, nextafter
from struct import Struct
from typing import Any

from vestnik.model.cuts import Number

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
MISSING = LEAST
NUMBERS = LEAST + 2
NULL, FALSE, TRUE, MAP, LIST = range(0, 10, 2)
STRINGS = 1 << 62

_ZERO = -(1 << 62)
_BELOW_FIRST = (768 << 52) - 1
"""The bits of the last double below 2**-255. A double is numbered from there."""
_END = (1 << 61) - 8
"""The numbers of doubles are below."""
_BYTES = 7
_SHORT = 32
"""Strings shorter than this come again: their codes are remembered."""

_to_bytes = Struct(">d").pack
_to_bits: Callable[[bytes], tuple[int]] = Struct(">q").unpack


def number_code(value: Number) -> int:
    double = float(value)
    number = _to_bits(_to_bytes(double))[0] - _BELOW_FIRST
    if 0 < number < _END and double == value:
        return _ZERO + 2 * number
    return _unusual(double, value) if value else _ZERO


def _unusual(double: float, value: Number) -> int:
    """The code of a number that is negative, very large, very small, or no double."""
    if value == -inf:
        return NUMBERS
    if double > value:
        double = nextafter(double, -inf)
    size = _to_bits(_to_bytes(abs(double)))[0] - _BELOW_FIRST
    if 0 < size < _END:
        return _ZERO + 2 * (size if double > 0 else -size) + (double != value)
    if double >= 0:
        return _ZERO + 2 * (_END - 1 if size > 0 else 0) + 1
    return _ZERO - 2 * (_END if size > 0 else 1) + 1


def string_code(text: str) -> int:
    return _code_of_bytes(text.encode())


def string_codes(text: str) -> tuple[int, int, bytes]:
    """The code of a string, that of the string read backwards, and its bytes."""
    return _short_codes(text) if len(text) < _SHORT else _codes(text)


def _codes(text: str) -> tuple[int, int, bytes]:
    data = text.encode()
    return _code_of_bytes(data), _code_of_bytes(text[: -_BYTES - 2 : -1].encode()), data


_short_codes = lru_cache(4096)(_codes)


def _code_of_bytes(data: bytes) -> int:
    number = int.from_bytes(data[:_BYTES].ljust(_BYTES, b"\0"), "big")
    return STRINGS + 2 * number + (len(data) > _BYTES or data[-1:] == b"\0")


def code_of_other(value: Any) -> int:
    """The code of what is neither a number nor a string."""
    if value is None:
        return NULL
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    return LIST if isinstance(value, list) else MAP
