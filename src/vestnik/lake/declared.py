"""Columns of declared types: what of `data` is a column of its own.

    ["stock.quote"]
    symbol = "string"
    price = "double"
    buyer = { path = "order.buyer.id", type = "bigint" }

A value that is not there, or not of the type, is null; `data` always has all of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import json

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


SQL: Final[dict[str, tuple[pa.DataType, Callable[[Any], Any]]]] = {
    "string": (pa.string(), _text),
    "bigint": (pa.int64(), _whole),
    "double": (pa.float64(), _number),
    "boolean": (pa.bool_(), _truth),
    "timestamp": (INSTANT, _instant),
}
"""Of each SQL type, the type in Arrow, and which value of JSON is one."""


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
    objects = json.Decoder(dict[str, Any]).decode_lines(lines)
    for name, column in columns.items():
        kind, as_kind = SQL[column.type]
        read = partial(_at, keys=column.path.split("."))
        table = table.append_column(pa.field(name, kind), pa.array([as_kind(read(one)) for one in objects], kind))
    return table


def _at(found: Any, keys: list[str]) -> Any:
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found
