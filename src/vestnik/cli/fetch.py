"""`vestnik fetch`"""

from __future__ import annotations

import click

from vestnik.cli.asking import connected, url_option
from vestnik.cli.inputs import Refused, parsed
from vestnik.cli.loops import run
from vestnik.client.past import Past
from vestnik.model.filters import Filter
from vestnik.wire.replays import Replay

NOT_ALL = 1


@click.command(
    "fetch",
    epilog="Exit codes: 0 there are some; 1 there are none, or some may be missing; 2 wrong input, or no broker.",
)
@click.argument("filter", metavar="FILTER")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The newest so many.")
@click.option("--since", metavar="TIME", help="Those since a time, as 2026-05-01T12:30:00Z.")
@click.option("--latest-by", metavar="PATH", help="Of each value of a path, the latest.")
@url_option
@click.pass_context
def command(
    ctx: click.Context, filter: str, limit: int, since: str | None, latest_by: str | None, url: str | None
) -> None:
    """Print past events that match FILTER, oldest first, one a line, as JSON. It does not wait for others."""
    try:
        Replay(last=limit, since=since, latest_by=latest_by)
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from None
    found = run(_fetch(parsed(filter), limit, since, latest_by, url))
    for event in found:
        click.echo(event.to_json())
    if len(found) == limit and ctx.get_parameter_source("limit") is click.core.ParameterSource.DEFAULT:
        click.echo(f"vestnik: these are the newest {limit}; --limit asks for more", err=True)
    ctx.exit(0 if found and not found.missing else NOT_ALL)


async def _fetch(wanted: Filter, limit: int, since: str | None, latest_by: str | None, url: str | None) -> Past:
    async with connected(url) as bus:
        return await bus.fetch(wanted, limit=limit, since=since, latest_by=latest_by)
