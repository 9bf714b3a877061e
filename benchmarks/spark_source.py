"""How fast the journal of a broker is read as a DataFrame: CPU seconds of a task, and of all processes of a query."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.java import end
from benchmarks.report import Report, Row, measure
from benchmarks.spark_ingest import WrongAnswer, journal
from benchmarks.trees import cpu_of_tree
from vestnik.spark import session
from vestnik.spark.source.options import Reading
from vestnik.spark.source.reading import BatchReader, read


def reading(report: Report, events: int, repeat: int = 3) -> None:
    with TemporaryDirectory() as directory:
        folder = journal(Path(directory) / "b1", "b1", 0, events)
        _task(report, folder, events, repeat)
        _query(report, folder, events, repeat)


def _task(report: Report, folder: Path, events: int, repeat: int) -> None:
    options = Reading.of({"url": str(folder)})
    parts = BatchReader(options).partitions()

    def work() -> int:
        return sum(len(batch) for part in parts for batch in read(part, options, options.filter, None))

    timing = measure(work, repeat)
    if timing.result != events:
        raise WrongAnswer(timing.result, events)
    report.add(Row("source", "tasks", events / timing.median, "rows/CPU s", spread=timing.spread, target=500_000))


def _query(report: Report, folder: Path, events: int, repeat: int) -> None:
    spark = session("local[1]", "benchmark")
    frame = spark.read.format("vestnik").load(str(folder))
    if (found := frame.count()) != events:
        raise WrongAnswer(found, events)
    figures = []
    for _ in range(repeat):
        begun = cpu_of_tree()
        frame.write.format("noop").mode("overwrite").save()
        figures.append(events / (cpu_of_tree() - begun))
    end(spark)
    spread = (max(figures) - min(figures)) / median(figures)
    report.add(Row("source", "a query", median(figures), "rows/CPU s", spread=spread, note="Java and all, to noop"))
