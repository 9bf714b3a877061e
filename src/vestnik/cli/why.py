"""`vestnik why`"""

from __future__ import annotations

import click
from msgspec import to_builtins

from vestnik.cli.asking import connected, url_option
from vestnik.cli.events import printable
from vestnik.cli.loops import run
from vestnik.cli.outputs import echo_json
from vestnik.services.inquest import inquire
from vestnik.services.views import Story, clock

NOT = 1


@click.command(
    "why",
    epilog="Exit codes: 0 it was delivered, or without --client a broker took it; 1 it was not; 2 no broker answers.",
)
@click.argument("event_id", metavar="EVENT_ID")
@click.option("--client", metavar="NAME", help="Why did this client get it, or not?")
@click.option("--source", metavar="SOURCE", help="The source of the event, where several have one of that id.")
@url_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context, event_id: str, client: str | None, source: str | None, url: str | None, as_json: bool
) -> None:
    """Say where an event went and where it stopped: which broker, which subscription, which constraint, and why.

    All brokers within reach of the one at URL are asked. They remember the last few thousand events.
    """
    found = run(_inquire(url, event_id, source, client))
    if as_json:
        echo_json(to_builtins(found))
    else:
        _print(found)
    ctx.exit(0 if found.is_delivered else NOT)


async def _inquire(url: str | None, id: str, source: str | None, client: str | None) -> Story:
    async with connected(url) as bus:
        return await inquire(bus, id, source=source, client=client)


def _print(found: Story) -> None:
    """The verdict, the event, and what happened, in its order."""
    click.echo(printable(f"{found.verdict}: {found.said}"))
    if found.event is not None:
        click.echo(printable(f"  event {found.event['id']} from {found.event['source']}, {found.event['type']}"))
    width = max([len(step.broker) for step in found.steps], default=0)
    for step in found.steps:
        at = " " * 24 if step.at is None else clock(step.at)
        click.echo(printable(f"  {at}  {step.broker:{width}}  {step.said}"))
