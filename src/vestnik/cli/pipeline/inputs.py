"""What the stages of the pipeline are given: subscriptions in files, events in files, lakes and data folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from vestnik.cli.events import LONGEST_REASON, REPORTED, printable, text_of
from vestnik.cli.inputs import Refused, opened, shown_name
from vestnik.cli.lines import Line, batches
from vestnik.cli.progress import progress
from vestnik.errors import InvalidEvent
from vestnik.journal.folders import JOURNAL
from vestnik.lake.journals import Journal, open_journal
from vestnik.lake.layout import LOG, Lake
from vestnik.model.events import Event
from vestnik.model.strict_json import read_json
from vestnik.spark.source.offsets import stretches
from vestnik.spark.staging import (
    JournalPart,
    Unread,
    event_stage,
    stage_journal,
    subscription_stage,
    why_unreadable,
)

POSITIONS: Final = 250_000
"""Of a journal that one task reads."""

QUARANTINE: Final = "_quarantine"
"""The folder, beside what was matched, of what could not be read."""


class Unreadable:
    """All that could not be read; the first of each kind are said on standard error."""

    def __init__(self) -> None:
        self.rows: list[Unread] = []

    def add(self, kind: str, place: str, reason: str, payload: bytes | None = None, entries: int = 1) -> None:
        self.rows.append(Unread(kind, place, reason, payload, entries))
        if sum(row.kind == kind for row in self.rows) <= REPORTED:
            first = (reason.splitlines() or [""])[0]
            shown = first if len(first) <= LONGEST_REASON else f"{first[:LONGEST_REASON]}..."
            click.echo(f"{printable(place)}: {printable(shown)}", err=True)

    def count(self, kind: str) -> int:
        return sum(row.entries for row in self.rows if row.kind == kind)


def stage_subscriptions(name: str, path: Path, unread: Unreadable) -> dict[str, int]:
    """Write the subscriptions in the file `name` to `path`; gives the line of each id."""
    lines: dict[str, int] = {}
    with opened(name) as file, progress("subscriptions", file) as advance, subscription_stage(path) as stage:
        for batch in batches(file):
            ids: list[str] = []
            filters: list[str] = []
            for line in batch.lines:
                try:
                    id, wanted = _subscription(line)
                    if id in lines:
                        raise InvalidEvent(f"the id {json.dumps(id)} is taken by line {lines[id]}; give each its own")
                    lines[id] = line.number
                    ids.append(id)
                    filters.append(wanted)
                except InvalidEvent as error:
                    unread.add("subscription", f"{shown_name(name)}:{line.number}", str(error), line.text)
            stage.put_subscriptions(ids, filters)
            advance(batch.size)
    return lines


def _subscription(line: Line) -> tuple[str, str]:
    data = read_json(text_of(line))
    if not isinstance(data, dict) or not isinstance(data.get("filter"), str) or data.keys() != {"id", "filter"}:
        raise InvalidEvent('expected {"id": ..., "filter": "..."}')
    id = data["id"]
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise InvalidEvent("expected an id that is a string or an integer")
    return str(id), data["filter"]


class EventTable(NamedTuple):
    """Where a table of events is, and which of its files are damaged. What was `made` holds events alone."""

    path: Path
    made: bool
    damaged: frozenset[Path] = frozenset()

    def read(self, spark: Any) -> Any:
        """The table as a DataFrame, without the files that are damaged."""
        from vestnik.spark.lake import events, literal

        if (self.path / LOG).is_dir():
            return events(spark, self.path, without=self.damaged)
        whole = [path for path in _files(self.path) if path not in self.damaged]
        return spark.read.option("basePath", str(self.path)).parquet(*literal(whole if self.damaged else [self.path]))


class JournalTable(NamedTuple):
    """The journal in the data folder of a broker: a table that tasks make in `work`, a range of positions each."""

    folder: Path
    work: Path
    unread: Unreadable
    made: bool = True

    def read(self, spark: Any) -> Any:
        """The table as a DataFrame."""
        from vestnik.spark.ingest import on

        self.work.mkdir()
        with open_journal(self.folder) as journal:
            say_dropped(journal)
            broker, before, last = journal.broker, journal.first() - 1, journal.last()
        ends = list(stretches(before, last, POSITIONS)) or [(before, last)]
        parts = [JournalPart(str(self.folder), broker, *each, self.work) for each in ends]
        paths: list[str] = []
        for path, missing in on(spark)(stage_journal, parts):
            paths.append(path)
            for one in missing:
                self.unread.add(*one)
        return spark.read.parquet(*paths)


def say_dropped(journal: Journal) -> None:
    """Write to standard error how much retention dropped, for a command that reads what is there."""
    first = journal.first()
    if dropped := first - journal.beginning():
        gone = f"{dropped:,} positions before it" if dropped > 1 else "position before it"
        click.echo(
            f"vestnik: the journal of {journal.broker} begins with position {first:,}: retention dropped the {gone}, "
            "and the result is of what is kept",
            err=True,
        )


def event_table(name: str, work: Path, unread: Unreadable) -> EventTable | JournalTable:
    """The table of the events at `name`: there, or in the folder `work` where it has to be made."""
    folder = Path(name)
    if not folder.is_dir():
        _stage(work, lambda stage: _put_lines(name, stage, unread))
    elif (folder / JOURNAL).is_dir():
        return JournalTable(folder.absolute(), work, unread)
    elif (folder / LOG).is_dir() or next(folder.glob("**/*.parquet"), None) is not None:
        return EventTable(folder, made=False, damaged=_damaged(folder, unread))
    else:
        raise Refused(f"{name} is neither a lake or a folder of Parquet files, nor the data folder of a broker")
    return EventTable(work, made=True)


def _files(table: Path) -> list[Path]:
    """The Parquet files of a lake, or of a folder as Spark reads it: what begins with _ or a dot is none of them."""
    if (table / LOG).is_dir():
        return list(map(Path, Lake(table).paths()))
    found = [path for path in sorted(table.glob("**/*.parquet")) if path.is_file()]
    return [path for path in found if not any(part[0] in "_." for part in path.relative_to(table).parts)]


def _damaged(table: Path, unread: Unreadable) -> frozenset[Path]:
    """The files that have no end, where a Parquet file says what is in it; Refused where that is all of them."""
    files = _files(table)
    damaged: list[Path] = []
    for path in files:
        if reason := why_unreadable(path):
            damaged.append(path)
            unread.add("event", str(path), f"the file is damaged, or not there: {reason}")
    if files and len(damaged) == len(files):
        raise Refused(f"{table}: none of its files can be read")
    return frozenset(damaged)


def _stage(work: Path, put: Callable[[Any], None]) -> None:
    work.mkdir()
    with event_stage(work / "events.parquet") as stage:
        put(stage)


def _put_lines(name: str, stage: Any, unread: Unreadable) -> None:
    with opened(name) as file, progress("events", file) as advance:
        for batch in batches(file):
            events: list[Event] = []
            for line in batch.lines:
                try:
                    events.append(Event.from_json(text_of(line)))
                except InvalidEvent as error:
                    unread.add("event", f"{shown_name(name)}:{line.number}", str(error), line.text)
            stage.put_events(events)
            advance(batch.size)
