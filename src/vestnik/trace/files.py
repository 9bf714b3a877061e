"""Traces as JSON lines: a header with the version, then one record a line.

A filter is written as text, an event as CloudEvents JSON. What is written is read back equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias, get_args

import msgspec

from vestnik.errors import FilterError, InvalidEvent, InvalidTrace
from vestnik.model.cloudevents import from_cloudevent, to_cloudevent
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.strict_json import read_json
from vestnik.trace.records import AnyRecord

VERSION: Final = 1
KINDS: Final = {kind.__name__: kind for kind in get_args(AnyRecord)}
ReadValue: TypeAlias = Callable[[type, Any], object]


def to_lines(records: Iterable[AnyRecord]) -> Iterator[bytes]:
    """The lines of a file with these records, each with its line end."""
    yield _encode({"vestnik": "trace", "version": VERSION})
    for record in records:
        yield _encode(record)


def from_lines(lines: Iterable[bytes], name: str = "trace") -> Iterator[AnyRecord]:
    """The records in the lines of a file; InvalidTrace, with `name` and the line, where one cannot be read.

    Blank lines are passed over.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, header = next(numbered, (1, b""))
    _check_header(header, name, number)
    values = _Values()
    for number, line in numbered:
        try:
            yield _record(read_json(line), values.read)
        except (InvalidEvent, FilterError, msgspec.ValidationError) as error:
            raise InvalidTrace(name, number, str(error)) from None


def to_plain(record: AnyRecord) -> Any:
    """A record as maps, lists, strings and numbers."""
    return msgspec.to_builtins(record, enc_hook=_plain)


def from_plain(data: Any) -> AnyRecord:
    """The record that `to_plain` gave `data` for."""
    return _record(data, _value)


def _record(data: Any, read: ReadValue) -> AnyRecord:
    """Where the kind is known at once, reading is five times as fast."""
    op = data.get("op") if isinstance(data, dict) else None
    kind = KINDS.get(op) if isinstance(op, str) else None
    return msgspec.convert(data, kind or AnyRecord, dec_hook=read)  # type: ignore[no-any-return]


class _Values:
    """Reads what is written alike once: an event is in a trace as often as it is handed over."""

    def __init__(self) -> None:
        self._known: dict[bytes, object] = {}

    def read(self, kind: type, data: Any) -> object:
        try:
            written = msgspec.json.encode(data)
        except OverflowError:  # an integer beyond 64 bits
            return _value(kind, data)
        value = self._known.get(written)
        if value is None:
            value = self._known[written] = _value(kind, data)
        return value


def _check_header(header: bytes, name: str, number: int) -> None:
    try:
        found = read_json(header)
    except InvalidEvent as error:
        raise InvalidTrace(name, number, f"expected the header of a trace; {error}") from None
    if not isinstance(found, dict) or found.get("vestnik") != "trace":
        raise InvalidTrace(name, number, 'expected the header of a trace: {"vestnik": "trace", "version": 1}')
    if found.get("version") != VERSION:
        raise InvalidTrace(name, number, f"version {found.get('version')!r} of traces; only {VERSION} can be read")


def _encode(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=_plain) + b"\n"


def _plain(value: object) -> object:
    match value:
        case Filter():
            return str(value)
        case Event():
            return to_cloudevent(value)
        case _:
            raise TypeError(f"no record holds {type(value).__name__}")


def _value(kind: type, data: Any) -> object:
    if kind is Event:
        return from_cloudevent(data)
    if not isinstance(data, str):
        raise msgspec.ValidationError(f"a filter is text, not {type(data).__name__}")
    return Filter.parse(data, limits=None)
