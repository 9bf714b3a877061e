"""The compiled index: immutable, for batches of events."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vestnik.errors import VestnikError
from vestnik.matching.arrow_batch import ArrowBatch
from vestnik.matching.build import build
from vestnik.matching.columns import Columns, event_columns
from vestnik.matching.documents import DocumentReader
from vestnik.matching.kernels import Texts, match_rows
from vestnik.matching.mapped import read_mapped, write_mapped
from vestnik.model.boxes import Box

if TYPE_CHECKING:
    import pyarrow as pa

    from vestnik.model.events import Event
    from vestnik.model.filters import Filter

LAYOUTS = ("event", "flat")
VALUES_AT_ONCE = 1 << 22
ANSWERS_AT_ONCE = 1 << 26
"""A batch goes through in slices of at most so many ranks, and so many answers of patterns to remember."""
BLOCK = 8192
"""Events matched together, cluster by cluster: their ranks stay in cache."""


_NO_COUNTS = np.zeros(0, np.int64)
_NO_ROOM = np.zeros(1, np.int32), np.zeros(1, np.int32)


class Pairs:
    """Who wants what: `events[i]` (a row of the batch) is matched by `filters[i]` (an index into `ids`).

    Each pair occurs once; they are in no particular order.
    """

    __slots__ = ("count", "events", "filters")

    def __init__(self, events: NDArray[np.int32], filters: NDArray[np.int32], count: int) -> None:
        self.events = events
        self.filters = filters
        self.count = count

    def __len__(self) -> int:
        return len(self.events)

    def by_event(self) -> list[NDArray[np.int32]]:
        """The filters of each event of the batch."""
        order = np.argsort(self.events, kind="stable")
        ends = np.cumsum(np.bincount(self.events, minlength=self.count))
        return np.split(self.filters[order], ends[:-1])


class CompiledFilters:
    """Filters compiled together by `compile_filters`. Picklable, and mappable from a file by `save` and `load`."""

    def __init__(self, filters: Iterable[tuple[Hashable, Filter]], layout: str) -> None:
        if layout not in LAYOUTS:
            raise VestnikError(f"the layout of batches is one of {', '.join(LAYOUTS)}, not {layout!r}")
        named = list(filters)
        self.ids: list[Any] = [name for name, _ in named]
        self.layout = layout
        built = build(f.region.boxes for _, f in named)
        self._tables, self._paths, self._lines = built.tables, built.paths, built.lines
        self._exact, self._exact_owner = built.exact, built.exact_owner
        self._pace = 8.0
        """Pairs an event that the last batch had: the room to reserve for the next."""
        self._doubtful = [owner for owner in set(self._exact_owner.values()) if len(named[owner][1].region.boxes) > 1]

    def __len__(self) -> int:
        return len(self.ids)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to a file that `load` maps into memory, shared between processes."""
        write_mapped(path, self)

    @staticmethod
    def load(path: str | PathLike[str]) -> CompiledFilters:
        """The index in a file of our own making; like a pickle, it is to be read only where it is trusted."""
        found = read_mapped(path)
        if not isinstance(found, CompiledFilters):
            raise VestnikError(f"{path} holds no compiled filters")
        return found

    def match_batch(self, batch: Sequence[Event] | pa.RecordBatch) -> Pairs:
        """All (event, filter) pairs that match."""
        return self._match(self._columns(batch))

    def count_batch(self, batch: Sequence[Event] | pa.RecordBatch) -> NDArray[np.int64]:
        """The number of filters that each event matches."""
        return self._count(self._columns(batch))

    def match_json(self, lines: bytes | str | Sequence[bytes | str]) -> Pairs:
        """As `match_batch` for JSON documents, a line each, of which only the paths in use are read.

        The documents are events as `Event.to_json` writes them (with `layout="flat"` their data alone) that have
        passed the door; one that is no JSON is refused with its line number.
        """
        return self._match(self._documents.read(lines))

    def count_json(self, lines: bytes | str | Sequence[bytes | str]) -> NDArray[np.int64]:
        """As `count_batch` for JSON documents."""
        return self._count(self._documents.read(lines))

    @cached_property
    def _documents(self) -> DocumentReader:
        opaque = [path for box in self._exact.values() for path, _, _ in box.literals]
        return DocumentReader([*self._paths, *opaque], self.layout)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_documents"}

    def _columns(self, batch: Any) -> Columns:
        if isinstance(batch, Sequence):
            return event_columns(batch)
        return ArrowBatch(batch, self.layout)

    def _match(self, columns: Columns) -> Pairs:
        room = 1024 + int(1.1 * self._pace * len(columns))
        events, owners, count = np.empty(room, np.int32), np.empty(room, np.int32), 0
        for first, rows, texts, at in self._blocks(columns):
            events, owners, count = match_rows(
                self._tables, rows, texts, at, first, _NO_COUNTS, events, owners, count
            )
        self._pace = count / max(1, len(columns))
        pairs = events[:count], owners[:count]
        if self._exact:
            pairs = self._settle(columns, *pairs)
        return Pairs(*pairs, len(columns))

    def _count(self, columns: Columns) -> NDArray[np.int64]:
        if self._exact:
            return np.bincount(self._match(columns).events, minlength=len(columns)).astype(np.int64)
        counts = np.zeros(len(columns), np.int64)
        for first, rows, texts, at in self._blocks(columns):
            match_rows(self._tables, rows, texts, at, first, counts[first : first + len(rows)], *_NO_ROOM, 0)
        return counts

    def _blocks(self, columns: Columns) -> Iterator[tuple[int, NDArray[np.int32], Texts, int]]:
        """The batch block by block: its first event, its ranks row by row, and the texts with the place in them."""
        patterns = len(self._tables.pattern_slot)
        slice_size = max(64, min(VALUES_AT_ONCE // max(1, len(self._paths)), ANSWERS_AT_ONCE // max(1, patterns)))
        for start in range(0, len(columns), slice_size):
            end = min(start + slice_size, len(columns))
            rows = np.zeros((end - start, max(1, len(self._paths))), np.int32)
            for slot, (path, line) in enumerate(zip(self._paths, self._lines, strict=True)):
                rows[:, slot] = columns.ranks(path, line, start, end)
            texts = self._texts(columns, start, end)
            for at in range(0, end - start, BLOCK):
                yield start + at, rows[at : at + BLOCK], texts, at

    def _texts(self, columns: Columns, start: int, end: int) -> Texts:
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
        at = np.array([0, *ends], np.int64)
        return Texts(np.concatenate(texts), at, codes, memo_at, np.zeros(memo_ends[-1], np.uint8))

    def _settle(self, columns: Columns, events: NDArray[np.int32], owners: NDArray[np.int32]) -> Any:
        """Decide the candidates, whose owner is ~box, by exact evaluation of what the kernels left open."""
        keep = np.ones(len(owners), bool)
        for i in np.flatnonzero(owners < 0).tolist():
            box = self._exact[~int(owners[i])]
            keep[i] = _holds(box, columns, int(events[i]))
            owners[i] = self._exact_owner[~int(owners[i])]
        events, owners = events[keep], owners[keep]
        keep = _first_of_each(events, owners, np.isin(owners, self._doubtful), len(self.ids))
        return events[keep], owners[keep]


def _holds(box: Box, columns: Columns, event: int) -> bool:
    return all(
        values.contains(columns.value(path, event)) for path, values in box.sets if values.lists
    ) and all(atom.matches(columns.value(path, event)) is holds for path, atom, holds in box.literals)


def _first_of_each(events: Any, owners: Any, doubtful: Any, filters: int) -> Any:
    """A mask that keeps one of each equal pair among the doubtful ones, and all others."""
    keep = ~doubtful
    where = np.flatnonzero(doubtful)
    _, first = np.unique(events[where].astype(np.int64) * filters + owners[where], return_index=True)
    keep[where[first]] = True
    return keep


def compile_filters(
    filters: Mapping[Any, Filter] | Iterable[tuple[Any, Filter]], *, layout: str = "event"
) -> CompiledFilters:
    """Compile filters by id. `layout="flat"`: the columns of a batch are the attributes of `data` themselves."""
    return CompiledFilters(filters.items() if isinstance(filters, Mapping) else filters, layout)
