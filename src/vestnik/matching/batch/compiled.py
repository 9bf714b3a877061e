"""Filters compiled together: immutable, for batches of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vestnik.errors import InvalidIndex
from vestnik.matching.batch.arrow import arrow_columns
from vestnik.matching.batch.columns import Columns, event_columns
from vestnik.matching.batch.documents import DocumentReader
from vestnik.matching.batch.engine import Engine
from vestnik.matching.batch.mapped import read_mapped, write_mapped
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import Path

LAYOUTS = ("event", "flat")


class Pairs:
    """Who wants what: `events[i]` (a row of the batch) is matched by `filters[i]` (an index into `ids`).

    Each pair occurs once; they are in no particular order.
    """

    __slots__ = ("event_count", "events", "filters")

    def __init__(self, events: NDArray[np.int32], filters: NDArray[np.int32], event_count: int) -> None:
        self.events = events
        self.filters = filters
        self.event_count = event_count
        """The number of events in the batch, matched or not."""

    def __len__(self) -> int:
        return len(self.events)

    def by_event(self) -> list[NDArray[np.int32]]:
        """The filters of each event of the batch."""
        order = np.argsort(self.events, kind="stable")
        ends = np.cumsum(np.bincount(self.events, minlength=self.event_count))
        return np.split(self.filters[order], ends)[: self.event_count]


class CompiledFilters:
    """Filters compiled by `compile_filters`. Picklable, and mappable from a file by `save` and `load`."""

    def __init__(self, filters: Mapping[Any, Filter] | Iterable[tuple[Any, Filter]], layout: str) -> None:
        if layout not in LAYOUTS:
            raise ValueError(f"the layout of batches is one of {', '.join(LAYOUTS)}, not {layout!r}")
        named = _named(filters)
        self.ids: list[Any] = [name for name, _ in named]
        self.layout = layout
        self._index = Engine([wanted.region for _, wanted in named])

    def __len__(self) -> int:
        return len(self.ids)

    def match_batch(self, batch: Iterable[Event] | pa.RecordBatch | pa.Table) -> Pairs:
        """All (event, filter) pairs that match."""
        return self._match(self._columns(batch))

    def count_batch(self, batch: Iterable[Event] | pa.RecordBatch | pa.Table) -> NDArray[np.int64]:
        """The number of filters that each event matches."""
        return self._count(self._columns(batch))

    def match_json(self, lines: bytes | str | Sequence[bytes | str]) -> Pairs:
        """As `match_batch` for JSON documents, a line each, of which only the paths in use are read.

        The documents are events as `Event.to_json` writes them (with `layout="flat"` their data alone) that have
        passed the door; one that cannot be read is refused with its line number.
        """
        return self._match(self._documents.read(lines))

    def count_json(self, lines: bytes | str | Sequence[bytes | str]) -> NDArray[np.int64]:
        """As `count_batch` for JSON documents."""
        return self._count(self._documents.read(lines))

    def match_columns(self, columns: Columns) -> Pairs:
        """As `match_batch` for what was read as columns already, of the `paths` at least."""
        return self._match([columns])

    def count_columns(self, columns: Columns) -> NDArray[np.int64]:
        """As `count_batch` for what was read as columns already."""
        return self._count([columns])

    @property
    def paths(self) -> list[Path]:
        """The paths of events that are read."""
        return self._index.paths

    def ids_by_event(self, pairs: Pairs) -> list[list[Any]]:
        """`pairs.by_event()` with the ids of filters."""
        return [[self.ids[number] for number in numbers.tolist()] for numbers in pairs.by_event()]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to a file that `load` maps into memory, shared between processes."""
        write_mapped(path, self)

    @staticmethod
    def load(path: str | PathLike[str]) -> CompiledFilters:
        """The index in a file of our own making; like a pickle, it is to be read only where it is trusted."""
        found = read_mapped(path)
        if not isinstance(found, CompiledFilters):
            raise InvalidIndex(path, "holds no compiled filters")
        return found

    def _columns(self, batch: Any) -> Iterator[Columns]:
        """The columns of `batch`, in one or more parts that follow each other."""
        if isinstance(batch, pa.Table | pa.RecordBatch):
            before = 0
            for part in batch.to_batches() if isinstance(batch, pa.Table) else (batch,):
                yield arrow_columns(part, self.layout, before, self._rows)
                before += part.num_rows
        else:
            yield event_columns(_events(batch))

    def _match(self, parts: Iterable[Columns]) -> Pairs:
        found = [Pairs(*self._index.match(columns), len(columns)) for columns in parts]
        return found[0] if len(found) == 1 else _joined(found)

    def _count(self, parts: Iterable[Columns]) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(0, np.int64), *(self._index.count(columns) for columns in parts)])

    @cached_property
    def _documents(self) -> DocumentReader:
        return DocumentReader(self._index.paths, self.layout)

    @cached_property
    def _rows(self) -> DocumentReader:
        return DocumentReader(self._index.paths, "flat")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_documents", "_rows")}


def compile_filters(
    filters: Mapping[Any, Filter] | Iterable[tuple[Any, Filter]], *, layout: str = "event"
) -> CompiledFilters:
    """Compile filters by id. `layout="flat"`: the columns of a batch are the attributes of `data` themselves."""
    return CompiledFilters(filters, layout)


def _named(filters: Any) -> list[tuple[Any, Filter]]:
    """The ids and filters; TypeError where they are none."""
    pairs = filters.items() if isinstance(filters, Mapping) else filters
    named = list(pairs) if isinstance(pairs, Iterable) else [pairs]
    for pair in named:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("filters are given as a mapping of ids to filters, or as pairs of an id and a filter")
        name, wanted = pair
        if not isinstance(wanted, Filter):
            raise TypeError(f"{name!r} stands for {wanted!r}, which is no Filter: use Filter.parse")
    return named


def _events(batch: Any) -> list[Event]:
    """The events of `batch`; TypeError where it is none, or holds something else."""
    if not isinstance(batch, Iterable):
        raise TypeError(f"a batch is a list of Events, not one {type(batch).__name__}")
    events = list(batch)
    for event in events:
        if not isinstance(event, Event):
            kind = type(event).__name__
            raise TypeError(f"a batch is of Events, a pyarrow.RecordBatch or a pyarrow.Table, not of {kind}")
    return events


def _joined(found: list[Pairs]) -> Pairs:
    """The pairs of parts that follow each other, as those of one batch."""
    first = np.cumsum([0, *(pairs.event_count for pairs in found)])
    none = np.zeros(0, np.int32)
    events = [pairs.events + np.int32(start) for pairs, start in zip(found, first[:-1], strict=True)]
    filters = [pairs.filters for pairs in found]
    return Pairs(np.concatenate([none, *events]), np.concatenate([none, *filters]), int(first[-1]))
