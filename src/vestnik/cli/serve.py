"""`vestnik serve`"""

from __future__ import annotations

import asyncio
import secrets
import signal
from pathlib import Path

import click

from vestnik.cli.loops import run
from vestnik.server.process import Broker
from vestnik.server.settings import ROLES, Settings
from vestnik.transport.addresses import read_address

ENDS = signal.SIGTERM, signal.SIGINT


@click.command("serve", epilog="Exit codes: 0 ended when it was told to; 2 it could not be started.")
@click.option("--name", help="What others know it by; must be its own in the network.  [default: at random]")
@click.option("--listen", default="127.0.0.1:8020", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--join", multiple=True, metavar="HOST:PORT", help="A broker to be a neighbour of; may be repeated.")
@click.option("--routing", default="merging", show_default=True, metavar="STRATEGY", help="How to route.")
@click.option("--advertisements", is_flag=True, help="Let subscriptions go only where something is advertised.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Store what is published in there.")
@click.option(
    "--role", type=click.Choice(ROLES), default="broker", show_default=True, help="A router takes no clients."
)
def command(
    name: str | None,
    listen: str,
    join: tuple[str, ...],
    routing: str,
    advertisements: bool,
    data: Path | None,
    role: str,
) -> None:
    """Run a broker, until SIGTERM or Ctrl-C."""
    settings = Settings(
        name=name or f"broker-{secrets.token_hex(4)}",
        listen=read_address(listen),
        join=tuple(dict.fromkeys(map(read_address, join))),
        routing=routing,
        advertisements=advertisements,
        role=role,
        data=data,
    )
    run(_serve(settings))


async def _serve(settings: Settings) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ENDS:
        loop.add_signal_handler(number, ended.set)
    async with Broker(settings, lambda text: click.echo(text, err=True)):
        await ended.wait()
