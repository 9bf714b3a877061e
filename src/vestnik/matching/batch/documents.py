"""JSON documents as columns, decoding only the paths in use.

A decoder is made for the paths: objects on the way become structs with just the wanted names, so that the rest of a
document is skipped, not built. What is not an object where one was expected stays as it is, and nothing is below it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct, defstruct

from vestnik.errors import InvalidEvent
from vestnik.matching.batch.columns import ValueColumns
from vestnik.model.spaces import DATA, Path, walk
from vestnik.model.times import parse_rfc3339
from vestnik.model.values import MISSING

BYTES_AT_ONCE = 1 << 22
LINES_AT_ONCE = 1 << 12

_RENAMED = {"seq": "sequence", "not_before": "notbefore"}
_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "time": parse_rfc3339,
    "not_before": parse_rfc3339,
    "expires": parse_rfc3339,
    "seq": int,
    "priority": lambda value: 4 if value is MISSING else value,
}


class DocumentReader:
    """Reads the given paths of JSON documents, laid out as events or (`flat`) as their data alone."""

    def __init__(self, paths: Iterable[Path], layout: str) -> None:
        self._flat = layout == "flat"
        wanted = [path for path in paths if not self._flat or path[0] == DATA]
        self._shape = _Shape([self._in_document(path) for path in wanted])
        self._decoder = msgspec.json.Decoder(self._shape.struct)

    def read(self, lines: bytes | str | Sequence[bytes | str]) -> Iterator[ValueColumns]:
        """The columns of the documents, one a line, some at a time; blank lines are passed over."""
        before = 0
        for text in _pieces(lines):
            yield self._columns(self._decode(text, before))
            before += text.count(b"\n")

    def _columns(self, documents: list[Any]) -> ValueColumns:
        levels: dict[Path, Sequence[Any]] = {(): documents}

        def column(path: Path) -> Sequence[Any]:
            if self._flat and path[0] != DATA:
                return [MISSING] * len(documents)
            values = self._shape.column(levels, self._in_document(path))
            convert = None if path[0] == DATA else _CONVERTED.get(path[0])
            return values if convert is None else [_converted(convert, value) for value in values]

        return ValueColumns(len(documents), column)

    def _in_document(self, path: Path) -> Path:
        if self._flat:
            return path[1:]
        return path if path[0] == DATA else (_RENAMED.get(path[0], path[0]),)

    def _decode(self, text: bytes, before: int) -> list[Any]:
        """The documents of `text`, which `before` lines come before; InvalidEvent names the line that is none."""
        try:
            with _collector_paused():
                return self._decoder.decode_lines(text)
        except (msgspec.DecodeError, UnicodeError):
            self._find_fault(text, before)
            raise

    def _find_fault(self, text: bytes, before: int) -> None:
        for number, line in enumerate(text.split(b"\n"), before + 1):
            try:
                if line.strip():
                    self._decoder.decode(line)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise InvalidEvent(f"line {number} is no event in JSON: {error}") from error


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Documents hold no cycles: while a piece of text becomes objects, the collector would walk them in vain."""
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
        lines = lines.encode()
    if not isinstance(lines, bytes):
        for first in range(0, len(lines), LINES_AT_ONCE):
            some = lines[first : first + LINES_AT_ONCE]
            yield b"".join((line.encode() if isinstance(line, str) else line).rstrip(b"\n") + b"\n" for line in some)
        return
    start = 0
    while start < len(lines):
        end = lines.find(b"\n", start + BYTES_AT_ONCE) + 1 or len(lines)
        yield lines[start:end]
        start = end


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


def _converted(convert: Callable[[Any], Any], value: Any) -> Any:
    return value if value is MISSING and convert is not _CONVERTED["priority"] else convert(value)
