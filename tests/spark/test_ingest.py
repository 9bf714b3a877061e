"""Spark takes journals into a lake, and reads it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lake.lakes import HOUR, content, ids, quote, write
from vestnik import Event
from vestnik.errors import InvalidJournal
from vestnik.lake import taking
from vestnik.lake.compaction import compact
from vestnik.lake.declared import read_declared
from vestnik.lake.staging import Part, stage
from vestnik.lake.taking import take_in
from vestnik.spark.ingest import ingest, on
from vestnik.spark.lake import events, quarantine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(taking, "PART", 100)
    took = [quote(n, "b1") for n in range(300)]
    return [
        write(tmp_path / "b1", "b1", [*took[:100], b"nonsense", *took[100:]]),
        write(tmp_path / "b2", "b2", [quote(n, "b2") for n in range(200, 400)]),
    ]


def test_spark_takes_in_what_one_process_does(spark: SparkSession, tmp_path: Path, journals: list[Path]) -> None:
    done = ingest(spark, journals, tmp_path / "lake")
    assert (done.events, done.again, done.lost()) == (400, 100, 1)
    take_in(tmp_path / "alone", journals)
    assert content(tmp_path / "lake") == content(tmp_path / "alone")
    write(journals[0], "b1", [quote(n, "b1") for n in range(395, 420)])
    assert ingest(spark, journals, tmp_path / "lake").events == 20
    assert ids(tmp_path / "lake") == list(range(420))


def test_a_lake_is_a_table_of_spark(spark: SparkSession, tmp_path: Path, journals: list[Path]) -> None:
    (tmp_path / "types.toml").write_text('[quote]\nsymbol = "string"\nprice = "double"\n')
    lake = tmp_path / "lake"
    ingest(spark, journals, lake, declared=read_declared(tmp_path / "types.toml"))
    every = events(spark, lake)
    assert every.where("type_ = 'quote' and date = date'2027-01-15'").count() == every.count() == 400
    assert every.selectExpr("sum(get_json_object(data, '$.n'))").first()[0] == sum(range(400))  # type: ignore[index]
    dearest = events(spark, lake, "quote").where("symbol = 'S3'").agg({"price": "max"}).first()
    assert dearest is not None and dearest[0] == 395 / 4
    assert events(spark, lake, "other").count() == 0
    assert [row.position for row in quarantine(spark, lake).collect()] == [101]


def test_what_is_wrong_with_a_journal_is_said_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidJournal, match="is no folder"):
        on(spark)(stage, [Part(tmp_path, "part", str(tmp_path / "missing"), "b1", "", 0, 1, {})])


ODD = ["цена", "a/b=ü c", "..", "A", "a", "t" * 300, "__HIVE_DEFAULT_PARTITION__", "007", "2026-01-01", "x%2Fy"]


def test_a_lake_has_types_of_any_name_in_a_folder_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    took = [Event(type, {}, source="s", id=str(n)).stamped("b1", n + 1) for n, type in enumerate(ODD)]
    lake = tmp_path / "lake {a,b} [1]*?"
    take_in(lake, [write(tmp_path / "b1", "b1", [*took, b"nonsense"])])
    found = events(spark, lake)
    assert sorted(row.type_ for row in found.collect()) == sorted(ODD)
    for type in ODD:
        assert [row.type for row in found.where(f"type_ = '{type}'").collect()] == [type]
        assert [row.type_ for row in events(spark, lake, type).collect()] == [type]
    assert quarantine(spark, lake).count() == 1


def test_of_a_lake_only_the_files_are_read_that_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    take_in(tmp_path / "lake", [write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(3)], every=24 * HOUR)])
    frame = events(spark, tmp_path / "lake")
    plan = frame.where("type_ = 'quote' AND date = '2027-01-16'")._jdf.queryExecution().executedPlan().toString()
    partitions = plan[plan.index("PartitionFilters") : plan.index("PushedFilters")]
    assert "type_" in partitions and "date" in partitions


def test_the_folder_of_events_is_a_table_for_whoever_reads_parquet(spark: SparkSession, tmp_path: Path) -> None:
    for start in range(0, 50, 10):
        take_in(tmp_path / "lake", [write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(start, start + 10)])])
    held = events(spark, tmp_path / "lake")
    compact(tmp_path / "lake")
    for place in ("lake/events", "lake/events/*/*/*.parquet"):
        assert spark.read.parquet(str(tmp_path / place)).count() == 50
    assert spark.read.parquet(str(tmp_path / "lake" / "events")).where("type_ = 'quote'").count() == 50
    assert held.count() == 50, "a table of the version before can be read"


def test_a_full_disk_is_said_in_one_sentence(spark: SparkSession) -> None:
    def full(part: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", f"/lake/{part}")

    with pytest.raises(OSError, match=r"No space left on device: '/lake/1'$"):
        on(spark)(full, [1])
