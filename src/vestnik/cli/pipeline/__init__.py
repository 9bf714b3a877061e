"""`vestnik pipeline ...`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup
from vestnik.spark.session import check_installed

ON_SPARK = frozenset({"run", "match", "derive", "verify"})
"""The others need it only where they are told to use it."""


class _Pipeline(LazyGroup):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ON_SPARK:
            check_installed()
        return super().get_command(ctx, cmd_name)


@click.group(
    "pipeline",
    cls=_Pipeline,
    commands_from={
        "ingest": ("vestnik.cli.pipeline.ingest:command", "Take the journals of brokers into a lake."),
        "compact": ("vestnik.cli.pipeline.compact:command", "Make few large files of a lake's many small ones."),
        "files": ("vestnik.cli.pipeline.files:command", "List the Parquet files of a lake."),
        "run": ("vestnik.cli.pipeline.run:command", "All of it, as a file says, with a report."),
        "match": (
            "vestnik.cli.pipeline.match:command",
            "Find the subscriptions that each of very many events matches.",
        ),
        "derive": ("vestnik.cli.pipeline.derive:group", "Make new events of old ones: candles, rates, triggers."),
        "verify": ("vestnik.cli.pipeline.verify:command", "Check very long traces: what is wrong, late or useless."),
    },
)
def group() -> None:
    """Work over stored or very many events, on Spark."""
