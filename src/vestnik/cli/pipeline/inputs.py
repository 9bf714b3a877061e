"""What the stages of the pipeline are given: subscriptions in files, events in files, lakes and data folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from vestnik.cli.events import LONGEST_REASON, REPORTED, printable, text_of
from vestnik.cli.inputs import Refused, opened, shown_name
from vestnik.cli.lines import Line, batches
from vestnik.cli.progress import progress
from vestnik.errors import InvalidEvent
from vestnik.journal.folders import JOURNAL
from vestnik.lake.journals import open_journal
from vestnik.model.events import Event
from vestnik.model.strict_json import read_json
from vestnik.spark.staging import Unread, event_stage, subscription_stage
from vestnik.wire.leaves import opened as opened_page


class Unreadable:
    """All that could not be read; the first of each kind are said on standard error."""

    def __init__(self) -> None:
        self.rows: list[Unread] = []

    def add(self, kind: str, place: str, reason: str, payload: bytes | None = None) -> None:
        self.rows.append(Unread(kind, place, reason, payload))
        if self.count(kind) <= REPORTED:
            reason = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."
            click.echo(f"{printable(place)}: {printable(reason)}", err=True)

    def count(self, kind: str) -> int:
        return sum(1 for row in self.rows if row.kind == kind)


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


def event_table(name: str, work: Path, unread: Unreadable) -> str:
    """Where the table of the events at `name` is: there, or in the folder `work` where it had to be made."""
    folder = Path(name)
    if not folder.is_dir():
        _stage(work, lambda stage: _put_lines(name, stage, unread))
    elif (folder / JOURNAL).is_dir():
        _stage(work, lambda stage: _put_journal(folder, stage, unread))
    elif next(folder.rglob("*.parquet"), None) is not None:
        return str(folder)
    else:
        raise Refused(f"{name} is neither a lake, which holds Parquet files, nor the data folder of a broker")
    return str(work)


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


def _put_journal(folder: Path, stage: Any, unread: Unreadable) -> None:
    with open_journal(folder) as journal:
        for page in journal.pages():
            taken, missing = opened_page(page)
            stage.put_taken(taken, journal.broker)
            for one in missing:
                place = f"{folder}, position {one.first}" + (f" to {one.last}" if one.last > one.first else "")
                unread.add("event", place, one.reason, one.payload)
