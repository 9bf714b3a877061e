"""`vestnik pipeline verify`"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vestnik.cli.check import EXITS, check_files, echo_violations, held_to, say_cut, say_doubts, summary
from vestnik.cli.events import printable
from vestnik.cli.inputs import Refused, opened
from vestnik.cli.pipeline.outputs import check_new, written_whole
from vestnik.cli.pipeline.progress import task_progress
from vestnik.cli.running import running
from vestnik.spark.given import check_given
from vestnik.spark.slices import Run, runs
from vestnik.spark.traces import CUT, END, read_traces
from vestnik.spark.verify import latency, useless, violation_of, violations
from vestnik.trace.files import Reader
from vestnik.trace.lives import Life
from vestnik.verify.quiet import agreements


@click.command("verify", epilog=EXITS)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE.jsonl...")
@held_to
@click.option("--out", metavar="DIR", help="A folder that is new or empty, for the tables.")
@click.option("--master", metavar="MASTER", help="Where Spark runs, as spark://HOST:PORT.  [default: here, all cores]")
@click.pass_context
def command(
    ctx: click.Context, /, traces: tuple[str, ...], out: str | None, master: str | None, **demands: Any
) -> None:
    """Check what happened in a network, as `vestnik check` does, in traces that no one machine can hold.

    Then it prints how many seconds events took to clients, of all and at each broker; and for the links between
    brokers, where the trace has what went over them, how many copies of events nobody behind needed. DIR gets the
    tables violations, latency, also of each client, and useless, as Parquet files.
    """
    for trace in traces:
        if trace == "-":
            raise Refused("standard input can be read only once; name a file")
        opened(trace).__enter__().close()
    check_files(traces)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_new(folder)
    with running(master, "vestnik verify") as spark:
        is_wrong = _verify(spark, traces, folder, demands)
    ctx.exit(1 if is_wrong else 0)


def _verify(spark: Any, traces: Sequence[str], out: Path | None, demands: dict[str, Any]) -> bool:
    with task_progress(spark, "reading"):
        trace = read_traces(spark, traces).persist()
        known = runs(trace)
        check_given(trace, traces)
    run = known.get("", Run([], {}, 1, False, False))
    is_whole = _say_cut(trace, traces)
    with task_progress(spark, "checking"):
        wrong = violations(trace, known=known, **demands).persist()
        rules = {row.rule: row["count"] for row in wrong.groupBy("rule").count().collect()}
    echo_violations(map(violation_of, wrong.orderBy("at", "rule", "said").toLocalIterator()), "--out DIR keeps all")
    click.echo(summary(run.counts, sum(rules.values()), is_whole=is_whole))
    with task_progress(spark, "measuring"):
        tables = {"latency": latency(trace, known=known).persist(), "useless": useless(trace, known=known).persist()}
        _echo_latency(tables["latency"].where("scope != 'client'").orderBy("scope", "name").collect())
        _echo_useless(tables["useless"].orderBy("sender", "receiver").collect())
    if out is not None:
        with written_whole(out) as new:
            for name, table in {"violations": wrong, **tables}.items():
                table.write.parquet(str(new / name))
    reader = Reader()
    life = [reader.read(line[-1]) for line in run.life]
    has_settled = bool(run.counts.get("Settled") or agreements(life))
    say_doubts(life, rules, settling=demands["settling"], has_settled=has_settled)
    return bool(rules)


def _say_cut(trace: Any, traces: Sequence[str]) -> bool:
    """Whether all traces are there to their end; where some are not, it is said."""
    lives: dict[int, list[Life]] = {}
    for row in trace.where(f"op = '{END}'").orderBy("file", "place").select("file", "node", "record").collect():
        lives.setdefault(row.file, []).append(Life(row.node, [], row.record != CUT))
    whole = [say_cut(traces[file], of_file) for file, of_file in lives.items()]
    return all(whole)


def _echo_latency(rows: Sequence[Any]) -> None:
    if rows:
        click.echo(f"\n{'latency':<24}{'deliveries':>12}{'p50':>10}{'p90':>10}{'p99':>10}{'max':>10}")
    for row in rows:
        times = "".join(f"{seconds:>10.4g}" for seconds in (row.p50, row.p90, row.p99, row.max))
        click.echo(f"{printable(row.name or row.scope):<24}{row.deliveries:>12,}{times}")


def _echo_useless(rows: Sequence[Any]) -> None:
    if rows:
        click.echo(f"\n{'link':<24}{'copies':>12}{'useless':>10}")
    for row in rows:
        click.echo(f"{printable(f'{row.sender} -> {row.receiver}'):<24}{row.copies:>12,}{row.useless:>10,}")
