"""`vestnik sim ...`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "sim",
    cls=LazyGroup,
    commands_from={
        "explore": ("vestnik.cli.sim.explore:command", "Try all that can happen in a small world, in every order."),
        "run": ("vestnik.cli.sim.run:command", "Simulate a scenario and print what it comes to."),
        "soak": ("vestnik.cli.sim.soak:command", "Simulate many random scenarios and check each."),
    },
)
def group() -> None:
    """Simulate brokers and clients in virtual time, with faults."""
