"""`vestnik filter check`"""

from __future__ import annotations

import click

from vestnik.cli.inputs import parsed
from vestnik.cli.outputs import echo_json
from vestnik.model.filters import Filter
from vestnik.model.printer import path_text
from vestnik.model.spaces import EVENT


@click.command("check", epilog="Exit codes: 0 a filter; 2 not a filter, or beyond a limit.")
@click.argument("text")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(text: str, as_json: bool) -> None:
    """Check the filter TEXT and print its normal form.

    Where TEXT is no filter, the message names the column and what was expected there.
    """
    wanted = parsed(text)
    if as_json:
        echo_json(facts(wanted))
    else:
        click.echo(wanted)
        click.echo(summary(wanted))


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
            return f"{counts}: matches nothing, its conditions contradict each other or are FALSE"
        case "all":
            return f"{counts}: matches every event"
        case _:
            return counts


def paths(wanted: Filter) -> list[str]:
    """The paths that a filter looks at."""
    used = {path for box in wanted.region.boxes for path in (*dict(box.sets), *(at for at, _, _ in box.literals))}
    return [path_text(EVENT, path) for path in sorted(used)]


def extent(wanted: Filter) -> str:
    if not wanted.region.boxes:
        return "none"
    return "all" if wanted.covers(Filter.all()) else "some"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
