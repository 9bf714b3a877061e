"""How log records become lines on standard error: as text for people, or as JSON for programs."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import click

from vestnik.cli.log_writer import LogWriter

_QUOTED: Final = frozenset(" \"'=\\")
"""Characters in a value that would make it look like something else."""


class TextFormatter(logging.Formatter):
    """`TIME LEVEL MESSAGE event=NAME key=value ...`, one line; a traceback follows on lines that are indented.

    Names and reasons come from strangers: characters that cannot be printed are escaped, so a record is never taken
    for two.
    """

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join([f" {key}={_quoted(value)}" for key, value in _flat(_fields(record))])
        line = f"{_time(record)} {record.levelname:<7} {escaped(record.getMessage())} event={_event(record)}{fields}"
        return "\n".join([line, *(f"    {escaped(part)}" for part in _traceback(self, record))])


class JsonFormatter(logging.Formatter):
    """One object a line: `time`, `level`, `event`, `message`, and the fields of the record beside them."""

    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": _event(record),
            "message": record.getMessage(),
            **_fields(record),
        }
        if traceback := _traceback(self, record):
            content["traceback"] = "\n".join(traceback)
        return json.dumps(content, default=str)


_LISTENING: Final = re.compile(r'\blistening on ([^\s",]+)')


def address_in(line: str) -> str:
    """Return where a broker listens, if this line of its log says so; empty otherwise."""
    found = _LISTENING.search(line)
    return found[1] if found else ""


FORMATTERS: Final = {"text": TextFormatter, "json": JsonFormatter}


@contextmanager
def logging_to_stderr(level: str, form: str) -> Iterator[None]:
    """Log to standard error meanwhile: what the package has to say from `level` on, and warnings of others."""
    handler = logging.NullHandler() if sys.stderr is None else LogWriter(sys.stderr)  # None where a shell says 2>&-
    handler.setFormatter(FORMATTERS[form]())
    with _handling(handler, logging.getLevelNamesMapping()[level.upper()]):
        try:
            yield
        finally:
            handler.close()


@contextmanager
def warnings_to_stderr() -> Iterator[None]:
    """Print warnings as messages of the command meanwhile, for commands that are not a service."""
    with _handling(_Plain(logging.WARNING), logging.WARNING):
        yield


class _Plain(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        is_own = record.name.partition(".")[0] == "vestnik"
        click.echo(f"vestnik: {self.format(record)}" if is_own else self.format(record), err=True)


@contextmanager
def _handling(handler: logging.Handler, level: int) -> Iterator[None]:
    """Let `handler` have all records meanwhile, and no other that would print them."""
    root, own = logging.getLogger(), logging.getLogger("vestnik")
    before = root.handlers[:], root.level, own.level
    root.handlers[:] = [*(one for one in root.handlers if not isinstance(one, _Plain)), handler]
    root.setLevel(max(level, logging.WARNING))
    own.setLevel(level)
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        own.setLevel(before[2])


def escaped(text: str) -> str:
    """Escape what cannot be printed: line ends, control characters, marks that turn text around."""
    if text.isprintable():
        return text
    return "".join([sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text])


def _quoted(value: object) -> str:
    text = "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    if text and text.isprintable() and _QUOTED.isdisjoint(text):
        return text
    return '"' + escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _flat(fields: dict[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "fields", {})


def _event(record: logging.LogRecord) -> str:
    """The name of the event; of a record without one, who logged it."""
    return getattr(record, "event", record.name)


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    return formatter.formatException(record.exc_info).splitlines() if record.exc_info else []
