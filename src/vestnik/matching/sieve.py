"""Many rows at once: for each axis, a row of bits for each cell of its values.

An axis is a slot that rows have a span on. Its line of values is cut into cells at quantiles of the ends of the spans;
each cell knows, as the bits of one integer, the rows that no value in it can satisfy. What an event leaves over is
found with one `|` for each axis, however many rows there are, and then scanned. The cells only decide which rows are
scanned: where they are cut changes the cost, never an answer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any

from vestnik.matching.rows import Row, spans

CAPACITY = 8192
"""Rows in a sieve: bounds the size of its integers, and so what it costs to change one of their bits."""
CELLS = 32
FEW = 8
"""An axis of fewer rows than this has one cell."""

_BITS = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]
_NOT_ZERO = re.compile(rb"[^\0]")
_DIGITS = bytes.maketrans(b"01", b"\0\1")


class Axis:
    """The rows with a span on one slot, by cell."""

    __slots__ = ("bounds", "cells", "planned", "rows")

    def __init__(self) -> None:
        self.rows = 0  # bits of all rows with a span here, which a value outside the order refuses
        self.bounds: list[Any] = []  # a cell holds what is at or above one bound and below the next
        self.cells = [0]  # bits of the rows that no value in the cell satisfies
        self.planned = FEW  # as many rows as the bounds are good for

    def flip(self, bit: int, low: Any, high: Any) -> None:
        """Put in the row `bit`, with its span, or take it out again."""
        self.rows ^= bit
        first, last = bisect_right(self.bounds, low), bisect_right(self.bounds, high) + 1
        cells = self.cells
        cells[:first] = [cell ^ bit for cell in cells[:first]]
        cells[last:] = [cell ^ bit for cell in cells[last:]]

    def cut(self, spans: list[tuple[int, Any, Any]]) -> None:
        """Choose new cells for all the rows of the axis, given as (bit, low, high)."""
        ends = sorted({end for _, low, high in spans for end in (low, high) if _is_bound(end)})
        step = max(1, len(ends) / CELLS)
        self.bounds = [ends[int(i * step)] for i in range(min(CELLS, len(ends)))]
        entering, leaving = [0] * (len(self.bounds) + 2), [0] * (len(self.bounds) + 2)
        for bit, low, high in spans:
            entering[bisect_right(self.bounds, low)] |= bit
            leaving[bisect_right(self.bounds, high) + 1] |= bit
        refused, self.cells = self.rows, []
        for enter, leave in zip(entering[:-1], leaving, strict=False):
            refused = (refused | leave) ^ enter
            self.cells.append(refused)
        self.planned = 2 * len(spans)


def _is_bound(end: Any) -> bool:
    return isinstance(end, str | int | float)


class Sieve:
    """At most CAPACITY rows."""

    __slots__ = ("_axes", "_bits", "_places", "_rows")

    def __init__(self) -> None:
        self._rows: list[Row | None] = []
        self._places: dict[int, int] = {}  # by the identity of the row
        self._bits = 0
        self._axes: dict[int, Axis] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Row]:
        return (row for row in self._rows if row is not None)

    def __contains__(self, row: Row) -> bool:
        return id(row) in self._places

    def add(self, row: Row) -> None:
        place = (~self._bits & self._bits + 1).bit_length() - 1
        if place == len(self._rows):
            self._rows.append(None)
        self._rows[place] = row
        self._places[id(row)] = place
        self._bits ^= 1 << place
        for slot, low, high in spans(row):
            axis = self._axes.setdefault(slot, Axis())
            axis.flip(1 << place, low, high)
            if axis.rows.bit_count() > axis.planned:
                axis.cut(self._spans_on(slot))

    def remove(self, row: Row) -> None:
        place = self._places.pop(id(row))
        self._rows[place] = None
        while self._rows and self._rows[-1] is None:
            self._rows.pop()
        self._bits ^= 1 << place
        for slot, low, high in spans(row):
            axis = self._axes[slot]
            axis.flip(1 << place, low, high)
            if not axis.rows:
                del self._axes[slot]

    def _spans_on(self, slot: int) -> list[tuple[int, Any, Any]]:
        return [
            (1 << place, low, high)
            for place, row in enumerate(self._rows)
            if row is not None
            for at, low, high in spans(row)
            if at == slot
        ]

    def candidates(self, values: list[Any]) -> Iterable[Any]:
        """The rows that the cells of an event's values leave over."""
        refused = 0
        for slot, axis in self._axes.items():
            value = values[slot]
            refused |= axis.cells[bisect_right(axis.bounds, value)] if value == value else axis.rows
        bits = self._bits & ~refused
        rows = self._rows
        if bits.bit_count() * 16 > len(rows):
            return compress(rows, f"{bits:b}"[::-1].encode().translate(_DIGITS))
        octets = bits.to_bytes(len(rows) + 7 >> 3, "little")
        places = [found.start() for found in _NOT_ZERO.finditer(octets)]
        return [rows[at << 3 | bit] for at in places for bit in _BITS[octets[at]]]
