"""JSON documents as columns, decoding only the paths in use.

A decoder is made for the paths: objects on the way become structs with just the wanted names, so that the rest of a
document is skipped, not built. What is not an object where one was expected stays as it is, and nothing is below it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, Struct, UnsetType, defstruct

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.columns import (
    DEFAULT_PRIORITY,
    DEFAULT_SOURCE,
    UNREADABLE,
    WRONG_LAYOUT,
    Columns,
    Place,
    ValueColumns,
)
from vestnik.matching.batch.scanned import Scanner
from vestnik.model.frozen import kind_name
from vestnik.model.spaces import DATA, Path, walk
from vestnik.model.strict_json import is_object_a_line
from vestnik.model.times import parse_rfc3339
from vestnik.model.values import MISSING

BYTES_AT_ONCE = 1 << 22
LINES_AT_ONCE = 1 << 12

_RENAMED = {"seq": "sequence", "not_before": "notbefore"}
"""Names in CloudEvents form, which gives its version, of attributes that have their own names in the short form."""
_FORM = "specversion"
_DEFAULTS = {"source": DEFAULT_SOURCE, "priority": DEFAULT_PRIORITY}


class DocumentReader:
    """Reads the given paths of JSON documents, laid out as events or (`flat`) as their data alone."""

    def __init__(self, paths: Iterable[Path], layout: str) -> None:
        self._flat = layout == "flat"
        self.paths = list(paths)
        wanted = [path for path in self.paths if not self._flat or path[0] == DATA]
        self._shape = _Shape([inside for path in wanted for inside in self._in_document(path)])
        self._decoder = msgspec.json.Decoder(self._shape.struct)

    def read(self, lines: bytes | str | Sequence[bytes | str]) -> Iterator[ValueColumns]:
        """The columns of the documents, one a line, some at a time; blank lines are passed over."""
        before = 0
        for text in _pieces(lines):
            documents = self._decode(text, before)
            if not before and not self._flat:
                _check_layout(text)
            yield self._columns(documents, partial(_line_of, text, before))
            before += text.count(b"\n")

    def read_column(self, data: pa.Array, place: Place) -> Columns | None:
        """The columns of a text column of documents that are data alone; None as for `read_rows`, or for a null."""
        if data.null_count:
            return None
        found = self._scanner.read(data, place)
        return self.read_rows(data.cast(pa.large_binary()).to_pylist(), place) if found is None else found

    def read_rows(self, rows: Sequence[bytes], place: Place) -> ValueColumns | None:
        """The columns of documents, a row each; None where some row is no object in one line, or cannot be read."""
        text = b"\n".join(rows)
        try:
            with collector_paused():
                documents = self._decoder.decode_lines(text)
        except UNREADABLE:
            return None
        aligned = len(documents) == len(rows) and is_object_a_line(text, len(rows))
        return self._columns(documents, place) if aligned else None

    @cached_property
    def _scanner(self) -> Scanner:
        return Scanner(self.paths)

    @property
    def reads_data(self) -> bool:
        return any(path[0] == DATA for path in self.paths)

    def _columns(self, documents: list[Any], place: Place) -> ValueColumns:
        levels: dict[Path, Sequence[Any]] = {(): documents}

        def column(path: Path) -> Sequence[Any]:
            if self._flat and path[0] != DATA:
                return [DEFAULT_PRIORITY if path == ("priority",) else MISSING] * len(documents)
            values, *rest = [self._shape.column(levels, inside) for inside in self._in_document(path)]
            if rest:
                values = [short if form is MISSING else long for short, long, form in zip(values, *rest, strict=True)]
            return values if path[0] == DATA else _attribute(path[0], values, place)

        return ValueColumns(len(documents), column, place)

    def _in_document(self, path: Path) -> list[Path]:
        """Where `path` is in a document: in the short form and, where that differs, in the other, and which it is."""
        if self._flat:
            return [path[1:]]
        return [path, (_RENAMED[path[0]],), (_FORM,)] if path[0] in _RENAMED else [path]

    def _decode(self, text: bytes, before: int) -> list[Any]:
        """The documents of `text`, which `before` lines come before; InvalidEvent names the line that is none."""
        try:
            with collector_paused():
                found = self._decoder.decode_lines(text)
        except UNREADABLE:
            self._find_fault(text, before)
            raise
        if len(found) != sum(map(bool, map(bytes.strip, text.split(b"\n")))):  # two on a line are none
            self._find_fault(text, before)
        return found

    def _find_fault(self, text: bytes, before: int) -> None:
        for number, line in enumerate(text.split(b"\n"), before + 1):
            try:
                if line.strip():
                    self._decoder.decode(line)
            except UNREADABLE as error:
                raise InvalidEvent(f"line {number} is no event in JSON: {error}") from error


class _Event(Struct):
    """What tells an event from its data alone."""

    type: Any = UNSET
    data: Raw | UnsetType = UNSET


def _check_layout(text: bytes) -> None:
    """InvalidEvent where the first document, and so probably each, is not laid out as an event."""
    line = text.lstrip().partition(b"\n")[0]
    if line:
        head = msgspec.json.decode(line, type=_Event)
        if head.type is UNSET and head.data is UNSET:
            raise InvalidEvent(f"{_line_of(text, 0, 0)} has neither type nor data; {WRONG_LAYOUT}")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Documents and filters hold no cycles: while text becomes many objects, the collector would walk them in vain."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _pieces(lines: bytes | str | Sequence[bytes | str]) -> Iterator[bytes]:
    """The text in pieces of whole lines: what one piece is decoded to is gone before the next."""
    if isinstance(lines, str):
        lines = _utf8(lines)
    if not isinstance(lines, bytes):
        for first in range(0, len(lines), LINES_AT_ONCE):
            some = lines[first : first + LINES_AT_ONCE]
            yield b"".join((_utf8(line) if isinstance(line, str) else line).rstrip(b"\n") + b"\n" for line in some)
        return
    start = 0
    while start < len(lines):
        end = lines.find(b"\n", start + BYTES_AT_ONCE) + 1 or len(lines)
        yield lines[start:end]
        start = end


def _utf8(text: str) -> bytes:
    """`text` in UTF-8; a lone surrogate goes through to the decoder, which refuses it with its line."""
    return text.encode(errors="surrogatepass")


class _Shape:
    """The structs for a set of paths, and the way to each path through them."""

    def __init__(self, paths: list[Path]) -> None:
        self._fields: dict[Path, str] = {}
        self.struct = self._make((), sorted(set(paths)))

    def _make(self, above: Path, paths: list[Path]) -> type[Struct]:
        """The struct at `above` for `paths` below it; a name that is wanted itself is read whole."""
        fields: list[tuple[str, Any, Any]] = []
        rename: dict[str, str] = {}
        depth = len(above)
        for name in dict.fromkeys(path[depth] for path in paths):
            here = (*above, name)
            field = self._fields[here] = f"f{len(fields)}"
            rename[field] = name
            if here in paths:
                fields.append((field, Any, MISSING))
            else:
                inner = self._make(here, [path for path in paths if path[: depth + 1] == here])
                fields.append((field, inner | None | bool | int | float | str | list, inner()))
        return defstruct("Document", fields, rename=rename, kw_only=True, gc=False, frozen=True)

    def column(self, levels: dict[Path, Sequence[Any]], path: Path) -> Sequence[Any]:
        """The values at `path`; `levels` remembers the columns on the way."""
        known = path
        while known not in levels and known not in self._fields:
            known = known[:-1]
        values = self._level(levels, known)
        rest = path[len(known) :]
        return [walk(value, rest) for value in values] if rest else values

    def _level(self, levels: dict[Path, Sequence[Any]], path: Path) -> Sequence[Any]:
        if path not in levels:
            above = self._level(levels, path[:-1])
            field = self._fields[path]
            try:
                levels[path] = list(map(attrgetter(field), above))
            except AttributeError:
                levels[path] = [getattr(value, field, MISSING) for value in above]
        return levels[path]


def _attribute(name: str, values: Sequence[Any], place: Place) -> list[Any]:
    """The values of an envelope attribute as an event holds them; null counts as absent, as in `Event.from_json`."""
    default, convert = _DEFAULTS.get(name, MISSING), _CONVERTED.get(name)
    out = []
    for row, value in enumerate(values):
        if value is None or value is MISSING:
            value = default
        elif convert is not None:
            try:
                value = convert(value)
            except ValueError as error:
                raise InvalidEvent(f"{error} ({place(row)})", name) from error
        out.append(value)
    return out


def _instant(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError(f"a time is RFC 3339 text, not {kind_name(value)}")
    return parse_rfc3339(value)


def _sequence(value: object) -> int:
    if type(value) is int:
        return value
    if not isinstance(value, str) or not value.isdecimal():
        raise ValueError("a sequence number is an integer, or a string of digits in CloudEvents form")
    return int(value)


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "time": _instant,
    "not_before": _instant,
    "expires": _instant,
    "seq": _sequence,
}


def _line_of(text: bytes, before: int, row: int) -> str:
    """Where the document `row` of `text` is, which `before` lines come before."""
    numbers = (number for number, line in enumerate(text.split(b"\n"), before + 1) if line.strip())
    return f"line {next(islice(numbers, row, None))}"
