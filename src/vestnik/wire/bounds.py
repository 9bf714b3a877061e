"""Bounds on the content of a message.

Bytes alone do not bound the cost of reading it: sixteen megabytes may be sixteen million values.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vestnik.errors import InvalidFrame
from vestnik.model.parser import OUTSIDE, Limits

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a message."""


class Bounds(NamedTuple):
    """What one side of a connection takes from the other; None is no bound.

    Messages of `largest` bytes, with `filters` within these limits; `events` in one Publish, and `values` in a message:
    numbers, strings, maps, lists and all else that data is made of.
    """

    largest: int = LARGEST
    filters: Limits | None = OUTSIDE
    events: int | None = None
    values: int | None = None


def values_in(packed: bytes, most: int) -> int:
    """Count the values in MessagePack data; stop above `most`.

    Invalid data is counted up to the place where it ends or breaks off.
    """
    count, left, _ = _walked(packed, 0, most)
    return count + left if count > most else count


def elements(packed: bytes) -> list[bytes]:
    """Return the elements of a packed list, at any depth of nesting. InvalidFrame if it is no list."""
    first = packed[0] if packed else 0
    at = 1 + _DIGITS.get(first, 0)
    if (not 0x90 <= first <= 0x9F and first not in _DIGITS) or at > len(packed):
        raise InvalidFrame("a list is expected")
    found: list[bytes] = []
    for _ in range(length_of(packed)):
        _, left, end = _walked(packed, at, len(packed))
        if left or end > len(packed):
            raise InvalidFrame("a list breaks off")
        found.append(packed[at:end])
        at = end
    return found


def _walked(packed: bytes, at: int, most: int) -> tuple[int, int, int]:
    """Skip the value at a place: return how many values were seen, how many are still to come, and the next place."""
    count = 0
    left = 1
    try:
        while left and count <= most:
            count += 1
            left -= 1
            first = packed[at]
            if first < 0x80 or first >= 0xE0:
                at += 1
            elif first < 0x90:
                left += 2 * (first & 0x0F)
                at += 1
            elif first < 0xA0:
                left += first & 0x0F
                at += 1
            elif first < 0xC0:
                at += 1 + (first & 0x1F)
            else:
                fixed, digits, each = _HEADS[first - 0xC0]
                said = int.from_bytes(packed[at + 1 : at + 1 + digits], "big")
                at += fixed
                if each:
                    left += each * said
                else:
                    at += said
    except IndexError:
        left += 1
    return count, left, at


_HEADS: Final = [
    *[(1, 0, 0)] * 4,  # nil, unused, false, true
    *[(1 + digits, digits, 0) for digits in (1, 2, 4)],  # bytes
    *[(2 + digits, digits, 0) for digits in (1, 2, 4)],  # extensions
    *[(1 + size, 0, 0) for size in (4, 8, 1, 2, 4, 8, 1, 2, 4, 8)],  # floats and integers
    *[(2 + size, 0, 0) for size in (1, 2, 4, 8, 16)],  # extensions of a fixed size
    *[(1 + digits, digits, 0) for digits in (1, 2, 4)],  # strings
    *[(1 + digits, digits, 1) for digits in (2, 4)],  # lists
    *[(1 + digits, digits, 2) for digits in (2, 4)],  # maps
]
"""By the first byte from 0xC0 on: bytes before the content, of them digits of a length, and values that it counts."""


_DIGITS: Final = {0xDC: 2, 0xDD: 4}
"""Digits of the length of a long list, by its first byte."""


def length_of(packed: bytes | memoryview) -> int:
    """Return the number of elements in the header of a packed list, or 0 if it is no list."""
    first = packed[0] if packed else 0
    if 0x90 <= first <= 0x9F:
        return first & 0x0F
    digits = _DIGITS.get(first, 0)
    return int.from_bytes(packed[1 : 1 + digits], "big")
