"""`vestnik link add` and `vestnik link remove`"""

from __future__ import annotations

import click

from vestnik.cli.asking import ask, broker_options

EPILOG = "Exit codes: 0 the broker has been told; 2 there is no broker, or it refused."


@click.command("add", epilog=EPILOG)
@click.argument("address", metavar="HOST:PORT")
@broker_options
def add(address: str, url: str | None, to: str) -> None:
    """Let a broker make a link to the one at HOST:PORT, and keep it until it ends."""
    click.echo(ask(url, "link.add", to, address=address)["said"], err=True)


@click.command("remove", epilog=EPILOG)
@click.argument("address", metavar="HOST:PORT")
@broker_options
def remove(address: str, url: str | None, to: str) -> None:
    """Let a broker end the link that it made to the one at HOST:PORT."""
    click.echo(ask(url, "link.remove", to, address=address)["said"], err=True)
