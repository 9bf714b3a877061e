"""Columns of declared types: what of `data` is a column of its own.

    ["stock.quote"]
    symbol = "string"
    price = "double"
    buyer = { path = "order.buyer.id", type = "bigint" }

A value that is not there, or not of the type, is null; `data` always has all of it.
"""

from __future__ import annotations

import builtins
import tomllib
from collections.abc import Callable, Mapping
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import defstruct, json

from vestnik.errors import InvalidSetting
from vestnik.lake.manifest import Column
from vestnik.lake.schema import EVENTS, INSTANT
from vestnik.model.times import to_micros

Declared = Mapping[str, Mapping[str, Column]]
"""Of each declared type, the columns by name."""

PARTITIONS: Final = ("type_", "date")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if fits else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _instant(value: Any) -> int | None:
    try:
        return to_micros(value) if isinstance(value, str) else None
    except ValueError:
        return None


SQL: Final[dict[str, tuple[pa.DataType, Callable[[Any], Any], type | None]]] = {
    "string": (pa.string(), _text, str),
    "bigint": (pa.int64(), _whole, None),
    "double": (pa.float64(), _number, float),
    "boolean": (pa.bool_(), _truth, bool),
    "timestamp": (INSTANT, _instant, None),
}
"""Of each SQL type, the type in Arrow, which value of JSON is one, and the type in Python of which every value is."""


def read_declared(path: str | PathLike[str]) -> dict[str, dict[str, Column]]:
    """The declarations in a TOML file; InvalidSetting, naming the file and the column, where one means nothing."""
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting(str(path), f"is no TOML: {error}") from None
    return {type: _columns(f"{path}: {type}", columns) for type, columns in found.items()}


def _columns(where: str, columns: Any) -> dict[str, Column]:
    if not isinstance(columns, dict):
        raise InvalidSetting(where, 'a type has columns: ["stock.quote"] and below it price = "double"')
    known = {name.lower() for name in (*EVENTS.names, *PARTITIONS)}  # SQL does not mind the case
    for name in columns:
        if name.lower() in known:
            raise InvalidSetting(
                f"{where}.{name}", "the table has a column of that name; name it otherwise and say its path"
            )
        known.add(name.lower())
    return {name: _column(f"{where}.{name}", name, said) for name, said in columns.items()}


def _column(where: str, name: str, said: Any) -> Column:
    given = said if isinstance(said, dict) else {"type": said}
    column = Column(given.get("path", name), given.get("type", ""))
    if given.keys() - {"path", "type"} or not isinstance(column.path, str) or column.type not in SQL:
        raise InvalidSetting(where, f'is one of {", ".join(SQL)}, or {{ path = "...", type = "..." }} of one')
    return column


def schema_of(columns: Mapping[str, Column]) -> pa.Schema:
    """The event table of a type with these columns."""
    return pa.schema([*EVENTS, *(pa.field(name, SQL[column.type][0]) for name, column in columns.items())])


def extended(table: pa.Table, columns: Mapping[str, Column]) -> pa.Table:
    """Rows of one type, with its columns made from `data`."""
    table = table.select(EVENTS.names)
    if not columns:
        return table
    lines = b"\n".join(table.column("data").cast(pa.binary()).to_pylist())
    fields = {
        name: f"f{place}" for place, name in enumerate(sorted({one.path.split(".")[0] for one in columns.values()}))
    }
    objects = _decoder(fields).decode_lines(lines)
    for name, column in columns.items():
        first, *rest = column.path.split(".")
        values = list(map(attrgetter(fields[first]), objects))
        for key in rest:
            values = [one.get(key) if isinstance(one, dict) else None for one in values]
        table = table.append_column(pa.field(name, SQL[column.type][0]), _array(values, column.type))
    return table


def _decoder(fields: Mapping[str, str]) -> json.Decoder[Any]:
    """Of an object what is at these names, as fields, None where there is nothing; the rest is not built."""
    shape = [(field, Any, None) for field in fields.values()]
    return json.Decoder(defstruct("Declared", shape, rename={field: name for name, field in fields.items()}, gc=False))


def _array(values: list[Any], type: str) -> pa.Array:
    """What is of the SQL type."""
    kind, as_kind, plain = SQL[type]
    if plain is None or set(map(builtins.type, values)) - {plain}:
        values = list(map(as_kind, values))
    return pa.array(values, kind)
