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

from vestnik.matching.single.cells import COARSE, FINE, Aspect, Cells
from vestnik.matching.single.paths import Paths
from vestnik.matching.single.rows import Row, aspect_at, aspects, has_literals, scan_unsure
from vestnik.model.spaces import Path
from vestnik.model.values import ValueSet

CAPACITY = 4096
"""Rows in a sieve: bounds the size of its integers, and so what it costs to change one of their bits."""
SMALLEST = 64
"""Rows that a new sieve has room for."""
LARGE = 512
"""Rows from which on fine cells are worth their room."""
GROWTH = 4
"""An axis asks for better cells when it has so many times the rows."""

_BITS = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]
_NOT_ZERO = re.compile(rb"[^\0]")
_DIGITS = bytes.maketrans(b"01", b"\0\1")

AxisKey: TypeAlias = tuple[Path, bool]
"""A path, and whether its strings are read backwards."""


class Axis:
    """A path of a sieve: its cells, and where in the table their integers begin."""

    __slots__ = ("cells", "planned", "rows", "start")

    def __init__(self, cells: Cells, start: int) -> None:
        self.cells = cells
        self.start = start
        self.rows = 0
        self.planned = SMALLEST  # rows after which to ask for better cells


class Sieve:
    """At most CAPACITY rows."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._rows: list[Row | None] = []
        self._ids: list[Hashable | None] = []  # of the rows, at hand without them
        self._places: dict[int, int] = {}  # by the identity of the row
        self._room = SMALLEST  # the upper half of an integer begins at this bit
        self._taken = 0  # bits of the rows that are there
        self._unsure = 0  # and of those that no cell decides, in the upper half
        self._axes: dict[AxisKey, Axis] = {}
        self._slots: list[int] = []  # of the axes, in their order
        self._starts: list[int] = []
        self._table: list[int] = []  # the integers of all cells of all axes

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
        for path, aspect in aspects(row):
            self._put(path, aspect, place)

    def remove(self, row: Row) -> None:
        place = self._places.pop(id(row))
        self._rows[place] = self._ids[place] = None
        while self._rows and self._rows[-1] is None:
            self._rows.pop()
            self._ids.pop()
        self._taken ^= 1 << place
        if has_literals(row):
            self._unsure ^= 1 << place + self._room
        for path, (backwards, values) in aspects(row):
            axis = self._axes[path, backwards]
            axis.rows -= 1
            self._flip(axis, values, place)
            if not axis.rows:
                self._drop((path, backwards))

    def _put(self, path: Path, aspect: Aspect, place: int) -> None:
        key = (path, aspect.backwards)
        axis = self._axes.get(key)
        if axis is None:
            axis = self._new_axis(key)
        axis.rows += 1
        self._flip(axis, aspect.values, place)
        if axis.rows > axis.planned:
            self._cut(key, axis)

    def _flip(self, axis: Axis, values: ValueSet, place: int) -> None:
        """Put a row in at an axis, or take it out again."""
        flips = 0, 1 << place, 1 << place + self._room  # by verdict
        verdicts = axis.cells.verdicts(values)
        here = slice(axis.start, axis.start + len(verdicts))
        pairs = zip(self._table[here], verdicts, strict=True)
        self._table[here] = [bits ^ flips[verdict] if verdict else bits for bits, verdict in pairs]

    def _new_axis(self, key: AxisKey) -> Axis:
        axis = self._axes[key] = Axis(self._paths.acquire_cells(*key, self._count()), len(self._table))
        self._table += [0] * len(axis.cells)
        self._slots.append(axis.cells.slot)
        self._starts.append(axis.start)
        return axis

    def _count(self) -> int:
        return FINE if len(self) > LARGE else COARSE

    def _drop(self, key: AxisKey) -> None:
        axis = self._axes.pop(key)
        size = len(axis.cells)
        del self._table[axis.start : axis.start + size]
        for other in self._axes.values():
            if other.start > axis.start:
                other.start -= size
        self._slots = [other.cells.slot for other in self._axes.values()]
        self._starts = [other.start for other in self._axes.values()]
        self._paths.release_cells(key[0], axis.cells)

    def _cut(self, key: AxisKey, old: Axis) -> None:
        """Give the rows of an axis new cells, if those it has are out of date."""
        old.planned = GROWTH * old.rows
        if old.cells.count == self._count() and not self._paths.is_stale(key[0], old.cells):
            return
        self._drop(key)
        axis = self._new_axis(key)
        axis.rows, axis.planned = old.rows, old.planned
        path, backwards = key
        for place, row in enumerate(self._rows):
            found = row and aspect_at(row, path)
            if found and found.backwards == backwards:
                self._flip(axis, found.values, place)

    def _double(self) -> None:
        """Make room for twice as many rows."""
        room = self._room
        lower = (1 << room) - 1
        self._table = [bits & lower | bits >> room << 2 * room for bits in self._table]
        self._unsure <<= room
        self._room = 2 * room

    def scan(self, values: list[Any]) -> list[Hashable]:
        """The ids of the rows that hold of an event's values."""
        verdict = self._unsure
        table = self._table
        for slot, start in zip(self._slots, self._starts, strict=True):
            verdict |= table[start + values[slot]]
        left = self._taken & ~verdict
        unsure = left & verdict >> self._room
        ids: list[Hashable] = self._at(left ^ unsure, self._ids)
        return ids + scan_unsure(self._at(unsure, self._rows), values) if unsure else ids

    def _at(self, bits: int, things: list[Any]) -> list[Any]:
        """The things at the places of `bits`."""
        if not bits:
            return []
        if bits.bit_count() * 16 > len(things):
            return list(compress(things, f"{bits:b}"[::-1].encode().translate(_DIGITS)))
        octets = bits.to_bytes(len(things) + 7 >> 3, "little")
        places = [found.start() for found in _NOT_ZERO.finditer(octets)]
        return [things[at << 3 | bit] for at in places for bit in _BITS[octets[at]]]
