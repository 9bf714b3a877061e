"""Log records as lines: text for people, JSON for programs."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner

from vestnik.cli import main
from vestnik.cli.log_writer import LogWriter
from vestnik.cli.logs import JsonFormatter, TextFormatter, address_in, logging_to_stderr
from vestnik.logs import emit

LOG = logging.getLogger("vestnik.tests")


def record(message: str, event: str = "", level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("vestnik.tests", level, "f", 1, message, (), None)
    made.created = 1_800_000_000.1239
    if event:
        made.__dict__.update(event=event, fields=fields)
    return made


def test_text_shows_fields_that_cannot_be_mistaken() -> None:
    made = record("linked", "link.up", neighbour="b1", reason='a "b" c=d', count=3, ok=True, none=None, some=["x", "y"])
    assert TextFormatter().format(made) == (
        "2027-01-15T08:00:00.123Z INFO    linked event=link.up neighbour=b1 "
        'reason="a \\"b\\" c=d" count=3 ok=true none=- some=x,y'
    )
    nested = TextFormatter().format(record("s", "settings", settings={"limits": {"keep": 1}}))
    assert nested.endswith(" event=settings settings.limits.keep=1")


@pytest.mark.parametrize("sign", ["\n", "\r", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\ud800", "\t"])
def test_what_cannot_be_printed_is_escaped(sign: str) -> None:
    line = TextFormatter().format(record(f"a{sign}b", "e", reason=f"c{sign}d", after="e\\"))
    assert sign not in line and line.isprintable() and "\\" in line and 'after="e\\\\"' in line
    assert json.loads(JsonFormatter().format(record("m", "e", reason=f"c{sign}d")))["reason"] == f"c{sign}d"


def test_a_record_without_an_event_is_named_by_its_logger() -> None:
    assert "event=vestnik.tests" in TextFormatter().format(record("m"))
    assert json.loads(JsonFormatter().format(record("m")))["event"] == "vestnik.tests"


def test_lines_of_a_traceback_are_indented() -> None:
    made = record("failed")
    try:
        raise ValueError("first\n2026 INFO second")
    except ValueError:
        made.exc_info = sys.exc_info()
    first, *others = TextFormatter().format(made).splitlines()
    assert first.endswith("failed event=vestnik.tests") and others
    assert all(line.startswith("    ") for line in others)
    assert "second" in json.loads(JsonFormatter().format(made))["traceback"]


def test_levels_and_other_loggers(capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level, logging.getLogger("vestnik").level
    with logging_to_stderr("info", "json"):
        emit(LOG, logging.DEBUG, "e.debug", "no")
        emit(LOG, logging.INFO, "e.info", "yes", path=Path("a"))
        logging.getLogger("asyncio").warning("something %s", "odd")
        logging.getLogger("asyncio").info("nothing")
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(one["event"], one["level"], one["message"]) for one in found] == [
        ("e.info", "info", "yes"),
        ("asyncio", "warning", "something odd"),
    ]
    assert found[0]["path"] == "a"
    assert (logging.getLogger().handlers, logging.getLogger().level, logging.getLogger("vestnik").level) == before


@pytest.mark.parametrize(("level", "printed"), [("debug", ["own", "other"]), ("warning", ["other"]), ("error", [])])
def test_other_libraries_are_heard_from_warnings_on_and_no_less_than_asked_for(
    level: str, printed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_to_stderr(level, "json"):
        emit(LOG, logging.DEBUG, "e", "own")
        logging.getLogger("asyncio").info("too much")
        logging.getLogger("asyncio").warning("other")
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == printed


class Slow(io.StringIO):
    """A stream that takes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = Event()

    def write(self, text: str) -> int:
        self.goes_on.wait(20)
        return super().write(text)


def test_what_nobody_reads_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.cli.log_writer.MOST_WAITING", 10)
    monkeypatch.setattr("vestnik.cli.log_writer.WRITTEN_WITHIN", 20)
    stream = Slow()
    monkeypatch.setattr(sys, "stderr", stream)
    with logging_to_stderr("info", "json"):
        for number in range(100):
            emit(LOG, logging.INFO, "e", "m", number=number)
        stream.goes_on.set()
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    written = [one["number"] for one in found if one["event"] == "e"]
    assert written == sorted(written) and written[0] == 0 and len(written) < 20
    assert sum(one["count"] for one in found if one["event"] == "log.dropped") == 100 - len(written)


def test_a_reader_that_has_gone_stops_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        handler = LogWriter(gone)
        handler.handle(record("m"))
        handler.close()


def test_where_a_broker_listens_is_found_in_both_forms() -> None:
    made = record("listening on 127.0.0.1:8020", "broker.listening", address="127.0.0.1:8020")
    for formatter in (TextFormatter(), JsonFormatter()):
        assert address_in(formatter.format(made)) == "127.0.0.1:8020"
    assert address_in("another line") == ""


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"VESTNIK_LOG_LEVEL": "loud"}, "log_level: is one of debug, info, warning, error, not loud"),
        ({"VESTNIK_LOG_FORMAT": "xml"}, "log_format: is one of text, json, not xml"),
    ],
)
def test_settings_that_mean_nothing(variables: dict[str, str], said: str) -> None:
    result = CliRunner().invoke(main, ["config", "show"], env=variables)
    assert result.exit_code == 2 and said in result.stderr


def test_the_guide_has_every_event() -> None:
    root = Path(__file__).parent.parent.parent
    sources = [path.read_text(encoding="utf-8") for path in (root / "src" / "vestnik").rglob("*.py")]
    logged = {name for text in sources for name in re.findall(r"\bemit\(\s*LOG,\s*[\w.]+,\s*\"([^\"]+)\"", text)}
    guide = (root / "docs" / "guide" / "operating.md").read_text(encoding="utf-8").partition("## The log")[2]
    table = {row.split("`")[1] for row in guide.partition("## ")[0].splitlines() if row.startswith("| `")}
    assert logged == table
