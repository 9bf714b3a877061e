"""`vestnik pipeline ingest`"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from msgspec import to_builtins

from vestnik.cli.outputs import echo_json
from vestnik.cli.pipeline.progress import task_progress
from vestnik.cli.running import running
from vestnik.lake.losses import Loss

SOME_LOST = 1


@click.command(
    "ingest",
    epilog="Exit codes: 0 done; 1 done, but since the last run positions were lost: dropped by retention, damaged, or "
    "no events; 2 a journal or the lake cannot be read.",
)
@click.option(
    "--from",
    "journals",
    multiple=True,
    required=True,
    metavar="FOLDER|URL",
    help="The data folder of a broker, or where it runs; once for each broker.",
)
@click.option(
    "--lake", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Made if it is not there."
)
@click.option(
    "--types",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="TOML: which paths of which types are columns of their own.",
)
@click.option("--master", metavar="MASTER", help="Where Spark runs; without it, on all cores of this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context, journals: tuple[str, ...], lake: Path, types: Path | None, master: str | None, as_json: bool
) -> None:
    """Take what brokers have taken into one table of events, each event once.

    What was taken in before is not read again. It may be killed at any time and run again. Positions that are lost
    are rows of the lake's quarantine; each run reports those that it found.
    """
    from vestnik.lake.declared import read_declared
    from vestnik.spark.ingest import ingest

    declared = None if types is None else read_declared(types)
    with running(master, "vestnik ingest") as spark, task_progress(spark, "ingest"):
        done = ingest(spark, journals, lake, declared=declared)
    if as_json:
        losses = [to_builtins(one) for one in done.losses]
        found = {"events": done.events, "again": done.again, "lost": done.lost(), "losses": losses}
        echo_json({**found, "version": done.version})
    else:
        click.echo(f"{done.events:,} new events, {done.again:,} that were there or came twice; version {done.version}")
        say_losses(done.losses, lake)
    ctx.exit(SOME_LOST if done.losses else 0)


def say_losses(losses: Iterable[Loss], lake: Path) -> None:
    """Write each loss to standard error, and where it can be looked up."""
    for one in losses:
        click.echo(f"vestnik: {one}; see {lake / 'quarantine'}", err=True)
