"""Processes that are killed on the way, and files that are damaged: what comes out is what came out undisturbed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lake.lakes import NOON, content, quarantined, quote, rows
from lake.lakes import write as write_quotes
from spark.brokers import events, published, running, write
from spark.test_derive import LATENESS, WINDOW, Kept, defined, quotes
from spark.test_derive import published as derived
from vestnik import Filter
from vestnik.cli import main
from vestnik.errors import DamagedCheckpoint
from vestnik.journal import Journal, Settings
from vestnik.lake import taking
from vestnik.lake.declared import read_declared
from vestnik.lake.journals import open_journal
from vestnik.lake.layout import Lake
from vestnik.lake.rows import batch_of
from vestnik.lake.taking import take_in
from vestnik.spark.checkpoints import check_checkpoint
from vestnik.spark.ingest import ingest, on
from vestnik.spark.match import match

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VESTNIK = Path(sys.executable).with_name("vestnik")


# --- the driver ---

DRIVER = """
import os, signal, sys
from vestnik.spark.session import session
from vestnik.spark.source.options import Writing
from vestnik.spark.source.source import VestnikSource
from vestnik.spark.source.writing import StreamWriter

journal, url, checkpoint = sys.argv[1:]
spark = session("local[2]", "killed")
driver = [spark.sparkContext._gateway.proc.pid, os.getpid()]

def die():
    for process in driver:
        os.kill(process, signal.SIGKILL)

class Deadly(StreamWriter):
    def commit(self, messages, batchId):
        super().commit(messages, batchId)
        die()

class Killing(VestnikSource):
    @classmethod
    def name(cls):
        return "killing"

    def streamWriter(self, schema, overwrite):
        return Deadly(Writing.of(self.options))

spark.dataSource.register(Killing)
frame = spark.readStream.format("vestnik").load(journal).selectExpr("'copy' as type", "data")
writing = frame.writeStream.format("killing").option("url", url).option("checkpointLocation", checkpoint)
writing.trigger(availableNow=True).start().awaitTermination()
"""


def test_a_driver_that_is_killed_between_the_sink_and_the_commit(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    write(tmp_path / "in", events(30))
    with running(tmp_path / "b") as url:
        words = [sys.executable, "-c", DRIVER, str(tmp_path / "in"), url, str(checkpoint)]
        with (tmp_path / "said").open("wb") as said:  # no pipe: workers that are left end later
            done = subprocess.run(words, stderr=said, timeout=120)
        assert done.returncode == -signal.SIGKILL, (tmp_path / "said").read_text()
        assert published(url) == Counter([("spark", "copy", n) for n in range(1, 31)])
        assert (checkpoint / "offsets" / "0").exists() and not (checkpoint / "commits" / "0").exists()
        write(tmp_path / "in", events(10, start=31))
        frame = spark.readStream.format("vestnik").load(str(tmp_path / "in")).selectExpr("'copy' as type", "data")
        writing = frame.writeStream.format("vestnik").option("url", url).option("checkpointLocation", str(checkpoint))
        assert writing.trigger(availableNow=True).start().awaitTermination(120)
        assert published(url) == Counter([("spark", "copy", n) for n in range(1, 41)])
    assert (checkpoint / "commits" / "1").exists()


# --- workers ---


def dying(flag: Path) -> Callable[[], None]:
    """Ends the process that calls it first; pickled by value."""

    def die() -> None:
        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return die


def test_a_worker_that_is_killed_while_it_matches(spark: SparkSession, tmp_path: Path) -> None:
    die = dying(tmp_path / "died")

    def deadly(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 5)
            die()
            yield batch.slice(5)

    some = [quote(n) for n in range(40)]
    texts = {"cheap": "price < 5", "named": "symbol LIKE '%1' OR n = 3"}
    table = spark.createDataFrame(pa.Table.from_batches([batch_of(some)]))
    wanted = spark.createDataFrame(list(texts.items()), "id string, filter string")
    found = match(table.mapInArrow(deadly, table.schema), wanted)
    pairs = Counter((row.event_id, row.subscription_id) for row in found.collect())
    assert (tmp_path / "died").exists()
    assert pairs == Counter(
        (one.id, id) for one in some for id, text in texts.items() if Filter.parse(text).matches(one)
    )


def test_a_worker_that_is_killed_while_it_takes_in(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "PART", 20)
    journal = write_quotes(tmp_path / "b", "b", [*(quote(n) for n in range(50)), b"nonsense"])
    die = dying(tmp_path / "died")

    def deadly(work: Callable[[Any], Any], part: Any) -> Any:
        done = work(part)
        die()
        return done

    take_in(tmp_path / "lake", [journal], lambda work, parts: on(spark)(partial(deadly, work), parts))
    assert (tmp_path / "died").exists()
    take_in(tmp_path / "undisturbed", [journal])
    assert content(tmp_path / "lake") == content(tmp_path / "undisturbed")


# --- commands ---


def kill_when(is_time: Callable[[], bool], *words: str | Path) -> None:
    """Start a command, and kill all of its processes as soon as it is time."""
    with subprocess.Popen([*map(str, words)], start_new_session=True, stderr=subprocess.PIPE, text=True) as command:
        try:
            while not is_time():
                assert command.poll() is None, command.communicate()
                time.sleep(0.005)
        finally:
            os.killpg(command.pid, signal.SIGKILL)
    assert command.returncode == -signal.SIGKILL


def last(folder: Path) -> int:
    with open_journal(folder) as journal:
        return journal.last()


def test_a_derivation_that_is_killed_goes_on_and_publishes_the_rest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))
    some = quotes(240)
    journal = write_quotes(tmp_path / "b", "b", some[:120])
    with running(tmp_path / "to") as url:
        places = ["--from", str(journal), "--to", url, "--checkpoint", str(tmp_path / "checkpoint")]
        given = ["pipeline", "derive", "rates", "--window", f"{WINDOW}ms", "--watermark", f"{LATENESS}s", *places]
        assert CliRunner().invoke(main, given).exit_code == 0
        before = last(tmp_path / "to")
        write_quotes(journal, "b", some[120:])
        kill_when(lambda: last(tmp_path / "to") > before > 0, VESTNIK, *given, "--master", "local[2]")
        done = CliRunner().invoke(main, given)
        assert done.exit_code == 0, done.output
        assert derived(url, "TRUE") == [event for event in defined(some) if event.type == "rate"]
        offsets = max((tmp_path / "checkpoint" / "offsets").glob("[0-9]"))
        os.truncate(offsets, 40)
        damaged = CliRunner().invoke(main, given)
        assert (damaged.exit_code, damaged.stdout) == (2, "")
        (said,) = damaged.stderr.splitlines()
        assert f"the checkpoint is damaged at {offsets}: " in said and "name a new one" in said


MATCH = """
import os, signal
from vestnik.cli.pipeline import match
from vestnik.cli import main
match.write_quarantine = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


def test_a_match_that_is_killed_leaves_nothing_and_is_done_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))
    journal, out = write_quotes(tmp_path / "b", "b", [quote(n) for n in range(40)]), tmp_path / "out"
    (tmp_path / "s.jsonl").write_text('{"id": "a", "filter": "price < 5"}\n')
    given = ["pipeline", "match", "--subscriptions", tmp_path / "s.jsonl", "--events", journal, "--out", out]
    with (tmp_path / "said").open("wb") as said:
        words = [sys.executable, "-c", MATCH, *map(str, given), "--master", "local[2]"]
        done = subprocess.run(words, stderr=said, timeout=120)
    assert done.returncode == -signal.SIGKILL, (tmp_path / "said").read_text()
    (left,) = tmp_path.glob(".out.*")
    assert not out.exists() and (left / "new" / "_SUCCESS").exists(), "all was matched, and is not seen"
    assert CliRunner().invoke(main, [*map(str, given)]).output == "20 pairs\n"
    assert len(pq.read_table(out)) == 20 and not list(tmp_path.glob(".out.*"))


INGEST = "from vestnik.lake import taking; taking.PART = 20; from vestnik.cli import main; main()"


def test_an_ingest_that_is_killed_while_tasks_write(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    journals = [
        write_quotes(tmp_path / "b1", "b1", [*(quote(n, "b1") for n in range(150)), b"nonsense"]),
        write_quotes(tmp_path / "b2", "b2", [quote(n, "b2") for n in range(100, 200)]),
    ]
    places = ["--lake", str(lake), "--from", str(journals[0]), "--from", str(journals[1])]
    given = ["pipeline", "ingest", "--master", "local[2]", *places]
    kill_when(lambda: len(list(lake.glob("_files/events/**/*.data"))) >= 4, sys.executable, "-c", INGEST, *given)
    assert not rows(lake) and not quarantined(lake), "nothing that was begun is seen"
    ingest(spark, journals, lake)
    take_in(tmp_path / "undisturbed", journals)
    assert content(lake) == content(tmp_path / "undisturbed")


# --- what cannot be read ---


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of nonsense, one of another kind, a segment that is cut off, types that nobody declared; then a
    table file that is cut off, and a subscription that does not parse."""
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))
    taken = [quote(n).replace(type="undeclared") if n % 10 == 9 else quote(n) for n in range(60)]
    journal = write_quotes(tmp_path / "b", "b", [*taken[:40], b"nonsense"], segment_size=2_000)
    with Journal.open(journal / "journal", Settings(segment_size=2_000)) as of_later:
        of_later.append([(9, NOON, b"of a later version")])
    write_quotes(journal, "b", taken[40:], segment_size=2_000)
    cut = sorted((journal / "journal").glob("*.segment"))[1]
    cut.write_bytes(cut.read_bytes()[:-20])
    (tmp_path / "types.toml").write_text('[quote]\nprice = "double"\n')
    lake = tmp_path / "lake"
    done = ingest(spark, [journal], lake, declared=read_declared(tmp_path / "types.toml"))
    named = {row["position"]: row["reason"] for row in quarantined(lake)}
    (lost,) = set(named) - {41, 42}
    assert "no event" in named[41] and "kind 9, which this version does not know" in named[42]
    positions = [*range(1, 41), *range(43, 63)]
    left = [event for event, position in zip(taken, positions, strict=True) if position != lost]
    assert (done.events, sorted(row["id"] for row in rows(lake))) == (59, sorted(event.id for event in left))

    (damaged,) = map(Path, Lake(lake).paths("undeclared"))
    damaged.write_bytes(damaged.read_bytes()[:-10])
    (tmp_path / "s.jsonl").write_text('{"id": "a", "filter": "price < 9"}\n{"id": "b", "filter": "price <"}\n')
    given = ["--subscriptions", tmp_path / "s.jsonl", "--events", lake, "--out", tmp_path / "out"]
    matched = CliRunner().invoke(main, ["pipeline", "match", *map(str, given)])
    assert matched.exit_code == 1, matched.output
    assert f"{damaged}: the file is damaged" in matched.stderr and "s.jsonl:2: b: " in matched.stderr
    assert {row["place"] for row in pq.read_table(tmp_path / "out" / "_quarantine").to_pylist()} == {
        str(damaged),
        f"{tmp_path / 's.jsonl'}:2",
    }
    found = Counter(row["event_id"] for row in pq.read_table(tmp_path / "out").to_pylist())
    assert found == Counter(event.id for event in left if event.type == "quote" and event.data["price"] < 9)


# --- checkpoints ---


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """As Spark leaves it."""
    folder = tmp_path / "checkpoint"
    files = {
        "metadata": '{"id":"3ab50c3e-8d8a-4b7e-9d6a-2f0d4a8e6b1f"}',
        "offsets/0": 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"b": 30}',
        "offsets/1": 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"b": 60}\n-',
        "offsets/.1.crc": "",
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


DAMAGES = [
    ("metadata", "", "there should be JSON"),
    ("metadata", "[]", "there should be a JSON object"),
    ("offsets/1", "", "it ends too early"),
    ("offsets/1", "v1", "it ends too early"),
    ("offsets/1", 'v1\n{"batchWatermarkMs":0,"co', "there should be JSON"),
    ("offsets/1", '{"b": 1}\n{"b": 2}', "it does not begin with a version"),
    ("commits/0", "v1\n\x00\x01garbage", "there should be JSON"),
    ("commits/2", 'v1\n{"nextBatchWatermarkMs":0}', "it is not there, and commits/2 is"),
]


@pytest.mark.parametrize(("name", "text", "reason"), DAMAGES, ids=range(len(DAMAGES)))
def test_a_checkpoint_that_is_damaged_stops_with_the_file_and_what_to_do(
    checkpoint: Path, name: str, text: str, reason: str
) -> None:
    check_checkpoint(checkpoint)
    (checkpoint / name).write_text(text)
    with pytest.raises(DamagedCheckpoint, match=reason) as caught:
        check_checkpoint(checkpoint)
    file = checkpoint / (name if reason[:12] != "it is not th" else "offsets/2")
    assert str(caught.value).startswith(f"the checkpoint is damaged at {file}: ")
    assert "put the whole folder back from a copy, or name a new one" in str(caught.value)
