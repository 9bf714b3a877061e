"""Spark takes journals into a lake, and reads it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lake.lakes import content, ids, quarantined, quote, write
from vestnik.errors import InvalidJournal
from vestnik.lake import taking
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
    assert (done.events, done.again, done.quarantined) == (400, 100, 1)
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
        on(spark)(stage, [Part(tmp_path, "part", str(tmp_path / "missing"), "b1", None, 1, {})])


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from vestnik.lake import taking
from vestnik.spark.ingest import ingest
from vestnik.spark.session import session
taking.PART = 20
lake, *journals = sys.argv[1:]

def watch():
    while sum(1 for _ in Path(lake, "events").rglob("*.parquet")) < 4:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)

spark = session("local[2]", "killed")
threading.Thread(target=watch, daemon=True).start()
ingest(spark, journals, lake)
"""


def test_a_driver_that_is_killed_while_tasks_write(spark: SparkSession, tmp_path: Path, journals: list[Path]) -> None:
    lake = tmp_path / "lake"
    words = [sys.executable, "-c", KILLED, str(lake), *map(str, journals)]
    assert subprocess.run(words, capture_output=True, timeout=120).returncode == -signal.SIGKILL
    assert not quarantined(lake) and not ids(lake), "nothing that was begun is seen"
    ingest(spark, journals, lake)
    take_in(tmp_path / "undisturbed", journals)
    assert content(lake) == content(tmp_path / "undisturbed")
