"""Traces as JSON lines: a header with the version, then one record a line, then an end.

A filter is written as text, an event as CloudEvents JSON. What is written is read back equal. Several traces may follow
one another in a file, as those of a broker that was started again do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, get_args

import msgspec

from vestnik.errors import FilterError, InvalidEvent, InvalidTrace
from vestnik.model.cloudevents import from_cloudevent, to_cloudevent
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.strict_json import read_json
from vestnik.trace.records import AnyRecord

VERSION: Final = 1
KINDS: Final = {kind.__name__: kind for kind in get_args(AnyRecord)}
EVENTFUL: Final = frozenset({kind for kind in KINDS.values() if "event" in kind.__struct_fields__})
MARK: Final = b'{"vestnik":'
REMEMBERED: Final = 50_000
"""Of so many values a reader knows how they are written."""
ReadValue: TypeAlias = Callable[[type, Any], object]


class Begin(NamedTuple):
    """The header of a trace: of one broker, or with no name of everything."""

    node: str = ""


class End(NamedTuple):
    """All that happened is in the trace, since whoever wrote it says so; or it is `cut` off."""

    cut: bool = False


def to_lines(records: Iterable[AnyRecord]) -> Iterator[bytes]:
    """The lines of a file with these records, each with its line end."""
    yield to_line(Begin())
    yield from map(to_line, records)
    yield to_line(End())


def to_line(part: Begin | End | AnyRecord) -> bytes:
    match part:
        case Begin(node):
            return _encode({"vestnik": "trace", "version": VERSION} | ({"node": node} if node else {}))
        case End():
            return _encode({"vestnik": "trace", "end": True})
        case _:
            return _encode(part)


def from_lines(lines: Iterable[bytes], name: str = "trace") -> Iterator[AnyRecord]:
    """The records in the lines of a file; InvalidTrace, with `name` and the line, where one cannot be read.

    Blank lines are passed over.
    """
    for part in parts(lines, name):
        if not isinstance(part, Begin | End):
            yield part


def parts(lines: Iterable[bytes], name: str = "trace") -> Iterator[Begin | End | AnyRecord]:
    """The traces in the lines of a file, each with its beginning and its end; there is one at least.

    Half a line at the end of a broker's trace is what it was about to write when it was killed.
    """
    begun: Begin | None = None
    wrong: InvalidTrace | None = None  # in the line before
    reader = Reader()
    found = False
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        if begun is not None and not text.startswith(MARK):
            if wrong is not None:
                raise wrong
            try:
                yield reader.read(text)
            except (InvalidEvent, FilterError, msgspec.ValidationError) as error:
                wrong = InvalidTrace(name, number, str(error))
            continue
        ended = begun is not None and _is_end(text)
        if begun is not None:
            yield _ended(begun, wrong, ended=ended)
        begun, wrong, found = None if ended else _header(number, text, name), None, True
        if begun is not None:
            yield begun
    if begun is not None:
        yield _ended(begun, wrong, ended=False)
    elif not found:
        _header(1, b"", name)


def _ended(begun: Begin, wrong: InvalidTrace | None, *, ended: bool) -> End:
    if wrong is not None and (ended or not begun.node):
        raise wrong
    return End(cut=not ended)


class Reader:
    """Reads records. What is written alike is read once: an event is in a trace as often as it is handed over."""

    def __init__(self) -> None:
        self._known: dict[bytes, object] = {}

    def read(self, text: bytes | str) -> AnyRecord:
        """The record on a line."""
        return _record(read_json(text), self._value)

    def _value(self, kind: type, data: Any) -> object:
        try:
            written = msgspec.json.encode(data)
        except OverflowError:  # an integer beyond 64 bits
            return _value(kind, data)
        value = self._known.get(written)
        if value is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            value = self._known[written] = _value(kind, data)
        return value


def to_plain(record: AnyRecord) -> Any:
    """A record as maps, lists, strings and numbers."""
    return msgspec.to_builtins(_with_plain_event(record), enc_hook=_plain)


def from_plain(data: Any) -> AnyRecord:
    """The record that `to_plain` gave `data` for."""
    return _record(data, _value)


def _record(data: Any, read: ReadValue) -> AnyRecord:
    """Where the kind is known at once, reading is five times as fast."""
    op = data.get("op") if isinstance(data, dict) else None
    kind = KINDS.get(op) if isinstance(op, str) else None
    if kind in EVENTFUL and "event" in data:
        data = {**data, "event": read(Event, data["event"])}
    return msgspec.convert(data, kind or AnyRecord, dec_hook=read)  # type: ignore[no-any-return]


def _is_end(line: bytes) -> bool:
    try:
        found = read_json(line)
    except InvalidEvent:
        return False
    return isinstance(found, dict) and found.get("end") is True


def _header(number: int, text: bytes, name: str) -> Begin:
    try:
        found = read_json(text)
    except InvalidEvent as error:
        raise InvalidTrace(name, number, f"expected the header of a trace; {error}") from None
    if not isinstance(found, dict) or found.get("vestnik") != "trace":
        raise InvalidTrace(name, number, 'expected the header of a trace: {"vestnik": "trace", "version": 1}')
    if found.get("version") != VERSION:
        raise InvalidTrace(name, number, f"version {found.get('version')!r} of traces; only {VERSION} can be read")
    return Begin(str(found.get("node", "")))


def _encode(value: object) -> bytes:
    return msgspec.json.encode(_with_plain_event(value), enc_hook=_plain) + b"\n"


def _with_plain_event(value: object) -> object:
    """A record in which an event is as CloudEvents have it."""
    event = getattr(value, "event", None)
    return msgspec.structs.replace(value, event=to_cloudevent(event)) if isinstance(event, Event) else value  # type: ignore[type-var]  # a record


def _plain(value: object) -> object:
    if isinstance(value, Filter):
        return str(value)
    raise TypeError(f"no record holds {type(value).__name__}")


def _value(kind: type, data: Any) -> object:
    if kind is Event:
        return from_cloudevent(data)
    if not isinstance(data, str):
        raise msgspec.ValidationError(f"a filter is text, not {type(data).__name__}")
    return Filter.parse(data, limits=None)
