"""Batches as columns of ranks, whatever they come as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.lines import Line, Ranks
from vestnik.model.spaces import DATA, EVENT, Path, walk
from vestnik.model.values import MISSING

if TYPE_CHECKING:
    from vestnik.model.events import Event


class Strings(NamedTuple):
    """The distinct strings of a column, in UTF-8 with offsets, and for each event which one it has (any for none)."""

    text: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]


class Columns(Protocol):
    """A batch of events, read path by path."""

    def __len__(self) -> int: ...

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        """The ranks at `path` of the events from `first` to before `last`."""
        ...

    def strings(self, path: Path, first: int, last: int) -> Strings:
        """The strings at `path`."""
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

    def strings(self, path: Path, first: int, last: int) -> Strings:
        return strings_of(self._column(path)[first:last])

    def value(self, path: Path, event: int) -> Any:
        return self._column(path)[event]


def strings_of(values: Sequence[Any]) -> Strings:
    """The strings among `values`; whatever is none counts as an empty one."""
    numbers: dict[str, int] = {"": 0}
    codes = [numbers.setdefault(value, len(numbers)) if type(value) is str else 0 for value in values]
    encoded = [text.encode() for text in numbers]
    offsets = np.cumsum([0, *map(len, encoded)])
    return Strings(np.frombuffer(b"".join(encoded), np.uint8), offsets, np.array(codes, np.int32))


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
