"""Many rows at once, by the bits of integers.

For each path that its rows have constraints on, a sieve has one integer for each cell of the path (see `cells`). It
says, one bit for each row, which rows refuse every value of the cell, and, in its upper half, which are unsure of it.
One `|` for each path then tells which rows an event satisfies for sure, and which few remain to be scanned.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from itertools import compress
from typing import Any, TypeAlias

from vestnik.matching.cells import Cells
from vestnik.matching.paths import Paths
from vestnik.matching.rows import Row, has_literals, open_sets, scan_unsure
from vestnik.model.spaces import Path
from vestnik.model.values import ValueSet

CAPACITY = 8192
"""Rows in a sieve: bounds the size of its integers, and so what it costs to change one of their bits."""
SMALLEST = 64
GROWTH = 4
"""An axis is cut into cells anew when it has so many times the rows."""

_BITS = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]
_NOT_ZERO = re.compile(rb"[^\0]")
_DIGITS = bytes.maketrans(b"01", b"\0\1")

Flips: TypeAlias = tuple[int, int, int]
"""The bits of a row for each verdict."""


class Axis:
    """One path of a sieve: its cells, and an integer for each."""

    __slots__ = ("bits", "cells", "planned", "rows")

    def __init__(self, cells: Cells, planned: int) -> None:
        self.cells = cells
        self.bits = [0] * len(cells)
        self.rows = 0
        self.planned = planned

    def flip(self, values: ValueSet, flips: Flips) -> None:
        """Put in a row, or take it out again."""
        verdicts = self.cells.verdicts(values)
        self.bits = [bits ^ flips[verdict] for bits, verdict in zip(self.bits, verdicts, strict=True)]


class Sieve:
    """At most CAPACITY rows."""

    __slots__ = ("_axes", "_ids", "_paths", "_places", "_room", "_rows", "_taken", "_unsure")

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._rows: list[Row | None] = []
        self._ids: list[Hashable | None] = []  # of the rows, at hand without them
        self._places: dict[int, int] = {}  # by the identity of the row
        self._room = SMALLEST  # the upper half of an integer begins at this bit
        self._taken = 0  # bits of the rows that are there
        self._unsure = 0  # and of those that no cell decides, in the upper half
        self._axes: dict[Path, Axis] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Row]:
        return (row for row in self._rows if row is not None)

    def __contains__(self, row: Row) -> bool:
        return id(row) in self._places

    def add(self, row: Row) -> None:
        place = (~self._taken & self._taken + 1).bit_length() - 1
        if place == len(self._rows):
            self._rows.append(None)
            self._ids.append(None)
            if place == self._room:
                self._double()
        self._rows[place] = row
        self._ids[place] = row[5]
        self._places[id(row)] = place
        self._taken ^= 1 << place
        if has_literals(row):
            self._unsure ^= 1 << place + self._room
        for path, values in open_sets(row):
            self._put(path, values, place)

    def remove(self, row: Row) -> None:
        place = self._places.pop(id(row))
        self._rows[place] = self._ids[place] = None
        while self._rows and self._rows[-1] is None:
            self._rows.pop()
            self._ids.pop()
        self._taken ^= 1 << place
        if has_literals(row):
            self._unsure ^= 1 << place + self._room
        for path, values in open_sets(row):
            axis = self._axes[path]
            axis.rows -= 1
            if axis.rows:
                axis.flip(values, self._flips(place))
            else:
                self._paths.release_cells(path, axis.cells)
                del self._axes[path]

    def _flips(self, place: int) -> Flips:
        return 0, 1 << place, 1 << place + self._room

    def _put(self, path: Path, values: ValueSet, place: int) -> None:
        axis = self._axes.get(path)
        if axis is None:
            axis = self._axes[path] = Axis(self._paths.acquire_cells(path, 0), SMALLEST)
        axis.rows += 1
        if axis.rows <= axis.planned:
            axis.flip(values, self._flips(place))
        else:
            self._cut(path, axis)

    def _cut(self, path: Path, old: Axis) -> None:
        """Give the rows of an axis new cells, made for as many as they are."""
        axis = self._axes[path] = Axis(self._paths.acquire_cells(path, old.rows), GROWTH * old.rows)
        axis.rows = old.rows
        for place, row in enumerate(self._rows):
            for at, values in open_sets(row) if row else ():
                if at == path:
                    axis.flip(values, self._flips(place))
        self._paths.release_cells(path, old.cells)

    def _double(self) -> None:
        """Make room for twice as many rows."""
        room = self._room
        lower = (1 << room) - 1
        for axis in self._axes.values():
            axis.bits = [bits & lower | bits >> room << 2 * room for bits in axis.bits]
        self._unsure <<= room
        self._room = 2 * room

    def scan(self, values: list[Any]) -> list[Hashable]:
        """The ids of the rows that hold of an event's values."""
        verdict = self._unsure
        for axis in self._axes.values():
            verdict |= axis.bits[values[axis.cells.slot]]
        left = self._taken & ~verdict
        if not left:
            return []
        unsure = left & verdict >> self._room
        ids: list[Hashable] = self._at(left ^ unsure, self._ids)
        return ids + scan_unsure(self._at(unsure, self._rows), values) if unsure else ids

    def _at(self, bits: int, things: list[Any]) -> list[Any]:
        """The things at the places of `bits`."""
        if bits.bit_count() * 16 > len(things):
            return list(compress(things, f"{bits:b}"[::-1].encode().translate(_DIGITS)))
        octets = bits.to_bytes(len(things) + 7 >> 3, "little")
        places = [found.start() for found in _NOT_ZERO.finditer(octets)]
        return [things[at << 3 | bit] for at in places for bit in _BITS[octets[at]]]
