"""Rows of the event table as events: checked as everything that comes from outside, and equal to what they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import ValidationError, convert, json

from vestnik.errors import InvalidEvent
from vestnik.lake.schema import EVENTS
from vestnik.model.envelope import MEDIUM
from vestnik.model.events import Event
from vestnik.model.strict_json import is_object_a_line, names_surely_differ, read_json
from vestnik.wire.messages import Taken

REQUIRED = ("source", "id", "type", "data")
_SELDOM = ("subject", "time", "priority", "not_before", "expires", "causes", "extensions")
_decode_lines = json.Decoder(dict[str, Any]).decode_lines


def events_of(batch: pa.RecordBatch | pa.Table) -> list[Event]:
    """The event of each row; InvalidEvent, with the number of the row from 0, when one is none.

    Columns are found by name. A column that may be null may as well be missing, so may `priority` and `causes`;
    columns that the event table does not have are not looked at.
    """
    _require(batch)
    bodies = _objects(_column(batch, "data"))
    envelope = [_values(batch, name) for name in ("type", "source", "id")]
    rows = zip(*envelope, bodies, _seldoms(batch), _values(batch, "broker"), _values(batch, "seq"), strict=False)
    return [_event(number, row) for number, row in enumerate(rows)]


def taken_of(batch: pa.RecordBatch | pa.Table) -> list[Taken]:
    """The same, with the position at which each was taken, and when; InvalidEvent when that is not said."""
    places = [_column(batch, "position"), _column(batch, "taken_at")]
    if any(place.null_count for place in places):
        raise InvalidEvent("events that were taken have a position and a taken_at; a row has none")
    positions, times = (place.cast(pa.int64()).to_pylist() for place in places)
    return list(map(Taken, positions, times, events_of(batch)))


def _event(number: int, row: tuple[Any, ...]) -> Event:
    try:
        return convert(row, Event)
    except ValidationError:
        pass
    type, source, id, body, seldom, broker, seq = row
    stream = None if broker is None else (broker, source)
    try:
        if id is None:
            raise InvalidEvent("must be a string, not null", "id")
        return Event(type, body, source=source, id=id, **(seldom or {}), stream=stream, seq=seq)
    except InvalidEvent as error:
        raise _in_row(number, error) from None


def _in_row(number: int, error: InvalidEvent) -> InvalidEvent:
    return InvalidEvent(error.reason, f"row {number}: {error.path}" if error.path else f"row {number}")


def _require(batch: pa.RecordBatch | pa.Table) -> None:
    missing = [name for name in REQUIRED if name not in batch.schema.names]
    if missing:
        raise InvalidEvent(f"a table of events has the columns {', '.join(REQUIRED)}; missing: {', '.join(missing)}")


def _column(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    """The column in the type that the event table has; nulls where there is none."""
    kind = EVENTS.field(name).type
    if name not in batch.schema.names:
        return pa.nulls(len(batch), kind)
    column = batch.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    try:
        return column if column.type == kind else column.cast(kind)
    except pa.ArrowException:
        raise InvalidEvent(f"the column is {column.type}, not {kind}", name) from None


def _values(batch: pa.RecordBatch | pa.Table, name: str) -> Iterable[Any]:
    column = _column(batch, name)
    if column.null_count == len(column):
        return repeat(None, len(column))
    values: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values


def _seldoms(batch: pa.RecordBatch | pa.Table) -> Iterable[dict[str, Any] | None]:
    """What each row says besides; mostly nothing."""
    names = [name for name in _SELDOM if name in batch.schema.names and _is_said(name, _column(batch, name))]
    if not names:
        return repeat(None, len(batch))
    columns = [_READ.get(name, _values)(batch, name) for name in names]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]


def _is_said(name: str, column: pa.Array) -> bool:
    if name == "priority":
        return not pc.all(pc.equal(column, MEDIUM)).as_py() if len(column) else False
    return len(column.flatten()) > 0 if name == "causes" else column.null_count < len(column)


def _causes(batch: pa.RecordBatch | pa.Table, name: str) -> Iterator[Any]:
    for number, causes in enumerate(_values(batch, name)):
        if any(cause is None for cause in causes or ()):
            raise InvalidEvent("must be a pair of strings", f"row {number}: causes")
        yield None if causes is None else tuple([(cause["source"], cause["id"]) for cause in causes])


def _extensions(batch: pa.RecordBatch | pa.Table, name: str) -> Iterator[Any]:
    for number, text in enumerate(_values(batch, name)):
        yield None if text is None else _object(number, name, text)


_READ = {"causes": _causes, "extensions": _extensions}


def _objects(column: pa.Array) -> list[Any]:
    """The JSON objects of a column, which is read as lines where each row surely is one."""
    if not column.null_count:
        lines = b"\n".join(column.cast(pa.binary()).to_pylist())
        try:
            objects = _decode_lines(lines)
        except (ValueError, RecursionError):  # of msgspec, too
            objects = []
        if len(objects) == len(column) and is_object_a_line(lines, len(column)) and names_surely_differ(lines, objects):
            return objects
    return [_object(number, "data", text) for number, text in enumerate(column.to_pylist())]


def _object(number: int, name: str, text: str | None) -> Any:
    try:
        found = None if text is None else read_json(text)
    except InvalidEvent as error:
        raise _in_row(number, InvalidEvent(error.reason, name)) from None
    if not isinstance(found, dict):
        raise InvalidEvent("must be a JSON object", f"row {number}: {name}")
    return found
