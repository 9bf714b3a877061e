"""`vestnik filter match`"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import click

from vestnik.cli.events import Faults, printable, read_events, text_of
from vestnik.cli.finder import Finder
from vestnik.cli.inputs import Refused, check_one_standard_input, opened, shown_name
from vestnik.cli.lines import Line, batches
from vestnik.cli.outputs import json_line
from vestnik.cli.progress import progress
from vestnik.errors import VestnikError
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.strict_json import read_json

Id: TypeAlias = str | int


class Named(NamedTuple):
    """A filter and the id it goes by."""

    id: Id
    wanted: Filter


@click.command(
    "match",
    epilog="Exit codes: 0 all events were read; 1 some lines hold no event, the others were matched; "
    "2 a filter or a file is wrong, nothing was matched.",
)
@click.argument("filters", metavar="FILTERS.jsonl")
@click.argument("events", metavar="EVENTS.jsonl")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.option("--counts", is_flag=True, help="Print how many filters match, not which.")
@click.pass_context
def command(ctx: click.Context, filters: str, events: str, as_json: bool, counts: bool) -> None:
    """Find the filters that each event matches.

    A line of FILTERS.jsonl is {"id": ..., "filter": "..."}; a line of EVENTS.jsonl is an event. One of the two may be
    -, which is standard input. Blank lines are passed over.

    For each event one line is printed, in the order of the file: the number of its line, its id and the ids of its
    filters, between tabs. An id that could be mistaken for something else is written as in JSON.
    """
    check_one_standard_input(filters, events)
    named = read_filters(filters)
    if not named:
        click.echo(f"vestnik: {shown_name(filters)} holds no filters, so nothing matches", err=True)
    finder = Finder([one.wanted for one in named])
    ids = [one.id if as_json else shown_id(one.id) for one in named]
    write = _json_line if as_json else _text_line
    faults = Faults(events)
    any_event = False
    with opened(events) as file, progress("matching", file) as advance:
        for batch in batches(file):
            numbers, found = read_events(batch.lines, faults)
            any_event = any_event or bool(found)
            answers: Sequence[int | list[Id]]
            if counts:
                answers = finder.count(found)
            else:
                answers = [[ids[position] for position in positions] for positions in finder.find(found)]
            _print("".join(map(write, numbers, found, answers)))
            advance(batch.size)
    if faults.count:
        rest = "the others were matched" if any_event else "no line holds an event; write each event on one line"
        click.echo(f"vestnik: {faults.summary()}; {rest}", err=True)
        ctx.exit(1)


def read_filters(name: str) -> list[Named]:
    """The filters in a file; Refused, after its bad lines were reported, where it has any."""
    found: dict[Id, Filter] = {}
    faults = Faults(name)
    with opened(name) as file, progress("reading filters", file) as advance:
        for batch in batches(file):
            for line in batch.lines:
                try:
                    id, wanted = read_filter(line)
                    if id in found:
                        raise Refused(f"the id {json.dumps(id)} is taken by an earlier line; give each its own")
                    found[id] = wanted
                except (Refused, VestnikError) as error:
                    faults.add(line.number, str(error))
            advance(batch.size)
    if faults.count:
        raise Refused(f"{faults.summary()}; correct the file: nothing was matched")
    return [Named(id, wanted) for id, wanted in found.items()]


def read_filter(line: Line) -> Named:
    """The filter that a line holds; Refused or VestnikError where it holds none."""
    data = read_json(text_of(line))
    if not isinstance(data, dict) or not isinstance(data.get("filter"), str):
        raise Refused('expected {"id": ..., "filter": "..."}')
    if unknown := sorted(data.keys() - {"id", "filter"}):
        raise Refused(f'{json.dumps(unknown[0])} is unknown; expected {{"id": ..., "filter": "..."}}')
    id = data.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise Refused("expected an id that is a string or an integer")
    return Named(id, Filter.parse(data["filter"]))


def shown_id(id: Id) -> str:
    """`id` as it is where nothing else looks like it, else as JSON."""
    if isinstance(id, int) or not id.isprintable() or id.removeprefix("-").isdecimal() or {*' ,"'} & {*id}:
        return json.dumps(id)
    return id or '""'


def _json_line(number: int, event: Event, answer: int | list[Id]) -> str:
    key = "matches" if isinstance(answer, int) else "filters"
    return json_line({"line": number, "source": event.source, "id": event.id, key: answer})


def _text_line(number: int, event: Event, answer: int | list[Id]) -> str:
    cell = str(answer) if isinstance(answer, int) else ",".join(map(str, answer))
    return f"{number}\t{printable(event.id)}\t{cell}\n"


def _print(text: str) -> None:
    if sys.stdout is not None:
        sys.stdout.write(text)
        sys.stdout.flush()
