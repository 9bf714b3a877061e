"""Marks: a byte for each of a row's spans, by which a bucket refuses most of its rows without looking at them.

Looking at a row costs what it takes to fetch a dozen objects from memory; a mark is one byte beside its neighbours.
The line of values of a slot is cut into six cells, and a span is marked with a run of cells around it. For an event, a table says of every mark whether the event's value is in that run, and `bytes.translate` applies it to the
whole bucket. Where the cells are cut changes the cost, never an answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from vestnik.matching.rows import Row, spans

COLUMNS = 4
"""Bytes of marks in a row. A slot belongs to one column, and of two spans in one column the first is marked."""
UNMARKED = 0
CELLS = 6
LAST = CELLS - 1
_RUNS = [(a, b) for a in range(CELLS) for b in range(a, CELLS) if b - a < 2 or (a == 0) != (b == LAST)]
_MARK_OF = {
    (a, b): min((d - c, i) for i, (c, d) in enumerate(_RUNS) if c <= a and b <= d)[1]
    for a in range(CELLS)
    for b in range(a, CELLS)
    if a > 0 or b < LAST
}
_INSIDE = [bytes(a <= cell <= b for a, b in _RUNS) for cell in range(CELLS)]
_NOWHERE = bytes(len(_RUNS))
_BLOCKS = 255 // len(_RUNS)

ENOUGH = 32
"""Ends of spans that a scale is made from."""
SAMPLE = 64
GROWTH = 64
"""A slot gets a new scale when it has so many times the users it had when the last was made."""


class Scale:
    """The cells of a slot, and the marks in its column that stand for runs of them."""

    __slots__ = ("block", "bounds", "column", "made_at", "rows", "slot")

    def __init__(self, slot: int, column: int, block: int, ends: list[Any], made_at: int) -> None:
        self.slot = slot
        self.column = column
        self.block = block
        self.bounds = [ends[len(ends) * i // CELLS] for i in range(1, CELLS)]
        self.made_at = made_at
        self.rows = 0

    def mark(self, low: Any, high: Any) -> int:
        run = (bisect_right(self.bounds, low), bisect_right(self.bounds, high))
        return 1 + self.block * len(_RUNS) + _MARK_OF[run] if run in _MARK_OF else UNMARKED


def _verdicts(scale: Scale | None, values: list[Any]) -> bytes:
    """For each mark of a scale, whether the event's value is in its run."""
    if scale is None:
        return _NOWHERE
    value = values[scale.slot]
    return _INSIDE[bisect_right(scale.bounds, value)] if value == value else _NOWHERE


class Marks:
    """The scales of all slots."""

    def __init__(self) -> None:
        self._columns: list[list[Scale | None]] = [[] for _ in range(COLUMNS)]  # by block
        self._current: dict[int, Scale] = {}
        self._samples: dict[int, list[Any]] = {}
        self._users: dict[int, int] = {}

    def acquire(self, row: Row) -> bytes:
        """The marks of a row, one in each column."""
        marks = bytearray(COLUMNS)
        for slot, low, high in spans(row):
            self._note(slot, low, high)
            scale = self._current.get(slot)
            if scale is not None and not marks[scale.column]:
                marks[scale.column] = mark = scale.mark(low, high)
                scale.rows += mark != UNMARKED
        return bytes(marks)

    def release(self, row: Row, marks: bytes) -> None:
        for column, mark in enumerate(marks):
            if mark != UNMARKED:
                scale = self._columns[column][(mark - 1) // len(_RUNS)]
                assert scale is not None
                scale.rows -= 1
                if not scale.rows and self._current.get(scale.slot) is not scale:
                    self._drop(scale)
        for slot, _, _ in spans(row):
            self._users[slot] -= 1
            if not self._users[slot]:
                self._forget(slot)

    def tables(self, values: list[Any]) -> list[bytes]:
        """For each column, what becomes of each mark: 1 where the event's value is in its run."""
        return [b"\1" + b"".join([_verdicts(scale, values) for scale in column]).ljust(255) for column in self._columns]

    def _note(self, slot: int, low: Any, high: Any) -> None:
        """Take a span into account, and make a scale of its slot where it is time."""
        users = self._users[slot] = self._users.get(slot, 0) + 1
        sample = self._samples.setdefault(slot, [])
        sample += [end for end in (low, high) if isinstance(end, str | int | float)]
        del sample[:-SAMPLE]
        scale = self._current.get(slot)
        if len(sample) >= ENOUGH and (scale is None or users > scale.made_at * GROWTH):
            self._make(slot, sorted(sample), users)

    def _make(self, slot: int, ends: list[Any], users: int) -> None:
        column = slot % COLUMNS
        scales = self._columns[column]
        block = scales.index(None) if None in scales else len(scales)
        if block == _BLOCKS:
            return
        if block == len(scales):
            scales.append(None)
        old = self._current.get(slot)
        scales[block] = self._current[slot] = Scale(slot, column, block, ends, users)
        if old is not None and not old.rows:
            self._drop(old)

    def _drop(self, scale: Scale) -> None:
        scales = self._columns[scale.column]
        scales[scale.block] = None
        while scales and scales[-1] is None:
            scales.pop()

    def _forget(self, slot: int) -> None:
        del self._users[slot], self._samples[slot]
        scale = self._current.pop(slot, None)
        if scale is not None:
            self._drop(scale)
