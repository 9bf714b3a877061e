"""Arrow record batches as columns of ranks.

An Arrow null is missing, and so are NaN and infinities, which no event can hold. Timestamps and dates are microseconds.
`data` is a struct, or JSON text or msgpack, where null and missing differ and kinds may mix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.columns import Columns, Strings, ValueColumns, element_columns, strings_of
from vestnik.matching.batch.kernels import FALSE_RANK, LIST_RANK, MAP_RANK, MISSING_RANK, TRUE_RANK
from vestnik.matching.batch.lines import Line, Ranks
from vestnik.model.spaces import DATA, Path, walk
from vestnik.model.values import MISSING

DEFAULT_PRIORITY = 4


class ArrowColumns:
    """Columns that are Arrow arrays, lists of Python values where they were decoded, or None where there is nothing."""

    def __init__(self, count: int, resolve: Callable[[Path], pa.Array | list[Any] | None]) -> None:
        self._count = count
        self._resolve = resolve
        self._resolved: dict[Path, pa.Array | list[Any] | None] = {}

    def __len__(self) -> int:
        return self._count

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        column = self._column(path)
        if column is None:
            return np.full(last - first, MISSING_RANK, np.int32)
        if isinstance(column, list):
            return line.rank_values(column[first:last])
        try:
            return _ranks(column.slice(first, last - first), line)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidEvent(f"a column of type {column.type} cannot be read: {error}", ".".join(path)) from error

    def strings(self, path: Path, first: int, last: int) -> Strings:
        column = self._column(path)
        if column is None:
            return strings_of([None] * (last - first))
        if isinstance(column, list):
            return strings_of(column[first:last])
        return _strings(column.slice(first, last - first))

    def elements(self, path: Path, first: int, last: int) -> tuple[NDArray[np.int64], Columns]:
        column = self._column(path)
        if not isinstance(column, list) and column is not None and _is_list(column.type):
            return _elements(column.slice(first, last - first))
        values = column[first:last] if isinstance(column, list) else []
        return ValueColumns(len(values), lambda _: values).elements(path, 0, len(values))

    def value(self, path: Path, event: int) -> Any:
        column = self._column(path)
        if column is None:
            return MISSING
        return column[event] if isinstance(column, list) else _value(column[event])

    def _column(self, path: Path) -> Any:
        if path not in self._resolved:
            self._resolved[path] = self._resolve(path)
        return self._resolved[path]


def arrow_columns(batch: pa.RecordBatch, layout: str) -> ArrowColumns:
    """The columns of `batch`; `layout` says whether its columns are those of events or of their data."""

    def resolve(path: Path) -> pa.Array | list[Any] | None:
        if layout == "flat" and path[0] != DATA:
            return None
        names = path[1:] if layout == "flat" else path
        at = batch.schema.get_field_index(names[0])
        column = batch.column(at) if at >= 0 else None
        if path == ("priority",):
            return _with_default(column, batch.num_rows)
        if layout == "event" and path[0] == DATA and column is not None and not pa.types.is_struct(column.type):
            return _walked(_decoded(column), names[1:])
        return _below(column, names[1:])

    return ArrowColumns(batch.num_rows, resolve)


def _elements(lists: pa.Array) -> tuple[NDArray[np.int64], Columns]:
    """The elements of a list column; a null among them is null, since an element cannot be missing."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    elements = lists.flatten()
    owners = np.repeat(np.arange(len(lists)), lengths)
    if elements.null_count:
        return owners, element_columns([None if value is MISSING else value for value in _python(elements)])
    return owners, ArrowColumns(len(elements), lambda path: _below(elements, path))


def _below(column: pa.Array | None, names: Path) -> pa.Array | list[Any] | None:
    """The column at `names` below `column`; None where it is missing throughout."""
    for depth, name in enumerate(names):
        if column is None:
            return None
        if _is_json(column.type) or pa.types.is_map(column.type):
            return _walked(_python(column), names[depth:])
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
    return _python(column) if column is not None and _is_json(column.type) else column


def _with_default(column: pa.Array | None, count: int) -> pa.Array:
    if column is None:
        return pa.array(np.full(count, DEFAULT_PRIORITY, np.int64))
    return column.fill_null(DEFAULT_PRIORITY)


def _walked(values: list[Any], names: Path) -> list[Any]:
    return [walk(value, names) for value in values]


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.JsonType)


def _python(column: pa.Array) -> list[Any]:
    if _is_json(column.type):
        return _decoded(column.storage)
    return [_value(scalar) for scalar in column]


def _decoded(column: pa.Array) -> list[Any]:
    """The documents of a column of JSON text or msgpack bytes; a null is missing."""
    if _is_json(column.type):
        column = column.storage
    out = []
    for row, text in enumerate(column.to_pylist()):
        if text is None:
            out.append(MISSING)
            continue
        try:
            is_json = isinstance(text, str) or text[:1] in b'{[" \t\r\n' or not text
            out.append(msgspec.json.decode(text) if is_json else msgspec.msgpack.decode(text))
        except msgspec.DecodeError as error:
            raise InvalidEvent(f"row {row} is neither JSON nor msgpack: {error}", DATA) from error
    return out


def _value(scalar: pa.Scalar) -> Any:
    """An Arrow scalar as a value of an event, or MISSING."""
    if not scalar.is_valid:
        return MISSING
    kind = scalar.type
    if pa.types.is_temporal(kind):
        return scalar.cast(pa.timestamp("us")).value
    value = scalar.as_py()
    return _without_nulls(dict(value) if pa.types.is_map(kind) else value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _strings(column: pa.Array) -> Strings:
    if not pa.types.is_dictionary(column.type):
        if not _is_text(column.type):
            return strings_of([None] * len(column))
        column = column.dictionary_encode()
    if not _is_text(column.type.value_type):
        return strings_of([None] * len(column))
    codes = column.indices.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
    distinct = column.dictionary.cast(pa.large_string()).fill_null("")
    text, offsets = _buffers(distinct)
    if len(distinct) == 0:
        return strings_of([None] * len(column))
    start, end = int(offsets[0]), int(offsets[-1])
    return Strings(text[start:end], offsets - start, codes)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


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
        ranks = line.rank_ints(_whole(column))
    else:
        ranks = np.full(len(column), _container(kind), np.int32)
    if column.null_count:
        ranks[column.is_null().to_numpy(zero_copy_only=False)] = MISSING_RANK
    return ranks


def _whole(column: pa.Array) -> NDArray[np.int64]:
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _container(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return MAP_RANK
    if _is_list(kind):
        return LIST_RANK
    if pa.types.is_null(kind):
        return MISSING_RANK
    raise pa.ArrowNotImplementedError("cast it to a number, a string or a timestamp")


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
