"""Batches as columns of ranks, whatever they come as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.lines import Line, Ranks
from vestnik.model.spaces import DATA, EVENT, Path, walk
from vestnik.model.values import MISSING

if TYPE_CHECKING:
    from vestnik.model.events import Event


class Columns(Protocol):
    """A batch of events, read path by path."""

    def __len__(self) -> int: ...

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        """The ranks at `path` of the events from `first` to before `last`."""
        ...

    def text(self, path: Path, first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The strings at `path` in UTF-8, and their offsets; empty where there is no string."""
        ...

    def value(self, path: Path, event: int) -> Any:
        """The value at `path` of one event, or MISSING."""
        ...


class ValueColumns:
    """Columns of Python values, each made by `read` when it is first needed."""

    def __init__(self, count: int, read: Callable[[Path], Sequence[Any]]) -> None:
        self._count = count
        self._read = read
        self._columns: dict[Path, Sequence[Any]] = {}

    def __len__(self) -> int:
        return self._count

    def _column(self, path: Path) -> Sequence[Any]:
        if path not in self._columns:
            self._columns[path] = self._read(path)
        return self._columns[path]

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        return line.rank_values(self._column(path)[first:last])

    def text(self, path: Path, first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return text_of(self._column(path)[first:last])

    def value(self, path: Path, event: int) -> Any:
        return self._column(path)[event]


def text_of(values: Sequence[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The strings among `values` in UTF-8, and the offsets of each value."""
    encoded = [value.encode() if type(value) is str else b"" for value in values]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)])


def event_columns(events: Sequence[Event]) -> ValueColumns:
    """The columns of a list of events."""

    def read(path: Path) -> list[Any]:
        if path[0] != DATA:
            return [EVENT.read(event, path) for event in events]
        if len(path) == 2:
            name = path[1]
            return [event.data.get(name, MISSING) for event in events]
        rest = path[1:]
        return [walk(event.data, rest) for event in events]

    return ValueColumns(len(events), read)
