"""Rows of Arrow columns as Python values of an event: documents, and what is inside maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.columns import UNREADABLE, Place
from vestnik.model.frozen import freeze
from vestnik.model.spaces import DATA
from vestnik.model.values import MISSING


def read_rows(column: pa.Array, read: Callable[[pa.Scalar], Any], place: Place) -> list[Any]:
    """What `read` makes of each row; InvalidEvent says which it cannot read."""
    out = []
    for row, scalar in enumerate(column):
        try:
            out.append(read(scalar))
        except UNREADABLE as error:
            raise InvalidEvent(f"neither JSON nor msgpack: {error} ({place(row)})", DATA) from error
        except InvalidEvent as error:
            raise InvalidEvent(f"{error.reason} ({place(row)})", error.path) from error
    return out


def read_document(scalar: pa.Scalar) -> Any:
    """The document that JSON text or msgpack bytes hold; a null is missing.

    A map in msgpack begins with a byte that no JSON text begins with, and may hold what no event can.
    """
    if not scalar.is_valid:
        return MISSING
    text = scalar.as_py()
    if isinstance(text, bytes) and text[:1] >= b"\x80":
        return freeze(msgspec.msgpack.decode(text))
    return msgspec.json.decode(text)


def read_value(scalar: pa.Scalar) -> Any:
    """An Arrow scalar as a value of an event, or MISSING."""
    kind = scalar.type
    if not scalar.is_valid:
        return MISSING
    if pa.types.is_dictionary(kind):
        return read_value(scalar.value)
    if is_json(kind):
        return read_document(scalar)
    if pa.types.is_struct(kind):
        return _map(scalar.items())
    if pa.types.is_map(kind):
        return _map(zip(scalar.values.field(0).to_pylist(), scalar.values.field(1), strict=True))
    if is_list(kind):
        return [as_element(read_value(inner)) for inner in scalar.values]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return int(whole_numbers(pa.array([scalar]))[0])
    if pa.types.is_floating(kind):
        value = float(scalar.as_py())
        return value if isfinite(value) else MISSING
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or is_text(kind):
        return scalar.as_py()
    raise unknown_kind(kind)


def _map(fields: Iterable[tuple[str, pa.Scalar]]) -> dict[str, Any]:
    values = ((name, read_value(scalar)) for name, scalar in fields)
    return {name: value for name, value in values if value is not MISSING}


def as_element(value: Any) -> Any:
    """`value` as an element of a list, which cannot be missing."""
    return None if value is MISSING else value


def whole_numbers(column: pa.Array) -> NDArray[np.int64]:
    """Integers as they are, timestamps and dates as microseconds; what is finer is cut off, as in RFC 3339 text."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return whole_numbers(column.cast(pa.int64())) // 1000
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.JsonType)


def is_encoded(kind: pa.DataType) -> bool:
    """Whether a column of this kind is JSON text or msgpack."""
    if pa.types.is_dictionary(kind):
        return is_encoded(kind.value_type)
    return bool(
        is_json(kind)
        or is_text(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def unknown_kind(kind: pa.DataType) -> pa.ArrowTypeError:
    return pa.ArrowTypeError(f"{kind} is no kind of value; cast it to a number, a string or a timestamp")
