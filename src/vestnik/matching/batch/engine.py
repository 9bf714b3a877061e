"""A compiled index over columns: which regions each event of a batch is in.

A list is a batch of its own: the element sets that list tests ask for are compiled into an index over elements, and
what it finds says for each event whether some or all of its elements are in a set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.batch.columns import Columns
from vestnik.matching.batch.filing import file_regions
from vestnik.matching.batch.kernels import Beside, match_rows
from vestnik.matching.batch.tables import make_tables
from vestnik.model.boxes import Box
from vestnik.model.lists import ListBox, ListSet
from vestnik.model.regions import Region
from vestnik.model.spaces import Path

VALUES_AT_ONCE = 1 << 22
ANSWERS_AT_ONCE = 1 << 26
"""A batch goes through in slices of at most so many ranks, and so many answers of patterns to remember."""
BLOCK = 8192
"""Events matched together, cluster by cluster: their ranks stay in cache."""

_NO_COUNTS = np.zeros(0, np.int64)
_NO_ROOM = np.zeros(1, np.int32), np.zeros(1, np.int32)


class Engine:
    """Regions of one space, numbered in their order, compiled together."""

    def __init__(self, regions: Sequence[Region]) -> None:
        filing = file_regions(regions)
        self._count = len(regions)
        self._paths, self._lines, self._exact = filing.paths, filing.lines, filing.exact
        self._tables = make_tables(filing)
        self._doubtful = [owner for _, owner in self._exact.values() if len(regions[owner].boxes) > 1]
        tests = list(filing.list_tests)
        self._lists = [ListTests(path, tests) for path in dict.fromkeys(path for path, _ in tests)]
        self._pace = 8.0
        """Pairs an event that the last batch had: the room to reserve for the next."""

    @property
    def paths(self) -> list[Path]:
        """The paths that are read."""
        return [*self._paths, *(path for box, _ in self._exact.values() for path, _, _ in box.literals)]

    def match(self, columns: Columns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Pairs of an event and a region that it is in, each once, in no particular order."""
        room = 1024 + int(1.1 * self._pace * len(columns))
        events, owners, count = np.empty(room, np.int32), np.empty(room, np.int32), 0
        for first, rows, beside, at in self._blocks(columns):
            events, owners, count = match_rows(self._tables, rows, beside, at, first, _NO_COUNTS, events, owners, count)
        self._pace = count / max(1, len(columns))
        return self._settle(columns, events[:count], owners[:count])

    def count(self, columns: Columns) -> NDArray[np.int64]:
        """The number of regions that each event is in."""
        if self._exact:
            return np.bincount(self.match(columns)[0], minlength=len(columns)).astype(np.int64)
        counts = np.zeros(len(columns), np.int64)
        for first, rows, beside, at in self._blocks(columns):
            match_rows(self._tables, rows, beside, at, first, counts[first : first + len(rows)], *_NO_ROOM, 0)
        return counts

    def _blocks(self, columns: Columns) -> Iterator[tuple[int, NDArray[np.int32], Beside, int]]:
        """The batch block by block: its first event, its ranks row by row, and what is beside with the place in it."""
        patterns = len(self._tables.pattern_slot)
        slice_size = max(64, min(VALUES_AT_ONCE // max(1, len(self._paths)), ANSWERS_AT_ONCE // max(1, patterns)))
        for start in range(0, len(columns), slice_size):
            end = min(start + slice_size, len(columns))
            rows = np.zeros((end - start, max(1, len(self._paths))), np.int32)
            for slot, (path, line) in enumerate(zip(self._paths, self._lines, strict=True)):
                rows[:, slot] = columns.ranks(path, line, start, end)
            beside = self._beside(columns, start, end)
            for at in range(0, end - start, BLOCK):
                yield start + at, rows[at : at + BLOCK], beside, at

    def _beside(self, columns: Columns, start: int, end: int) -> Beside:
        slots = np.flatnonzero(self._tables.text_slot >= 0).tolist()
        texts, ends, codes, sizes = [np.zeros(1, np.uint8)], [1], np.zeros((len(slots), end - start), np.int32), {}
        base = 1
        for row, slot in enumerate(slots):
            strings = columns.strings(self._paths[slot], start, end)
            codes[row] = strings.codes + np.int32(len(ends))
            sizes[slot] = (len(ends), len(strings.offsets) - 1)
            ends += (strings.offsets[1:] + base).tolist()
            texts.append(strings.text)
            base += len(strings.text)
        patterns = self._tables.pattern_slot.tolist()
        memo_ends = np.cumsum([0, *(sizes[slot][1] for slot in patterns)])
        memo_at = memo_ends[:-1] - np.array([sizes[slot][0] for slot in patterns], np.int64)
        memo = np.zeros(memo_ends[-1], np.uint8)
        lists = np.zeros((sum(map(len, self._lists)), end - start), bool)
        for tests in self._lists:
            tests.answer(columns, start, end, lists)
        return Beside(np.concatenate(texts), np.array([0, *ends], np.int64), codes, memo_at, memo, lists)

    def _settle(
        self, columns: Columns, events: NDArray[np.int32], owners: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Decide the candidates, whose owner is ~box, by exact evaluation of what the kernels left open."""
        if not self._exact:
            return events, owners
        keep = np.ones(len(owners), bool)
        for i in np.flatnonzero(owners < 0).tolist():
            box, owners[i] = self._exact[~int(owners[i])]
            keep[i] = _literals_hold(box, columns, int(events[i]))
        events, owners = events[keep], owners[keep]
        keep = _first_of_each(events, owners, np.isin(owners, self._doubtful), self._count)
        return events[keep], owners[keep]


class ListTests:
    """The list tests at one path, among all those of an index."""

    def __init__(self, path: Path, tests: list[tuple[Path, ListSet]]) -> None:
        self._path = path
        mine = [(number, boxes) for number, (at, boxes) in enumerate(tests) if at == path]
        numbers: dict[Region, int] = {}
        for _, boxes in mine:
            for box in boxes:
                for region in (*box.some, *(() if box.every is None else (box.every,))):
                    numbers.setdefault(region, len(numbers))
        self._plans = [(number, [_plan(box, numbers) for box in boxes]) for number, boxes in mine]
        self._elements = Engine(list(numbers))

    def __len__(self) -> int:
        return len(self._plans)

    def answer(self, columns: Columns, start: int, end: int, out: NDArray[np.bool_]) -> None:
        """Write for each test, in its row, which of the lists pass."""
        events, elements = columns.elements(self._path, start, end)
        found, regions = self._elements.match(elements)
        sizes = np.bincount(events, minlength=end - start)
        hits = np.zeros((self._elements._count, end - start), np.int64)
        np.add.at(hits, (regions, events[found]), 1)
        for number, boxes in self._plans:
            for every, some in boxes:
                passes = hits[every] == sizes if every >= 0 else np.ones(end - start, bool)
                for region in some:
                    passes = passes & (hits[region] > 0)
                out[number] |= passes


def _plan(box: ListBox, numbers: dict[Region, int]) -> tuple[int, list[int]]:
    """The numbers of the region that every element must be in, or -1, and of those that some must be in."""
    return -1 if box.every is None else numbers[box.every], [numbers[some] for some in box.some]


def _literals_hold(box: Box, columns: Columns, event: int) -> bool:
    return all(atom.matches(columns.value(path, event)) is holds for path, atom, holds in box.literals)


def _first_of_each(events: Any, owners: Any, doubtful: Any, count: int) -> Any:
    """A mask that keeps one of each equal pair among the doubtful ones, and all others."""
    keep = ~doubtful
    where = np.flatnonzero(doubtful)
    _, first = np.unique(events[where].astype(np.int64) * count + owners[where], return_index=True)
    keep[where[first]] = True
    return keep
