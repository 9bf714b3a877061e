"""`vestnik link`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "link",
    cls=LazyGroup,
    commands_from={
        "add": ("vestnik.cli.link.change:add", "Make a link and keep it."),
        "remove": ("vestnik.cli.link.change:remove", "End a link."),
    },
)
def group() -> None:
    """Links between brokers that run."""
