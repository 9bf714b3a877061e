"""Commands say what they could not read, in counts and by their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from lake.lakes import quarantined, quote, write
from spark.test_match import Kept
from vestnik.cli import main
from vestnik.lake.journals import open_journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {"segment_size": 2_000, "retain_size": 4_000}


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))

    def run(*words: str | Path) -> Result:
        return CliRunner().invoke(main, ["pipeline", *map(str, words)])

    return run


def retained(folder: Path, start: int, count: int) -> int:
    """Append to a journal that keeps few events; return the first position that it still has."""
    write(folder, "b", [quote(n, "b") for n in range(start, start + count)], **SMALL)
    with open_journal(folder) as journal:
        return journal.first()


def test_an_ingest_reports_what_was_lost_since_the_last_one(command: Any, tmp_path: Path) -> None:
    first = retained(tmp_path / "b", 0, 90)
    given = ("ingest", "--from", tmp_path / "b", "--lake", tmp_path / "lake")
    done = command(*given)
    assert done.exit_code == 1 and done.stdout.startswith(f"{91 - first} new events")
    assert done.stderr.startswith(f"vestnik: {first - 1} positions of the journal of b were dropped by retention")
    again = command(*given)
    assert (again.exit_code, again.stderr) == (0, ""), "what was reported is not reported again"
    now = retained(tmp_path / "b", 90, 200)
    done = command(*given, "--json")
    found = json.loads(done.stdout)
    lost = {"broker": "b", "kind": "dropped", "first": 91, "last": now - 1, "positions": now - 91}
    assert done.exit_code == 1 and (found["lost"], found["losses"]) == (now - 91, [lost])
    assert [row["positions"] for row in quarantined(tmp_path / "lake")] == [first - 1, now - 91]


def test_a_run_reports_what_it_lost_and_its_page_all_that_was_lost(command: Any, tmp_path: Path) -> None:
    first = retained(tmp_path / "b", 0, 90)
    (tmp_path / "plan.toml").write_text('from = ["b"]\nlake = "lake"\nout = "out"\n')
    done = command("run", tmp_path / "plan.toml")
    said = f"{first - 1} positions of the journal of b were dropped by retention"
    assert done.exit_code == 1 and said in done.stderr, done.output
    assert said in (tmp_path / "out" / "report.html").read_text()
    again = command("run", tmp_path / "plan.toml", "--json")
    assert (again.exit_code, again.stderr) == (0, "")
    (missing,) = json.loads(again.stdout)["missing"]
    assert missing == {"taken_by": "b", "kind": "dropped", "positions": first - 1, "first": 1, "last": first - 1}
    page = (tmp_path / "out" / "report.html").read_text()
    assert said not in page and "not in the lake" in page and "Lost since" not in page


def test_commands_that_read_what_is_there_say_where_it_begins(command: Any, tmp_path: Path) -> None:
    first = retained(tmp_path / "b", 0, 90)
    (tmp_path / "s.jsonl").write_text('{"id": "all", "filter": "n >= 0"}\n')
    said = f"begins with position {first}: retention dropped the {first - 1} positions before it"
    given = ("--subscriptions", tmp_path / "s.jsonl", "--events", tmp_path / "b")
    done = command("match", *given, "--out", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (0, f"{91 - first} pairs\n") and said in done.stderr
    start = ("--from", tmp_path / "b", "--window", "1m", "--early")
    done = command("derive", "rates", *start, "--out", tmp_path / "rates")
    assert done.exit_code == 0 and f"from {91 - first} readings" in done.stdout and said in done.stderr, done.output


def test_a_match_counts_positions_that_are_damaged(command: Any, tmp_path: Path) -> None:
    folder = write(tmp_path / "b", "b", [quote(n, "b") for n in range(90)], segment_size=2_000)
    path = sorted((folder / "journal").glob("*.segment"))[1]
    content = bytearray(path.read_bytes())
    content[200:-200] = bytes(len(content) - 400)
    path.write_bytes(content)
    (tmp_path / "s.jsonl").write_text('{"id": "all", "filter": "n >= 0"}\n')
    given = ("--subscriptions", tmp_path / "s.jsonl", "--events", folder, "--out", tmp_path / "out")
    done = command("match", *given)
    found = int(done.stdout.split()[0])
    (row,) = pq.read_table(tmp_path / "out" / "_quarantine").to_pylist()
    assert done.exit_code == 1 and row["entries"] == 90 - found > 1
    assert f"{90 - found} events could not be read" in done.stderr
