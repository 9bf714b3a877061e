"""`vestnik lab list`"""

from __future__ import annotations

import click

from vestnik.lab.experiments import titles


@click.command("list")
def command() -> None:
    """List the experiments."""
    for name, title in titles().items():
        click.echo(f"{name:<12}{title}")
