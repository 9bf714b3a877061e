"""`vestnik demo`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vestnik.cli.lazy import LazyGroup
from vestnik.cli.loops import run

PAGE = Path("vestnik-demo.html")
UNWATCHED = 20.0
"""Seconds for which it plays where nobody sits at a terminal."""


@click.group(
    "demo",
    cls=LazyGroup,
    invoke_without_command=True,
    commands_from={"filters": ("vestnik.cli.demo.filters:command", "A tour of the filter language.")},
    epilog="Exit codes: 0 all is right; 1 something was lost, or the traces are not right; 130 interrupted.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    metavar="N",
    help="About how long it plays.  [default: until Ctrl-C; 20 where the output is no terminal]",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default=PAGE,
    show_default=True,
    metavar="FILE",
    help="Where the report of the pipeline goes.",
)
@click.option("--no-report", is_flag=True, help="End without the pipeline, which takes half a minute.")
@click.pass_context
def group(ctx: click.Context, seconds: float | None, report: Path, no_report: bool) -> None:
    """Three brokers in a line, a market that is fed when somebody wants to know, and desks that do.

    The desk that follows a price moves its filter with it, one comes late and begins with the past, one asks why it did
    not get an event. The broker in the middle is killed and comes back. At the end all is added up, `vestnik check`
    reads what the brokers wrote, and the pipeline makes a page of it. Ctrl-C ends the play; pressed again, at once.
    Nothing is left behind but the page.
    """
    if ctx.invoked_subcommand is None:
        from vestnik.cli.demo.theatre import perform

        is_watched = sys.stdout is not None and sys.stdout.isatty()
        page = None if no_report else report.absolute()
        ctx.exit(run(perform(seconds or (None if is_watched else UNWATCHED), page)))
