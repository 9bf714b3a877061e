"""`vestnik lab ...`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "lab",
    cls=LazyGroup,
    commands_from={
        "list": ("vestnik.cli.lab.list:command", "List the experiments."),
        "run": ("vestnik.cli.lab.run:command", "Run an experiment."),
        "report": ("vestnik.cli.lab.report:command", "Put all results into one page."),
    },
)
def group() -> None:
    """Run the experiments of the papers, and see which of their claims hold."""
