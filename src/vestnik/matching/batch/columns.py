"""Batches as columns of ranks, whatever they come as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.batch.lines import Line, Ranks
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

    def elements(self, path: Path, first: int, last: int) -> tuple[NDArray[np.int64], Columns]:
        """The lists at `path`: for each element which event, from `first` on, it belongs to, and the elements."""
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

    def elements(self, path: Path, first: int, last: int) -> tuple[NDArray[np.int64], Columns]:
        lists = [value if isinstance(value, list) else () for value in self._column(path)[first:last]]
        owners = np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), np.int64, len(lists)))
        return owners, element_columns([element for values in lists for element in values])

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
    data = [event.data for event in events]

    def read(path: Path) -> list[Any]:
        if path[0] == DATA:
            return _below(data, path[1:])
        return [EVENT.read(event, path) for event in events]

    return ValueColumns(len(events), read)


def element_columns(elements: list[Any]) -> ValueColumns:
    """The columns of elements of lists; the empty path is the element itself."""
    return ValueColumns(len(elements), lambda path: _below(elements, path) if path else elements)


def _below(values: Sequence[Any], names: Path) -> list[Any]:
    if len(names) == 1:
        name = names[0]
        return [value.get(name, MISSING) if isinstance(value, dict) else MISSING for value in values]
    return [walk(value, names) for value in values]
