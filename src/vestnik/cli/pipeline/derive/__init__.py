"""`vestnik pipeline derive ...`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "derive",
    cls=LazyGroup,
    commands_from={
        "candles": ("vestnik.cli.pipeline.derive.candles:command", "First, highest, lowest and last value by window."),
        "rates": ("vestnik.cli.pipeline.derive.rates:command", "How many events there are by window."),
        "triggers": ("vestnik.cli.pipeline.derive.triggers:command", "Values that cross a threshold, rise or fall."),
    },
)
def group() -> None:
    """Make new events of old ones, and publish or keep them."""
