"""`vestnik filter relate`"""

from __future__ import annotations

from typing import Any

import click

from vestnik.cli.inputs import check_one_standard_input, filter_text, parsed
from vestnik.cli.outputs import echo_json
from vestnik.model.filters import Filter


@click.command("relate", epilog="Exit codes: 0 answered; 2 one of them is not a filter.")
@click.argument("first")
@click.argument("second")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(first: str, second: str, as_json: bool) -> None:
    """Say how the filters FIRST and SECOND relate.

    Whether one covers the other (matches all that the other matches), whether they are the same, whether some event
    matches both; the filter for exactly both, if there is a shorter one than the two; and one box around both, with
    the share of unwanted events it is estimated to let in. One of the two may be -, which is standard input.
    """
    check_one_standard_input(first, second)
    found = relations(parsed(filter_text(first), "first filter"), parsed(filter_text(second), "second filter"))
    if as_json:
        echo_json(found)
    else:
        click.echo("\n".join(lines(found)))


def relations(first: Filter, second: Filter) -> dict[str, Any]:
    merged = first.merge(second)
    hull = first.hull(second)
    return {
        "covers": first.covers(second),
        "covered": second.covers(first),
        "same": first.same_as(second),
        "overlaps": first.overlaps(second),
        "merge": None if merged is None else str(merged),
        "hull": {"filter": str(hull), "unwanted": round(hull.unwanted, 4)},
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The relations for people."""
    return [
        f"the first covers the second   {_yes(found['covers'])}",
        f"the second covers the first   {_yes(found['covered'])}",
        f"they match the same events    {_yes(found['same'])}",
        f"they overlap                  {_yes(found['overlaps'])}",
        f"merge (exactly both)          {found['merge'] or 'none shorter than the two'}",
        f"hull (one box around both)    {found['hull']['filter']}",
        f"  unwanted, estimated         {found['hull']['unwanted']:.1%}",
    ]


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"
