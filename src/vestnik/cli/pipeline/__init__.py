"""`vestnik pipeline ...`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "pipeline",
    cls=LazyGroup,
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
