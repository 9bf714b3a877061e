"""`vestnik config`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "config",
    cls=LazyGroup,
    commands_from={"show": ("vestnik.cli.config.show:command", "The settings of a broker, and where they are from.")},
)
def group() -> None:
    """How a broker is set up."""
