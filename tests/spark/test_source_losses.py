"""A query notices what retention dropped before it began, and what it lost since."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from lake.lakes import quote, write
from spark.test_source_read import Sink, stream
from vestnik.lake.journals import open_journal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = {"segment_size": 2_000, "retain_size": 4_000}


def retained(folder: Path, start: int, count: int) -> int:
    """Append to a journal that keeps few events; return the first position that it still has."""
    write(folder, "b", [quote(n, "b") for n in range(start, start + count)], **SMALL)
    with open_journal(folder) as journal:
        return journal.first()


def positions(frame: DataFrame) -> list[int]:
    return sorted(row.position for row in frame.collect())


def test_a_table_is_not_silently_short(spark: SparkSession, tmp_path: Path) -> None:
    first, reading = retained(tmp_path / "b", 0, 90), spark.read.format("vestnik").option("url", str(tmp_path / "b"))
    said = rf"MissingEvents.*from position 1 to {first - 1} \({first - 1} positions\)"
    with pytest.raises(PySparkException, match=said):
        reading.load().collect()
    kept = list(range(first, 91))
    assert positions(reading.option("failOnDataLoss", "false").load()) == kept
    reading = spark.read.format("vestnik").option("url", str(tmp_path / "b"))
    for start in ("earliest", f'{{"b": {first - 1}}}'):
        assert positions(reading.option("startingOffsets", start).load()) == kept, "a start that was chosen"
    (lost,) = reading.option("startingOffsets", "beginning").option("content", "unread").load().collect()
    assert (lost.kind, lost.position, lost.positions) == ("dropped", 1, first - 1)


def test_positions_that_were_skipped_are_no_losses(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path / "b", "b", [quote(n, "b") for n in range(3)])
    write(folder, "b", [quote(n, "b") for n in range(3, 6)], skip=65_536)
    reading, kept = spark.read.format("vestnik").option("url", str(folder)), [1, 2, 3, 65_540, 65_541, 65_542]
    assert positions(reading.load()) == kept
    assert positions(reading.option("maxEventsPerPartition", "20000").load()) == kept
    assert not reading.option("content", "unread").load().collect()
    assert Sink(tmp_path).finish(stream(spark, folder, maxEventsPerTrigger="2")) == [[0, 1], [2], [3, 4], [5]]


def test_a_stream_is_not_silently_short(spark: SparkSession, tmp_path: Path) -> None:
    first = retained(tmp_path / "b", 0, 90)
    query = Sink(tmp_path / "strict").run(stream(spark, tmp_path / "b"), availableNow=True)
    with pytest.raises(PySparkException, match=rf"from position 1 to {first - 1} "):
        query.awaitTermination(120)
    sink = Sink(tmp_path / "chosen")
    assert sink.finish(stream(spark, tmp_path / "b", startingOffsets="earliest")) == [list(range(first - 1, 90))]
    now = retained(tmp_path / "b", 90, 200)
    query = sink.run(stream(spark, tmp_path / "b", startingOffsets="earliest"), availableNow=True)
    with pytest.raises(PySparkException, match=rf"from position 91 to {now - 1} "):
        query.awaitTermination(120)
    sink.finish(stream(spark, tmp_path / "b", failOnDataLoss="false"))
    assert sink.all() == [*range(first - 1, 90), *range(now - 1, 290)]


def test_a_stream_of_what_was_lost(spark: SparkSession, tmp_path: Path) -> None:
    first = retained(tmp_path / "b", 0, 90)
    rows = stream(spark, tmp_path / "b", content="unread", maxEventsPerTrigger="5")
    writing = rows.writeStream.format("parquet").option("path", str(tmp_path / "lost"))
    query = writing.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    (lost,) = spark.read.parquet(str(tmp_path / "lost")).collect()
    assert (lost.kind, lost.position, lost.positions) == ("dropped", 1, first - 1)
