"""`vestnik pipeline run`"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from vestnik.cli.check import check_files
from vestnik.cli.inputs import Refused
from vestnik.cli.outputs import echo_json
from vestnik.cli.pipeline.ingest import say_losses
from vestnik.cli.pipeline.inputs import QUARANTINE, Unreadable, stage_subscriptions
from vestnik.cli.pipeline.outputs import replaced_whole
from vestnik.cli.pipeline.progress import task_progress
from vestnik.cli.running import running
from vestnik.spark.shards import compile_subscriptions
from vestnik.spark.staging import write_quarantine
from vestnik.spark.temporary import temporary
from vestnik.spark.whole import Performance, Plan, Stage, Whole, read_plan, render

REPORT = "report.html"
MARK = ".vestnik-run"
"""In a folder that this command may replace."""
NOT_RIGHT = 1


@click.command(
    "run",
    epilog="Exit codes: 0 done; 1 done, but some was lost or could not be read, or the traces are not right; "
    "2 wrong input.",
)
@click.argument("config", metavar="CONFIG.toml", type=click.Path(path_type=Path))
@click.option("--master", metavar="MASTER", help="Where Spark runs, as spark://HOST:PORT.  [default: here, all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(ctx: click.Context, config: Path, master: str | None, as_json: bool) -> None:
    """Do all that CONFIG.toml says: take in, match, derive, verify, and write a report.

    The tables and report.html are in the folder `out` that it names. What an earlier run left there is replaced when
    this one is done.
    """
    plan = read_plan(config)
    if plan.verify is not None:
        check_files(plan.verify.traces)
    out = Path(plan.out)
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MARK).is_file())):
        raise Refused(f"{out} is there already, and was not made by this command; name a folder that is new or empty")
    with replaced_whole(out) as new:
        whole = _perform(plan, new, master, (lambda stage: None) if as_json else _print_stage)
        (new / MARK).touch()
        (new / REPORT).write_text(render(whole, f"What {config.name} found"), encoding="utf-8")
    if as_json:
        echo_json({"report": str(out / REPORT), **msgspec.to_builtins(whole)})
    else:
        say_losses(whole.losses, Path(plan.lake))
        _print_rest(whole, out / REPORT)
    ctx.exit(0 if whole.is_right else NOT_RIGHT)


def _perform(plan: Plan, folder: Path, master: str | None, told: Callable[[Stage], None]) -> Whole:
    unread = Unreadable()
    with running(master, "vestnik run") as spark:
        doing = Performance(spark, plan, folder, lambda stage: task_progress(spark, stage), told)
        doing.take_in()
        if plan.match is not None:
            with temporary("vestnik-run-") as work:
                path = work / "subscriptions.parquet"
                lines = stage_subscriptions(plan.match.subscriptions, path, unread)
                _match(doing, spark.read.parquet(str(path)), plan.match.subscriptions, lines, unread)
                write_quarantine(folder / "match" / QUARANTINE, unread.rows)
        doing.derive()
        if plan.verify is not None:
            doing.verify(plan.verify)
        return doing.whole


def _match(doing: Performance, texts: Any, name: str, lines: dict[str, int], unread: Unreadable) -> None:
    no_subscriptions = len(unread.rows)
    with task_progress(texts.sparkSession, "compiling subscriptions"):
        compiled = compile_subscriptions(texts)
    for one in compiled.rejected:
        place = f"{name}:{lines.get(one.id or '', 0)}"
        unread.add("subscription", place, f"{one.id}: {one.reason}", (one.filter or "").encode())
    doing.match(compiled, texts, no_subscriptions)


def _print_stage(stage: Stage) -> None:
    left = f", {stage.left_out:,} left out" if stage.left_out else ""
    made = f"{stage.made:>12,} {stage.of}{left}"
    click.echo(f"{stage.stage:<12}{stage.read:>12,} read  {made}  ({stage.seconds:.1f} s)")


def _print_rest(whole: Whole, page: Path) -> None:
    for row in whole.latency[:1]:
        p50, p99 = row["p50"] * 1000, row["p99"] * 1000
        times = f"p50 {p50:,.2f} ms, p99 {p99:,.2f} ms, most {row['max']:.3g} s"
        click.echo(f"latency     {times}, with what waited for those who were away")
    click.echo(f"report      {page}")
