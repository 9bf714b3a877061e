"""`vestnik filter check`"""

from __future__ import annotations

from collections.abc import Iterator

import click

from vestnik.cli.inputs import filter_text, parsed
from vestnik.cli.outputs import echo_json
from vestnik.model import syntax
from vestnik.model.filters import Filter
from vestnik.model.meaning import region_of
from vestnik.model.parser import parse
from vestnik.model.printer import path_text
from vestnik.model.spaces import DATA, EVENT

_TEXT = "a string that is not empty"
_INSTANT = "an instant, written TIMESTAMP '2026-05-01T12:30:00Z'"
_HOLDS = {
    **dict.fromkeys(("id", "source", "type", "subject"), _TEXT),
    **dict.fromkeys(("time", "not_before", "expires"), _INSTANT),
    "priority": "an integer from 0 to 9",
    "seq": "an integer from 1",
}
"""What the attributes of the envelope are, where they are there."""


@click.command("check", epilog="Exit codes: 0 a filter; 2 not a filter, or beyond a limit.")
@click.argument("text")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(text: str, as_json: bool) -> None:
    """Check the filter TEXT and print its normal form.

    Where TEXT is no filter, the message names the column and what was expected there. A condition that no event can
    satisfy is pointed out. TEXT may be -, which is standard input.
    """
    text = filter_text(text)
    wanted = parsed(text)
    if as_json:
        echo_json(facts(wanted))
    else:
        click.echo(wanted)
        click.echo(summary(wanted))
    for name in dict.fromkeys(never_true(parse(text))):
        click.echo(f"vestnik: a condition on {name} is never true: {name} is {_HOLDS[name]}", err=True)


def facts(wanted: Filter) -> dict[str, object]:
    """What there is to say of a filter; `matches` is what share of all events it can match: none, some or all."""
    return {
        "filter": str(wanted),
        "boxes": len(wanted.region.boxes),
        "paths": paths(wanted),
        "matches": extent(wanted),
    }


def summary(wanted: Filter) -> str:
    counts = f"{_count(len(wanted.region.boxes), 'box', 'boxes')}, {_count(len(paths(wanted)), 'path', 'paths')}"
    match extent(wanted):
        case "none":
            return f"{counts}: matches nothing, its conditions contradict each other or are never true"
        case "all":
            return f"{counts}: matches every event"
        case _:
            return counts


def paths(wanted: Filter) -> list[str]:
    """The paths that a filter looks at."""
    used = {path for box in wanted.region.boxes for path in (*dict(box.sets), *(at for at, _, _ in box.literals))}
    return [path_text(EVENT, path) for path in sorted(used)]


def never_true(node: syntax.Node) -> Iterator[str]:
    """The attributes of the envelope that `node` has a condition on which none of their values can satisfy."""
    match node:
        case syntax.And(parts) | syntax.Or(parts):
            for part in parts:
                yield from never_true(part)
        case syntax.Not(inner):
            yield from never_true(inner)
        case syntax.Condition(path) | syntax.Quantified(path=path) | syntax.Added(path=path):
            if path[0] != DATA and not region_of(node, EVENT, None):
                yield path[0]


def extent(wanted: Filter) -> str:
    if not wanted.region.boxes:
        return "none"
    return "all" if wanted.covers(Filter.all()) else "some"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
