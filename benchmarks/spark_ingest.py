"""How fast journals become a lake: CPU seconds of all processes, with a session that has been used before."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.java import end
from benchmarks.report import Report, Row
from benchmarks.trees import cpu_of_tree
from vestnik import Event
from vestnik.journal import Journal, Settings
from vestnik.journal.folders import put_name
from vestnik.lake.manifest import Column
from vestnik.spark import session
from vestnik.spark.ingest import ingest
from vestnik.spark.lake import events as table
from vestnik.wire.packing import TAKEN, pack_taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 1_000
START = 1_800_000_000_000_000
DECLARED = {"market.quote": {"symbol": Column("symbol", "string"), "price": Column("price", "double")}}


class WrongAnswer(Exception):
    """`ours` events are in the lake where there were `truth`: there is no figure to print."""

    def __init__(self, ours: int, truth: int) -> None:
        super().__init__(ours, truth)


def ingesting(report: Report, events: int, repeat: int = 3) -> None:
    with TemporaryDirectory() as directory:
        folder = Path(directory)
        half = events // 2
        two = [journal(folder / name, name, first, half) for name, first in (("b1", 0), ("b2", half))]
        again = [*two, journal(folder / "b3", "b3", half // 2, half)]
        spark = session("local[2]", "benchmark")
        ingest(spark, two, folder / "warm")
        for case, journals, declared in (
            ("two journals", two, None),
            ("two columns declared", two, DECLARED),
            ("a third that repeats a half of both", again, None),
        ):
            figures = [_once(spark, folder / f"{case} {n}", journals, declared, events) for n in range(repeat)]
            read = events * len(journals) / 2
            cpu, passed = ([read / one[side] for one in figures] for side in (0, 1))
            spread = (max(cpu) - min(cpu)) / median(cpu)
            target = 200_000 if journals is two else None
            report.add(Row("ingest", case, median(cpu), "events/CPU s", spread=spread, target=target))
            report.add(Row("ingest", case, median(passed), "events/s", note="as time passes, 2 cores"))
        end(spark)


def _once(
    spark: SparkSession, lake: Path, journals: list[Path], declared: dict[str, dict[str, Column]] | None, truth: int
) -> tuple[float, float]:
    cpu, begun = cpu_of_tree(), perf_counter()
    ingest(spark, journals, lake, declared=declared)
    taken = cpu_of_tree() - cpu, perf_counter() - begun
    found = table(spark, lake).select("source", "id").distinct().count()
    if not found == table(spark, lake).count() == truth:
        raise WrongAnswer(found, truth)
    return taken


def journal(folder: Path, broker: str, first: int, count: int) -> Path:
    folder.mkdir()
    put_name(folder, broker)
    with Journal.open(folder / "journal", Settings(retain_size=1 << 40, fsync=False)) as opened:
        for start in range(first, first + count, BATCH):
            numbers = range(start, min(start + BATCH, first + count))
            opened.append([(TAKEN, START + n * 1000, pack_taken("c", _quote(n, broker))) for n in numbers])
    return folder


def _quote(number: int, broker: str) -> Event:
    data = {"symbol": f"S{number % 500}", "price": number % 9_973 / 100, "volume": number, "exchange": "NYSE"}
    type = "market.quote" if number % 4 else "market.trade"
    return Event(type, data, source=f"feed-{number % 7}", id=f"{number:016x}").stamped(broker, number + 1)
