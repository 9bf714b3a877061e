"""How fast Spark starts, events become rows, and journals a lake: script/bench spark [--quick] [SECTION ...]

Starting is measured in seconds that pass, of processes one after another, ours and plain PySpark's in turn, from the
first line of Python to the answer of the first query. Rows are measured in CPU seconds of one core, matches in those
of all processes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks import spark_match
from benchmarks.report import Report, Row, measure, run
from benchmarks.spark_ingest import ingesting
from benchmarks.spark_source import reading
from vestnik import Event
from vestnik.journal import Record
from vestnik.lake.events import events_of
from vestnik.lake.rows import CHUNK, batch_of, batch_of_records
from vestnik.wire.packing import TAKEN, pack_taken

OURS = "from vestnik.spark import session; spark = session('local[2]')"
PLAIN = "from pyspark.sql import SparkSession; spark = SparkSession.builder.master('local[2]').getOrCreate()"
FIRST_QUERY = """import time; begun = time.perf_counter()
{start}
assert spark.range(1000).selectExpr("sum(id)").first()[0] == 499500
print(time.perf_counter() - begun)"""


@dataclass(frozen=True)
class Scale:
    """How often Spark is started, how many events become rows, and how many are taken in."""

    starts: int
    events: int
    ingested: int


FULL = Scale(starts=5, events=200_000, ingested=1_000_000)
QUICK = Scale(starts=1, events=2_000, ingested=2_000)


class WrongAnswer(Exception):
    """In `case`, what came out is not what went in: there is no figure to print."""


def first_answer(start: str) -> float:
    """Seconds until a new process has the answer of its first query."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_QUERY.format(start=start)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def starting(report: Report, scale: Scale) -> None:
    first_answer(OURS)  # which writes the archive, where there is none
    taken = [(first_answer(OURS), first_answer(PLAIN)) for _ in range(scale.starts)]
    ours, plain = ([one[side] for one in taken] for side in (0, 1))
    report.add(
        Row(
            "start",
            "session and first query",
            median(ours),
            "s",
            spread=(max(ours) - min(ours)) / median(ours),
            peer=median(plain),
            ratio=median(plain) / median(ours),
            target=2,
            of_ratio=True,
            note="peer: plain PySpark",
        )
    )


def quote(number: int) -> Event:
    data = {"symbol": f"S{number % 500}", "price": number % 9_973 / 100, "volume": number, "exchange": "NYSE"}
    return Event("market.quote", data, source=f"feed-{number % 7}", id=f"{number:032x}").stamped("b1", number + 1)


def rows(report: Report, scale: Scale) -> None:
    events = [quote(number) for number in range(scale.events)]
    records = [Record(number, TAKEN, number, pack_taken("c", event)) for number, event in enumerate(events, 1)]
    batch = batch_of(events)
    pieces = [batch.slice(at, CHUNK) for at in range(0, len(batch), CHUNK)]
    if [event for piece in pieces for event in events_of(piece)] != events:
        raise WrongAnswer("events")
    if batch_of_records(records, "b1")[0].select(batch.schema.names[:13]) != batch.select(batch.schema.names[:13]):
        raise WrongAnswer("records")
    for case, work in (
        ("records to rows", lambda: batch_of_records(records, "b1")),
        ("events to rows", lambda: batch_of(events)),
        ("rows to events", lambda: list(map(events_of, pieces))),
    ):
        timing = measure(work)
        report.add(Row("rows", case, scale.events / timing.median, "events/s", spread=timing.spread))


def ingest(report: Report, scale: Scale) -> None:
    ingesting(report, scale.ingested)


def source(report: Report, scale: Scale) -> None:
    reading(report, scale.ingested)


SECTIONS: dict[str, Callable[[Report, Scale], None]] = {
    "start": starting,
    "rows": rows,
    "ingest": ingest,
    "source": source,
    **spark_match.SECTIONS,
}

if __name__ == "__main__":
    run("spark", __doc__ or "", SECTIONS, full=FULL, quick=QUICK)
