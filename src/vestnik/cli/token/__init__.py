"""`vestnik token`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "token", cls=LazyGroup, commands_from={"new": ("vestnik.cli.token.new:command", "Make a token for somebody.")}
)
def group() -> None:
    """Tokens, by which clients prove who they are."""
