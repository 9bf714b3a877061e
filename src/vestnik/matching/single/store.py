"""Rows in flat memory: what the scan walks over.

A *record* is one box: its row and the number of its constraints, then each as a header (column, number of spans, doubt)
and the ends of its spans. A *head* stands for a record in a bucket: the coarse ends of its two narrowest constraints,
by which most are refused, and where the record is. Heads lie side by side in *blocks*. What is freed is used again.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from vestnik.matching.single.checks import Literal
from vestnik.matching.single.codes import GREATEST, LEAST
from vestnik.matching.single.spans import CONTAINS, Spans
from vestnik.model.values import ValueSet

HEAD = 8
"""Numbers in a head: column, low, high, the same again, the record, and one that fills up."""
RECORD = 6
COARSE = 32
"""Bits of a code that a head leaves out."""

PAGE = 128 * HEAD
"""Memory is taken in multiples of this."""
ROW = 16
"""Where in the first number of a record its row begins; the number of constraints is below."""
COLUMN, COUNT = 32, 2
"""Where in a header the column and the number of spans begin; doubt is below."""
TEXT_AT = 32
"""Where in the code of a string's content its place begins; its length is below."""
_ANYTHING = (0, LEAST >> COARSE, GREATEST >> COARSE)


class Constraint(NamedTuple):
    """What a record says about one column; `subject` settles it where the spans leave doubt."""

    column: int
    spans: Spans
    subject: ValueSet | Literal


class Block:
    """A run of heads, with room for more."""

    __slots__ = ("at", "room", "size")

    def __init__(self) -> None:
        self.at = self.size = self.room = 0


class Store:
    """The heads and records of an index."""

    def __init__(self) -> None:
        self.heads = array("i")
        self.records = array("q")
        self._heads_end = 0
        self._records_end = 0
        self._free_blocks: dict[int, list[int]] = {}
        self._free_records: dict[int, list[int]] = {}
        self.views: Any = None  # what the kernel keeps about the arrays that are there now

    def add_record(self, row: int, constraints: Sequence[Constraint]) -> int:
        """Write a record; where it is."""
        words = [row << ROW | len(constraints)]
        for column, (_, spans, doubt), _ in constraints:
            words.append(column << COLUMN | len(spans) << COUNT | doubt)
            for span in spans:
                words += span
        free = self._free_records.get(len(words))
        if free:
            at = free.pop()
        else:
            at, self._records_end = self._records_end, self._records_end + len(words)
            if self._records_end > len(self.records):
                self.records = _larger(self.records, self._records_end)
                self.views = None
        self.records[at : at + len(words)] = array("q", words)
        return at

    def remove_record(self, at: int) -> list[int]:
        """Free a record; the columns that it spoke of."""
        columns: list[int] = []
        words = 1
        for _ in range(self.records[at] & (1 << ROW) - 1):
            column, spans, _ = opened(self.records[at + words])
            columns.append(column)
            words += 1 + 2 * spans
        self._free_records.setdefault(words, []).append(at)
        return columns

    def add_head(self, block: Block, head: Sequence[int]) -> None:
        if block.size == block.room:
            self._move(block, 2 * block.room or 1)
        at = HEAD * (block.at + block.size)
        self.heads[at : at + HEAD] = array("i", head)
        block.size += 1

    def remove_head(self, block: Block, record: int) -> None:
        """Take out the head of a record: the last one comes into its place."""
        first = HEAD * block.at
        last = first + HEAD * (block.size - 1)
        place = first + HEAD * self.heads[first + RECORD : last + HEAD : HEAD].index(record)
        self.heads[place : place + HEAD] = self.heads[last : last + HEAD]
        block.size -= 1
        if 4 * block.size <= block.room:
            self._move(block, block.room // 2)

    def _move(self, block: Block, room: int) -> None:
        """Give a block another place, with `room`; none at all for 0."""
        old, size = HEAD * block.at, HEAD * block.size
        if block.room:
            self._free_blocks.setdefault(block.room, []).append(block.at)
        free = self._free_blocks.get(room)
        if free:
            block.at = free.pop()
        elif room:
            block.at, self._heads_end = self._heads_end, self._heads_end + room
            if HEAD * self._heads_end > len(self.heads):
                self.heads = _larger(self.heads, HEAD * self._heads_end)
                self.views = None
        block.room = room
        if size:
            new = HEAD * block.at
            self.heads[new : new + size] = self.heads[old : old + size]


def head(constraints: Sequence[Constraint], record: int) -> list[int]:
    """The head of a record, whose narrowest constraints come first."""
    words: list[int] = []
    for column, (_, spans, doubt), _ in constraints[:2]:
        if doubt != CONTAINS:
            words += (column, spans[0][0] >> COARSE, spans[-1][1] >> COARSE)
    while len(words) < RECORD:
        words += _ANYTHING
    return [*words, record, 0]


def opened(header: int) -> tuple[int, int, int]:
    """The column, the number of spans and the doubt that a header holds."""
    return header >> COLUMN, (header & (1 << COLUMN) - 1) >> COUNT, header & (1 << COUNT) - 1


def _larger(old: array[int], size: int) -> array[int]:
    pages = max(size, len(old) * 3 // 2) // PAGE + 1
    new = array(old.typecode, bytes(old.itemsize * PAGE * pages))
    new[: len(old)] = old
    return new
