"""`vestnik adv`"""

from __future__ import annotations

import asyncio

import click

from vestnik.cli.asking import connected, url_option
from vestnik.cli.inputs import parsed
from vestnik.cli.loops import run
from vestnik.model.filters import Filter


@click.command("adv", epilog="Exit codes: 0 the time is over; 2 wrong input, or no broker; 130 ended by Ctrl-C.")
@click.argument("filter", metavar="FILTER")
@url_option
@click.option("--name", metavar="NAME", help="What the broker knows this client by.  [default: at random]")
@click.option("-W", "--wait", type=click.FloatRange(0, min_open=True), help="End after so many seconds.")
def command(filter: str, url: str | None, name: str | None, wait: float | None) -> None:
    """Advertise what matches FILTER, until Ctrl-C.

    Where brokers run with --advertisements, subscriptions go only where something that they want is advertised.
    """
    run(_advertise(parsed(filter), url, name, wait))


async def _advertise(offered: Filter, url: str | None, name: str | None, wait: float | None) -> None:
    async with connected(url, name) as bus:
        taken_back_by = await bus.advertise(offered)
        click.echo(f"{bus.name} advertises {offered}", err=True)
        try:
            await asyncio.sleep(wait if wait is not None else float("inf"))
        finally:
            if bus.is_connected:
                await bus.unadvertise(taken_back_by)
