"""Events in files, one a line; lines that hold none are reported and passed over."""

from __future__ import annotations

import click

from vestnik.cli.inputs import shown_name
from vestnik.cli.lines import LONGEST, Line
from vestnik.errors import InvalidEvent
from vestnik.model.events import Event

REPORTED = 10
"""Bad lines of a file that are reported one by one; the others are counted."""
LONGEST_REASON = 400

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


class Faults:
    """The lines of a file that could not be read."""

    def __init__(self, name: str) -> None:
        self._name = shown_name(name)
        self.count = 0

    def add(self, number: int, reason: str) -> None:
        self.count += 1
        if self.count <= REPORTED:
            click.echo(f"{self._name}:{number}: {reason}", err=True)

    def summary(self) -> str:
        lines = "1 line" if self.count == 1 else f"{self.count:,} lines"
        shown = f" (the first {REPORTED} are shown)" if self.count > REPORTED else ""
        return f"{self._name}: {lines} could not be read{shown}"


def read_events(lines: list[Line], faults: Faults) -> tuple[list[int], list[Event]]:
    """The line numbers and the events of the lines that hold one; the others go to `faults`."""
    numbers, events = [], []
    for line in lines:
        try:
            events.append(Event.from_json(text_of(line)))
            numbers.append(line.number)
        except InvalidEvent as error:
            faults.add(line.number, printable(_shorten(str(error))))
    return numbers, events


def text_of(line: Line) -> bytes:
    if line.text is None:
        raise InvalidEvent(f"the line is longer than {LONGEST >> 20} MiB")
    return line.text


def printable(text: str) -> str:
    """`text` on one line, without what a terminal would obey."""
    return text.translate(_CONTROLS)


def _shorten(reason: str) -> str:
    """`reason`, cut where nobody reads on: it may name something long in the event."""
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."
