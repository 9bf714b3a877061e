"""`vestnik pipeline match`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vestnik.cli.inputs import Refused, check_one_standard_input, shown_name
from vestnik.cli.pipeline.inputs import QUARANTINE, Unreadable, event_table, stage_subscriptions
from vestnik.cli.pipeline.outputs import check_new, written_whole
from vestnik.cli.pipeline.progress import task_progress
from vestnik.cli.running import running
from vestnik.spark.match import Subscriptions, compile_subscriptions, match, unreadable
from vestnik.spark.staging import rows_in, write_quarantine
from vestnik.spark.temporary import temporary

SOME_NOT = 1


@click.command(
    "match",
    epilog="Exit codes: 0 everything was read; 1 some subscriptions or events could not be read, the others were "
    "matched; 2 wrong input.",
)
@click.option("--subscriptions", required=True, metavar="S.jsonl", help='A line is {"id": ..., "filter": "..."}.')
@click.option("--events", required=True, metavar="EVENTS", help="A lake, the data folder of a broker, or JSON lines.")
@click.option("--out", required=True, metavar="DIR", help="A folder that is new or empty.")
@click.option("--counts", is_flag=True, help="How many subscriptions match each event, not which.")
@click.option("--lists", is_flag=True, help="One row an event, with the list of its subscriptions.")
@click.option("--master", metavar="MASTER", help="Where Spark runs, as spark://HOST:PORT.  [default: here, all cores]")
@click.pass_context
def command(
    ctx: click.Context, subscriptions: str, events: str, out: str, counts: bool, lists: bool, master: str | None
) -> None:
    """Find the subscriptions that each of very many events matches.

    DIR gets Parquet files with the columns event_source, event_id and subscription_id; with --lists, subscriptions
    (a list) is the last, and with --counts, matches. DIR/_quarantine is a table of what could not be read: kind, place,
    reason and payload.
    """
    if counts and lists:
        raise Refused("--counts or --lists, not both")
    check_one_standard_input(subscriptions, events)
    folder = Path(out)
    check_new(folder)
    unread = Unreadable()
    result = "counts" if counts else "lists" if lists else "pairs"
    with temporary("vestnik-match-") as work:
        lines = stage_subscriptions(subscriptions, work / "subscriptions.parquet", unread)
        table = event_table(events, work / "events", unread)
        with running(master, "vestnik match") as spark:
            wanted = _compiled(spark, work / "subscriptions.parquet", subscriptions, lines, unread)
            with task_progress(spark, "reading events"):
                rows = table.read(spark)
            with written_whole(folder) as new:
                _match(rows, wanted, None if table.made else events, new, result, unread)
    _report(unread, folder, result)
    ctx.exit(SOME_NOT if unread.rows else 0)


def _compiled(spark: Any, path: Path, name: str, lines: dict[str, int], unread: Unreadable) -> Subscriptions:
    with task_progress(spark, "compiling subscriptions"):
        wanted = compile_subscriptions(spark.read.parquet(str(path)))
    for one in wanted.rejected:
        place = f"{shown_name(name)}:{lines.get(one.id or '', 0)}"
        unread.add("subscription", place, f"{one.id}: {one.reason}", (one.filter or "").encode())
    return wanted


def _match(rows: Any, wanted: Subscriptions, check: str | None, out: Path, result: str, unread: Unreadable) -> None:
    """Write the answer to `out`. Where the rows are those of a table called `check`, they may be no events."""
    with task_progress(rows.sparkSession, "matching"):
        if check is not None:
            for row in unreadable(rows, wanted).collect():
                place = f"{check}, source {row.event_source}, id {row.event_id}"
                unread.add("event", place, row.reason, None if row.data is None else row.data.encode())
        match(rows, wanted, result).write.mode("append").parquet(str(out))
    write_quarantine(out / QUARANTINE, unread.rows)


def _report(unread: Unreadable, out: Path, result: str) -> None:
    what = "pairs" if result == "pairs" else "events"
    click.echo(f"{rows_in(out)} {what}")
    for kind in ("subscription", "event"):
        if count := unread.count(kind):
            named = f"1 {kind}" if count == 1 else f"{count:,} {kind}s"
            place = out / QUARANTINE
            click.echo(f"vestnik: {named} could not be read, see {place}; the others were matched", err=True)
