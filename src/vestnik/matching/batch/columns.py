"""Batches as columns of ranks, whatever they come as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.lines import Line, Ranks
from vestnik.model.events import Event
from vestnik.model.frozen import MAX_INT, MIN_INT
from vestnik.model.spaces import DATA, EVENT, Path, walk
from vestnik.model.values import MISSING

_PLAIN = Event("plain", id="plain")
DEFAULT_SOURCE, DEFAULT_PRIORITY = _PLAIN.source, _PLAIN.priority
"""What an event has that says nothing else."""

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What decoders raise for text or bytes that they cannot read."""

WRONG_LAYOUT = "where it holds the attributes of data themselves, compile with layout='flat'"
"""What to do where a batch is not laid out as events."""

Place: TypeAlias = Callable[[int], str]
"""Says for messages where a row was read."""


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
    """Columns of Python values, each made by `read` when it is first needed; `place` says where a row was read."""

    def __init__(self, count: int, read: Callable[[Path], Sequence[Any]], place: Place) -> None:
        self._count = count
        self._read = read
        self._place = place
        self._columns: dict[Path, Sequence[Any]] = {}

    def __len__(self) -> int:
        return self._count

    def column(self, path: Path) -> Sequence[Any]:
        """The values at `path`."""
        if path not in self._columns:
            self._columns[path] = self._read(path)
        return self._columns[path]

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        return ranked(self.column(path)[first:last], line, path, lambda row: self._place(first + row))

    def strings(self, path: Path, first: int, last: int) -> Strings:
        return strings_of(self.column(path)[first:last])

    def elements(self, path: Path, first: int, last: int) -> tuple[NDArray[np.int64], Columns]:
        return value_elements(self.column(path)[first:last], lambda row: self._place(first + row))

    def value(self, path: Path, event: int) -> Any:
        return self.column(path)[event]


def ranked(values: Sequence[Any], line: Line, path: Path, place: Place) -> Ranks:
    """The ranks of `values`, which are at `path`; InvalidEvent for the first integer that no event can hold."""
    try:
        return line.rank_values(values)
    except OverflowError as error:
        row = next(row for row, value in enumerate(values) if type(value) is int and not MIN_INT <= value <= MAX_INT)
        raise InvalidEvent(f"an integer beyond 64 bits ({place(row)})", ".".join(path)) from error


def strings_of(values: Sequence[Any]) -> Strings:
    """The strings among `values`; whatever is none counts as an empty one."""
    texts = values if set(map(type, values)) == {str} else [one if type(one) is str else "" for one in values]
    found = pa.array(texts, pa.large_string()).dictionary_encode()
    _, offsets, text = found.dictionary.buffers()
    count = len(found.dictionary) + 1
    return Strings(
        np.frombuffer(text or b"", np.uint8), np.frombuffer(offsets, np.int64, count), found.indices.to_numpy()
    )


def event_columns(events: Sequence[Event]) -> ValueColumns:
    """The columns of a list of events."""
    data = [event.data for event in events]

    def read(path: Path) -> list[Any]:
        if path[0] == DATA:
            return _below(data, path[1:])
        return [EVENT.read(event, path) for event in events]

    return ValueColumns(len(events), read, "event {}".format)


def value_elements(values: Sequence[Any], place: Place) -> tuple[NDArray[np.int64], Columns]:
    """The elements of the lists among `values`, as `Columns.elements` gives them."""
    lists = [value if isinstance(value, list) else () for value in values]
    owners = np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), np.int64, len(lists)))
    elements = [element for inner in lists for element in inner]
    return owners, ValueColumns(
        len(elements), lambda path: _below(elements, path) if path else elements, lambda row: place(int(owners[row]))
    )


def _below(values: Sequence[Any], names: Path) -> list[Any]:
    if len(names) == 1:
        name = names[0]
        return [value.get(name, MISSING) if isinstance(value, dict) else MISSING for value in values]
    return [walk(value, names) for value in values]
