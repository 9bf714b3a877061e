"""`vestnik filter explain`"""

from __future__ import annotations

import json

import click

from vestnik.cli.inputs import parsed, read_event


@click.command("explain", epilog="Exit codes: 0 the event matches; 1 it does not; 2 wrong input.")
@click.argument("text")
@click.argument("event", metavar="EVENT.json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(ctx: click.Context, text: str, event: str, as_json: bool) -> None:
    """Say why the event in EVENT.json matches the filter TEXT, or why not.

    Every constraint is shown with the value it saw; for a miss, the smallest set of constraints that failed. EVENT.json
    is a CloudEvent, or the short form that needs only a type; - is standard input.
    """
    explanation = parsed(text).explain(read_event(event))
    click.echo(json.dumps(explanation.to_dict(), ensure_ascii=False) if as_json else explanation)
    ctx.exit(0 if explanation.matches else 1)
