"""Brokers' journals as DataFrames: batch and streams."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from network.ports import kept_port
from network.test_durable import process
from spark.brokers import events, publish, running, write
from vestnik.lake.journals import open_journal
from vestnik.lake.rows import batch_of_taken
from vestnik.lake.schema import EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def numbers(frame: DataFrame) -> list[int]:
    return sorted(json.loads(row.data)["n"] for row in frame.select("data").collect())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "b", events(100, priority=5, subject="/a"))
    return tmp_path / "b"


# --- batch ---


def test_a_folder_is_read_as_the_event_table(spark: SparkSession, folder: Path) -> None:
    found = spark.read.format("vestnik").option("maxEventsPerPartition", 30).load(str(folder))
    assert found.rdd.getNumPartitions() == 4
    with open_journal(folder) as journal:
        wanted = batch_of_taken(list(journal.read()), "b")
    table = found.orderBy("position").toArrow()
    assert table.schema.names == EVENTS.names
    assert table.to_pylist() == wanted.to_pylist()


def test_a_broker_that_runs_is_read_beside_a_folder(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "other"
    with running(folder) as url:
        write(other, events(10, start=1_000, broker="c"))
        found = spark.read.format("vestnik").option("url", f"{url}, {other}").option("filter", "n > 90")
        assert numbers(found.load()) == [*range(91, 101), *range(1_000, 1_010)]
        only = found.option("startingOffsets", '{"b": 95, "c": "latest"}').option("endingOffsets", '{"b": 97}')
        assert numbers(only.load()) == [96, 97]


@pytest.mark.parametrize(
    "condition",
    [
        "type = 't.odd'",
        "type LIKE 't.o%' AND id IN ('1', '2', '3', '4')",
        "priority > 4 AND id >= '90'",
        "subject IS NOT NULL AND id < '2'",
        "NOT type = 't.odd' AND data LIKE '%5%'",
        "type = 't.odd' OR id = '4'",
        "time IS NULL AND id = '7'",
        "taken_at < timestamp '1970-01-01 00:00:00.001010' AND position > 3",
    ],
)
def test_with_pushdown_the_answer_is_the_same(spark: SparkSession, folder: Path, condition: str) -> None:
    frame = spark.read.format("vestnik").load(str(folder))
    copied = spark.createDataFrame(frame.toArrow())
    wanted = numbers(copied.where(condition))
    assert wanted and numbers(frame.where(condition)) == wanted


def test_the_reader_takes_what_it_can(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.format("vestnik").load(str(folder)).where("type = 't.odd' AND data LIKE '%5%'")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    above = plan[: plan.index("BatchScan")]
    assert "Contains(data" in above and "t.odd" not in above


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "/no/such/folder"}, "InvalidJournal.*no folder"),
        (
            {"url": "127.0.0.1:1", "timeout": "0.2"},
            r"Unreachable.*127\.0\.0\.1:1.*for 0\.2 seconds \(the option timeout\)",
        ),
        ({"url": "FOLDER", "startingOfsets": "latest"}, "InvalidSetting.*did you mean startingOffsets"),
        ({"url": "FOLDER", "filter": "n >"}, "FilterSyntaxError"),
        ({"url": "FOLDER,FOLDER"}, "both the journal of b"),
        ({"url": "FOLDER", "startingOffsets": '{"d": 1}'}, "d is none of the brokers at url"),
    ],
)
def test_what_is_wrong_is_said(spark: SparkSession, folder: Path, options: dict[str, str], said: str) -> None:
    given = {name: value.replace("FOLDER", str(folder)) for name, value in options.items()}
    with pytest.raises(PySparkException, match=f"(?s){said}"):
        spark.read.format("vestnik").options(**given).load().collect()


def damage(folder: Path) -> None:
    (path,) = (folder / "journal").glob("*.segment")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_what_cannot_be_read_stops_the_query_unless_it_is_told_to_go_on(spark: SparkSession, folder: Path) -> None:
    damage(folder)
    reading = spark.read.format("vestnik").option("url", str(folder))
    with pytest.raises(PySparkException, match=r"MissingEvents.*position.*failOnDataLoss"):
        reading.load().collect()
    found = numbers(reading.option("failOnDataLoss", "false").load())
    assert 0 < len(found) < 100
    bad = spark.read.format("vestnik").option("content", "unread").load(str(folder)).collect()
    assert bad and bad[0].taken_by == "b" and bad[0].position not in found


# --- streams ---


def stream(spark: SparkSession, url: str | Path, **options: Any) -> DataFrame:
    return spark.readStream.format("vestnik").option("url", str(url)).options(**options).load()


class Sink:
    """Where a stream leaves its rows: a folder of JSON, each batch under its number, once."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "out"
        self.checkpoint = tmp_path / "checkpoint"

    def run(self, frame: DataFrame, **trigger: Any) -> StreamingQuery:
        folder = str(self.folder)

        def keep(batch: DataFrame, number: int) -> None:
            batch.select("id").write.mode("append").text(f"{folder}/{number}")

        writing = frame.writeStream.option("checkpointLocation", str(self.checkpoint)).foreachBatch(keep)
        return writing.trigger(**(trigger or {"processingTime": "50 milliseconds"})).start()

    def finish(self, frame: DataFrame) -> list[list[int]]:
        """All that is available; what each batch has."""
        query = self.run(frame, availableNow=True)
        assert query.awaitTermination(120)
        return self.batches()

    def batches(self) -> list[list[int]]:
        folders = sorted(self.folder.glob("[0-9]*"), key=lambda path: int(path.name))
        return [
            sorted(int(line) for file in batch.glob("*.txt") for line in file.read_text().split()) for batch in folders
        ]

    def all(self) -> list[int]:
        return sorted(n for batch in self.batches() for n in batch)


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    sink = Sink(tmp_path)
    assert sink.finish(stream(spark, folder, maxEventsPerTrigger=40)) == [
        list(range(1, 41)),
        list(range(41, 81)),
        list(range(81, 101)),
    ]
    write(folder, events(20, start=101))
    assert sink.finish(stream(spark, folder, filter="n > 110"))[3:] == [list(range(111, 121))]
    write(tmp_path / "new", events(2, start=500, broker="c"))
    assert sink.finish(stream(spark, f"{folder},{tmp_path / 'new'}"))[4:] == [[500, 501]]
    query = sink.run(stream(spark, folder), availableNow=True)
    with pytest.raises(PySparkException, match=r"the checkpoint is up to .* and it is not at url"):
        query.awaitTermination(120)


def test_a_stream_begins_and_ends_where_it_is_told(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    ends = {"startingOffsets": '{"b": 90}', "endingOffsets": '{"b": 95}'}
    assert Sink(tmp_path / "a").finish(stream(spark, folder, **ends)) == [list(range(91, 96))]
    nothing = Sink(tmp_path / "c")
    nothing.finish(stream(spark, folder, startingOffsets="latest"))
    assert nothing.all() == []
    write(folder, events(3, start=101))
    nothing.finish(stream(spark, folder, startingOffsets="latest"))
    assert nothing.all() == [101, 102, 103]


def test_a_stream_that_starts_before_its_broker_waits_for_it(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "b", events(10))
    sink = Sink(tmp_path)
    with kept_port() as port:
        address = f"127.0.0.1:{port}"
        query = sink.run(stream(spark, address, timeout=100), availableNow=True)
        with running(tmp_path / "b", address):
            assert query.awaitTermination(120)
    assert sink.all() == list(range(1, 11))


def test_a_broker_that_is_away_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path / "b")) as (first, address):
        url = f"vestnik://{address.removeprefix('vestnik://')}"
        publish(url, events(10))
        query = sink.run(stream(spark, url))
        try:
            until(lambda: len(sink.all()) == 10)
            first.kill()
            first.wait()
            with running(tmp_path / "b", address.removeprefix("vestnik://")):
                publish(url, events(10, start=11))
                until(lambda: len(sink.all()) >= 20)
        finally:
            query.stop()
    assert sink.all() == list(range(1, 21))
    assert query.exception() is None


@pytest.mark.parametrize("count", [5, 150])
def test_a_checkpoint_of_another_journal_is_refused(
    spark: SparkSession, tmp_path: Path, folder: Path, count: int
) -> None:
    sink = Sink(tmp_path)
    sink.finish(stream(spark, folder))
    other = tmp_path / "other"
    write(other, events(count, start=1_000))
    query = sink.run(stream(spark, other), availableNow=True)
    with pytest.raises(PySparkException, match="another journal took its place"):
        query.awaitTermination(120)
    sink.finish(stream(spark, other, failOnDataLoss="false"))
    assert sink.all() == [*range(1, 101), *range(1_000, 1_000 + count)]


def test_a_journal_that_lost_its_end_is_refused(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    sink, before = Sink(tmp_path), tmp_path / "before"
    shutil.copytree(folder, before)
    write(folder, events(5, start=101))
    sink.finish(stream(spark, folder))
    query = sink.run(stream(spark, before), availableNow=True)
    with pytest.raises(PySparkException, match="shorter than it was"):
        query.awaitTermination(120)
