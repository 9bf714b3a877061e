"""`vestnik filter explain`"""

from __future__ import annotations

import click

from vestnik.cli.inputs import check_one_standard_input, filter_text, parsed, read_event
from vestnik.cli.outputs import echo_json


@click.command("explain", epilog="Exit codes: 0 the event matches; 1 it does not; 2 wrong input.")
@click.argument("text")
@click.argument("event", metavar="EVENT.json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(ctx: click.Context, text: str, event: str, as_json: bool) -> None:
    """Say why the event in EVENT.json matches the filter TEXT, or why not.

    Every constraint is shown with the value it saw; for a miss, the smallest set of constraints that failed. EVENT.json
    is a CloudEvent, or the short form that needs only a type. One of the two may be -, which is standard input.
    """
    check_one_standard_input(text, event)
    explanation = parsed(filter_text(text)).explain(read_event(event))
    if as_json:
        echo_json(explanation.to_dict())
    else:
        click.echo(explanation)
    ctx.exit(0 if explanation.matches else 1)
