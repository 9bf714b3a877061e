"""Arrow record batches as columns of ranks.

An Arrow null is missing, and so are NaN and infinities, which no event can hold. Timestamps and dates are microseconds.
`data` is a struct or a map, or JSON text or msgpack, where null and missing differ and kinds may mix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.arrow_values import (
    as_element,
    is_encoded,
    is_json,
    is_list,
    is_text,
    read_document,
    read_rows,
    read_value,
    unknown_kind,
    whole_numbers,
)
from vestnik.matching.batch.columns import (
    DEFAULT_PRIORITY,
    WRONG_LAYOUT,
    Columns,
    Place,
    Strings,
    ranked,
    strings_of,
    value_elements,
)
from vestnik.matching.batch.documents import DocumentReader
from vestnik.matching.batch.kernels import FALSE_RANK, LIST_RANK, MAP_RANK, MISSING_RANK, NULL_RANK, TRUE_RANK
from vestnik.matching.batch.lines import Line, Ranks
from vestnik.model.spaces import DATA, Path, walk
from vestnik.model.values import MISSING

EXPECTED = frozenset({"type", DATA})
"""Columns of which a batch of events has one, if filters look at either."""


class ArrowColumns:
    """Columns that are Arrow arrays, lists of Python values where they were decoded, or None where there is nothing."""

    def __init__(self, count: int, resolve: Callable[[Path], pa.Array | list[Any] | None], place: Place) -> None:
        self._count = count
        self._resolve = resolve
        self._place = place
        self._resolved: dict[Path, pa.Array | list[Any] | None] = {}

    def __len__(self) -> int:
        return self._count

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        column = self._column(path)
        if column is None:
            return np.full(last - first, MISSING_RANK, np.int32)
        if isinstance(column, list):
            return ranked(column[first:last], line, path, lambda row: self._place(first + row))
        with _reading(path):
            return _ranks(column.slice(first, last - first), line)

    def strings(self, path: Path, first: int, last: int) -> Strings:
        column = self._column(path)
        if column is None:
            return strings_of([None] * (last - first))
        if isinstance(column, list):
            return strings_of(column[first:last])
        return _strings(column.slice(first, last - first))

    def elements(self, path: Path, first: int, last: int) -> tuple[NDArray[np.int64], Columns]:
        column = self._column(path)
        if isinstance(column, list):
            return value_elements(column[first:last], lambda row: self._place(first + row))
        if column is None or not is_list(column.type):
            return value_elements((), self._place)
        return _elements(column.slice(first, last - first), lambda row: self._place(first + row))

    def value(self, path: Path, event: int) -> Any:
        column = self._column(path)
        if column is None:
            return MISSING
        if isinstance(column, list):
            return column[event]
        with _reading(path):
            return read_value(column[event])

    def _column(self, path: Path) -> Any:
        if path not in self._resolved:
            with _reading(path):
                self._resolved[path] = self._resolve(path)
        return self._resolved[path]


class WithData:
    """Columns of the envelope, and those below data."""

    def __init__(self, envelope: Columns, data: Columns) -> None:
        self._envelope, self._data = envelope, data

    def __len__(self) -> int:
        return len(self._envelope)

    def _at(self, path: Path) -> Columns:
        return self._data if path[0] == DATA else self._envelope

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        return self._at(path).ranks(path, line, first, last)

    def strings(self, path: Path, first: int, last: int) -> Strings:
        return self._at(path).strings(path, first, last)

    def elements(self, path: Path, first: int, last: int) -> tuple[NDArray[np.int64], Columns]:
        return self._at(path).elements(path, first, last)

    def value(self, path: Path, event: int) -> Any:
        return self._at(path).value(path, event)


class ElementColumns(ArrowColumns):
    """Elements of lists. An element, at the empty path, cannot be missing: it is null."""

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        ranks = super().ranks(path, line, first, last)
        return ranks if path else np.where(ranks == MISSING_RANK, np.int32(NULL_RANK), ranks)

    def value(self, path: Path, event: int) -> Any:
        value = super().value(path, event)
        return value if path else as_element(value)


def arrow_columns(batch: pa.RecordBatch, layout: str, before: int = 0, reader: DocumentReader | None = None) -> Columns:
    """The columns of `batch`, which `before` rows come before.

    `layout` says whether its columns are those of events or of their data. With a `reader` for data alone, only the
    paths in use are read of data that is text, where each row is an object; else, and without it, all that is there.
    """

    def place(row: int) -> str:
        return f"row {before + row}"

    def column(name: str) -> pa.Array | None:
        at = _position(batch.schema, name)
        return None if at is None else _unfolded(batch.column(at))

    @cache
    def documents() -> list[Any]:
        return read_rows(column(DATA), read_document, place)

    def texts() -> Columns | None:
        data = column(DATA) if layout == "event" and reader is not None and reader.reads_data else None
        return reader.read_column(data, place) if reader and data is not None and is_text(data.type) else None

    def envelope(name: str) -> pa.Array | list[Any] | None:
        found = column(name) if layout == "event" else None
        return _priorities(found, batch.num_rows) if name == "priority" else _below(found, (), place)

    def resolve(path: Path) -> pa.Array | list[Any] | None:
        if layout == "event" and path[0] in EXPECTED and EXPECTED.isdisjoint(batch.schema.names):
            raise InvalidEvent(f"the batch has neither a type nor a data column; {WRONG_LAYOUT}")
        if path[0] != DATA:
            return envelope(path[0])
        if layout == "flat":
            return _below(column(path[1]), path[2:], place)
        data = column(DATA)
        if data is not None and is_encoded(data.type):
            return _walked(documents(), path[1:])
        if data is not None and not _holds_names(data.type):
            raise InvalidEvent(f"must be a struct, a map, JSON text or msgpack, not a column of {data.type}", DATA)
        return _below(data, path[1:], place)

    every, data = ArrowColumns(batch.num_rows, resolve, place), texts()
    return every if data is None else WithData(every, data)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever Arrow cannot do with the column at `path` is an InvalidEvent."""
    try:
        yield
    except pa.ArrowException as error:
        raise InvalidEvent(f"the column cannot be read: {error}", ".".join(path)) from error


def _elements(lists: pa.Array, place: Place) -> tuple[NDArray[np.int64], Columns]:
    """The elements of a list column, as `Columns.elements` gives them."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    elements = _unfolded(lists.flatten())
    owners = np.repeat(np.arange(len(lists)), lengths)

    def element_place(row: int) -> str:
        return place(int(owners[row]))

    return owners, ElementColumns(len(elements), lambda path: _below(elements, path, element_place), element_place)


def _below(column: pa.Array | None, names: Path, place: Place) -> pa.Array | list[Any] | None:
    """The column at `names` below `column`; None where it is missing throughout."""
    for depth, name in enumerate(names):
        if column is None:
            return None
        if is_json(column.type) or pa.types.is_map(column.type):
            return _walked(read_rows(column, read_value, place), names[depth:])
        at = _position(column.type, name) if pa.types.is_struct(column.type) else None
        column = None if at is None else _unfolded(pc.struct_field(column, [at]))
    return read_rows(column, read_value, place) if column is not None and is_json(column.type) else column


def _position(fields: pa.Schema | pa.StructType, name: str) -> int | None:
    """Where the field `name` is, if there is one; InvalidEvent where there are more."""
    found = fields.get_all_field_indices(name)
    if len(found) > 1:
        raise InvalidEvent(f"there are {len(found)} columns of this name", name)
    return found[0] if found else None


def _unfolded(column: pa.Array) -> pa.Array:
    """`column`, but lists, maps and structs that a dictionary holds are in their places."""
    folded = pa.types.is_dictionary(column.type) and pa.types.is_nested(column.type.value_type)
    return column.dictionary_decode() if folded else column


def _priorities(column: pa.Array | None, count: int) -> pa.Array:
    """Priorities, the default where none is given."""
    if column is None or pa.types.is_null(column.type):
        return pa.array(np.full(count, DEFAULT_PRIORITY, np.int64))
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        raise pa.ArrowTypeError(f"priorities are numbers, not {column.type}")
    return pc.if_else(pc.is_finite(column).fill_null(False), column, pa.scalar(DEFAULT_PRIORITY, column.type))


def _walked(values: list[Any], names: Path) -> list[Any]:
    return [walk(value, names) for value in values]


def _holds_names(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_null(kind))


def _strings(column: pa.Array) -> Strings:
    if not pa.types.is_dictionary(column.type):
        if not is_text(column.type):
            return strings_of([None] * len(column))
        column = column.dictionary_encode()
    if not is_text(column.type.value_type):
        return strings_of([None] * len(column))
    codes = column.indices.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
    distinct = column.dictionary.cast(pa.large_string()).fill_null("")
    text, offsets = _buffers(distinct)
    if len(distinct) == 0:
        return strings_of([None] * len(column))
    start, end = int(offsets[0]), int(offsets[-1])
    return Strings(text[start:end], offsets - start, codes)


def _buffers(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The text of a string column and the offsets of its rows."""
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    _, offsets, text = column.buffers()
    if offsets is None or len(column) == 0:
        return np.zeros(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    at = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8), at


def _ranks(column: pa.Array, line: Line) -> Ranks:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _dictionary_ranks(column, line)
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        ranks = _string_ranks(column, line)
    elif pa.types.is_floating(kind):
        values = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
        return np.where(np.isfinite(values), line.rank_floats(values), np.int32(MISSING_RANK))
    elif pa.types.is_boolean(kind):
        ranks = np.where(column.fill_null(False).to_numpy(zero_copy_only=False), TRUE_RANK, FALSE_RANK).astype(np.int32)
    elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        ranks = line.rank_ints(whole_numbers(column))
    else:
        ranks = np.full(len(column), _container(kind), np.int32)
    if column.null_count:
        ranks[column.is_null().to_numpy(zero_copy_only=False)] = MISSING_RANK
    return ranks


def _container(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return MAP_RANK
    if is_list(kind):
        return LIST_RANK
    if pa.types.is_null(kind):
        return MISSING_RANK
    raise unknown_kind(kind)


def _dictionary_ranks(column: pa.DictionaryArray, line: Line) -> Ranks:
    """Each value of the dictionary is ranked once; an index or a value may be null."""
    ranks = np.append(_ranks(column.dictionary, line), np.int32(MISSING_RANK))
    indices = column.indices.cast(pa.int64()).fill_null(len(ranks) - 1)
    at: NDArray[np.int64] = indices.to_numpy(zero_copy_only=False)
    return ranks[at]


def _string_ranks(column: pa.Array, line: Line) -> Ranks:
    points = line.points()
    if points is None:
        return line.rank_text(*_buffers(column))
    strings, ranks = points
    found = pc.index_in(column, value_set=pa.array(strings, column.type)).fill_null(len(strings))
    at: NDArray[np.int32] = found.to_numpy(zero_copy_only=False)
    return ranks[at]
