"""Filters compiled together: immutable, for batches of events."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vestnik.errors import VestnikError
from vestnik.matching.batch.arrow import arrow_columns
from vestnik.matching.batch.columns import Columns, event_columns
from vestnik.matching.batch.documents import DocumentReader
from vestnik.matching.batch.engine import Engine
from vestnik.matching.batch.mapped import read_mapped, write_mapped
from vestnik.model.filters import Filter

if TYPE_CHECKING:
    from vestnik.model.events import Event

LAYOUTS = ("event", "flat")


class Pairs:
    """Who wants what: `events[i]` (a row of the batch) is matched by `filters[i]` (an index into `ids`).

    Each pair occurs once; they are in no particular order.
    """

    __slots__ = ("count", "events", "filters")

    def __init__(self, events: NDArray[np.int32], filters: NDArray[np.int32], count: int) -> None:
        self.events = events
        self.filters = filters
        self.count = count
        """The number of events in the batch."""

    def __len__(self) -> int:
        return len(self.events)

    def by_event(self) -> list[NDArray[np.int32]]:
        """The filters of each event of the batch."""
        order = np.argsort(self.events, kind="stable")
        ends = np.cumsum(np.bincount(self.events, minlength=self.count))
        return np.split(self.filters[order], ends)[: self.count]


class CompiledFilters:
    """Filters compiled by `compile_filters`. Picklable, and mappable from a file by `save` and `load`."""

    def __init__(self, filters: Iterable[tuple[Hashable, Filter]], layout: str) -> None:
        if layout not in LAYOUTS:
            raise VestnikError(f"the layout of batches is one of {', '.join(LAYOUTS)}, not {layout!r}")
        named = list(filters)
        for name, wanted in named:
            if not isinstance(wanted, Filter):
                raise VestnikError(f"{name!r} stands for {wanted!r}, which is no Filter: use Filter.parse")
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
        return self._index.count(self._columns(batch))

    def match_json(self, lines: bytes | str | Sequence[bytes | str]) -> Pairs:
        """As `match_batch` for JSON documents, a line each, of which only the paths in use are read.

        The documents are events as `Event.to_json` writes them (with `layout="flat"` their data alone) that have
        passed the door; one that cannot be read is refused with its line number.
        """
        found = [self._match(columns) for columns in self._documents.read(lines)]
        first = np.cumsum([0, *(pairs.count for pairs in found)])
        events = [pairs.events + np.int32(start) for pairs, start in zip(found, first[:-1], strict=True)]
        none = np.zeros(0, np.int32)
        filters = np.concatenate([none, *(pairs.filters for pairs in found)])
        return Pairs(np.concatenate([none, *events]), filters, int(first[-1]))

    def count_json(self, lines: bytes | str | Sequence[bytes | str]) -> NDArray[np.int64]:
        """As `count_batch` for JSON documents."""
        counts = [self._index.count(columns) for columns in self._documents.read(lines)]
        return np.concatenate([np.zeros(0, np.int64), *counts])

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

    def _columns(self, batch: Any) -> Columns:
        if isinstance(batch, pa.Table):
            batch = pa.RecordBatch.from_struct_array(batch.to_struct_array().combine_chunks())
        if isinstance(batch, pa.RecordBatch):
            return arrow_columns(batch, self.layout)
        return event_columns(list(batch))

    def _match(self, columns: Columns) -> Pairs:
        return Pairs(*self._index.match(columns), len(columns))

    @cached_property
    def _documents(self) -> DocumentReader:
        return DocumentReader(self._index.paths, self.layout)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_documents"}


def compile_filters(
    filters: Mapping[Any, Filter] | Iterable[tuple[Any, Filter]], *, layout: str = "event"
) -> CompiledFilters:
    """Compile filters by id. `layout="flat"`: the columns of a batch are the attributes of `data` themselves."""
    return CompiledFilters(filters.items() if isinstance(filters, Mapping) else filters, layout)
