"""`vestnik lab run`"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from vestnik.cli.inputs import Refused
from vestnik.cli.outputs import echo_json
from vestnik.cli.progress import share_progress
from vestnik.lab.experiments import Experiment, find
from vestnik.lab.notebook import Notebook, Task, measure
from vestnik.lab.parallel import Bench, Cores, Pool
from vestnik.lab.results import Result, write
from vestnik.lab.routing import Measured, Setting, check_loads
from vestnik.lab.statistics import estimate
from vestnik.report.numbers import number

OF_ONE = "advertisements form subscriptions seeds operations tolerance locality zipf producers".split()
"""The options that mean something for one strategy only."""
SOME_FAILED = 1
REPORTED = 10
"""Cells that failed and are named on standard error."""
INCOMPLETE = "Too many cells failed for a verdict"
WIDTHS = (14, 24, 12, 20, 20, 12)
"""Of the columns of what is printed for people."""


@click.command(
    "run", epilog="Exit codes: 0 done; 1 some cells failed; 2 there is no such experiment, or a setting is wrong."
)
@click.argument("name")
@click.option("--out", metavar="DIR", help="Write everything to this folder, and go on from what is there.")
@click.option("--full", is_flag=True, help="The large experiment, instead of one that takes a minute or two.")
@click.option("--jobs", type=click.IntRange(1), help="How many cores to use.  [default: all]")
@click.option("--spark", "master", metavar="MASTER", help="Run on Spark: local[2], or spark://HOST:PORT.")
@click.option("--json", "as_json", is_flag=True, help="Print each row as a JSON object.")
@click.option("--strategy", help="routing: measure this strategy alone.")
@click.option("--advertisements", is_flag=True, help="routing, with --strategy: with advertisements.")
@click.option("--form", default="equality", show_default=True, help="routing, with --strategy: equality or interval.")
@click.option("--subscriptions", default="100,500", show_default=True, help="routing, with --strategy: x, or several.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="routing, with --strategy: runs.")
@click.option(
    "--operations",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="routing, with --strategy: how many subscriptions and their ends the messages are a mean of.",
)
@click.option("--tolerance", type=float, default=0.0, help="routing, with --strategy: of imperfect merging.")
@click.option(
    "--locality", type=float, default=0.0, help="routing, with --strategy: share of interests near the broker."
)
@click.option("--zipf", type=float, default=0.0, help="routing, with --strategy: exponent of the stocks' popularity.")
@click.option("--producers", type=int, default=0, help="routing, with --strategy: that many, not at the root router.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    name: str,
    out: str | None,
    full: bool,
    jobs: int | None,
    master: str | None,
    as_json: bool,
    strategy: str | None,
    subscriptions: str,
    seeds: int,
    operations: int,
    **setting: Any,
) -> None:
    """Run the experiment NAME and print what becomes of each claim of the paper.

    With --strategy the experiment routing measures one strategy alone, and prints what it measures. A cell that fails
    is a row of the table NAME-failed; the others go on. Run again with the same --out, it does what is not done.
    """
    try:
        experiment = find(name)
    except ValueError as error:
        raise Refused(str(error)) from None
    folder = None if out is None else Path(out)
    if master is not None and jobs is not None:
        raise Refused("--jobs is for this machine: how many cores Spark uses is said in its --spark, such as local[2]")
    alone: tuple[Setting, list[int]] | None = None
    if strategy is None:
        _check_whole(ctx)
    else:
        _check_alone(name, full)
        alone = _setting(strategy, setting), _loads(subscriptions)
    with _pool(master, jobs) as pool, share_progress(strategy or name) as advance:
        bench = Bench(pool, advance, folder)
        if alone is not None:
            _measure(*alone, seeds, operations, bench, as_json)
        else:
            _run(experiment, full, bench, as_json)
    for failed in bench.failed[:REPORTED]:
        click.echo(f"vestnik: {failed.of} failed for {failed.task}: {failed.error}", err=True)
    ctx.exit(SOME_FAILED if bench.failed else 0)


@contextmanager
def _pool(master: str | None, jobs: int | None) -> Iterator[Pool]:
    if master is None:
        yield Cores(jobs or os.cpu_count() or 1)
        return
    from vestnik.cli.running import running
    from vestnik.spark.sweep import Sweep

    with running(master, "vestnik lab") as spark:
        yield Sweep(spark)


def _run(experiment: Experiment, full: bool, bench: Bench, as_json: bool) -> None:
    try:
        result = experiment.run(full, bench)
    except Exception:
        if not bench.failed:
            raise
        result = Result(name=experiment.name, title=INCOMPLETE, settings={}, tables={}, claims=[], figures=[])
    if bench.failed:
        result.tables[f"{experiment.name}-failed"] = [one._asdict() for one in bench.failed]
    if bench.folder is not None:
        for path in write(result, bench.folder, experiment.draw if result.figures else _nothing):
            click.echo(f"written: {path}", err=True)
    _print(result, as_json)


def _nothing(result: Result, folder: Path) -> None:
    """There are no figures to be drawn."""


def _check_alone(name: str, full: bool) -> None:
    if name != "routing":
        raise Refused(f"--strategy is for the experiment routing, not for {name}")
    if full:
        raise Refused("--full is for a whole experiment: leave out --strategy")


def _check_whole(ctx: click.Context) -> None:
    """Settings of one strategy mean nothing without it."""
    for option in OF_ONE:
        if ctx.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
            raise Refused(f"--{option} needs --strategy; a whole experiment has its own settings")


def _setting(strategy: str, others: dict[str, Any]) -> Setting:
    try:
        return Setting(strategy=strategy, **others)
    except ValueError as error:
        raise Refused(str(error)) from None


def _loads(text: str) -> list[int]:
    """Whole numbers with commas between them."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise Refused(f"--subscriptions takes whole numbers with commas between them, not {text!r}")
    try:
        return check_loads([int(part) for part in parts])
    except ValueError as error:
        raise Refused(f"--subscriptions: {error}") from None


def _measure(setting: Setting, loads: list[int], seeds: int, operations: int, bench: Bench, as_json: bool) -> None:
    rows: list[Measured] = []
    tasks = [Task(setting, loads, seed, operations) for seed in range(1, seeds + 1)]
    for found in measure(tasks, Notebook(bench.folder), bench):
        rows += found
        if as_json:
            for row in found:
                echo_json(row.as_row())
    if not as_json:
        click.echo("\n".join(_table(rows, loads)))


def _table(rows: list[Measured], loads: list[int]) -> Iterator[str]:
    """Means with their standard errors, a line for each load."""
    heads = ("subscriptions", "entries", "exact", "admin_subscribe", "admin_unsubscribe", "exact")
    yield "".join(f"{head:>{width}}" for head, width in zip(heads, WIDTHS, strict=True))
    for load in loads:
        here = [row for row in rows if row.subscriptions == load]
        if not here:
            continue
        entries = estimate([row.entries for row in here])
        told = estimate([row.admin_subscribe for row in here])
        ended = estimate([row.admin_unsubscribe for row in here])
        exact_entries, exact_admin = _exact(here[0].exact_entries), _exact(here[0].exact_admin)
        cells = (f"{load:,}", str(entries), exact_entries, str(told), str(ended), exact_admin)
        yield "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def _exact(value: float | None) -> str:
    return "-" if value is None else number(round(value, 9))


def _print(result: Result, as_json: bool) -> None:
    if not as_json:
        click.echo("\n\n".join(map(str, result.claims)))
        return
    for name, rows in result.tables.items():
        for row in rows:
            echo_json({"table": name} | row)
