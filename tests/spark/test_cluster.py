"""On a cluster: a master and two workers, to whom this package is shipped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark.clusters import Cluster, cluster
from vestnik import Event, Filter

VESTNIK = Path(sys.executable).with_name("vestnik")
FILTERS = {"cheap": "price < 10", "named": "symbol LIKE '%1' OR price = 3"}


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def run(*command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done


def test_match(two_workers: Cluster, tmp_path: Path) -> None:
    events = [Event("t", {"price": n, "symbol": f"s{n}"}, source="feed", id=str(n)) for n in range(40)]
    (tmp_path / "e.jsonl").write_text("".join(f"{event.to_json()}\n" for event in events))
    lines = [json.dumps({"id": id, "filter": text}) + "\n" for id, text in FILTERS.items()]
    (tmp_path / "s.jsonl").write_text("".join(lines))
    before = two_workers.executors()
    given = ["--subscriptions", str(tmp_path / "s.jsonl"), "--events", str(tmp_path / "e.jsonl")]
    run(str(VESTNIK), "pipeline", "match", *given, "--out", str(tmp_path / "out"), "--master", two_workers.master)
    found = pq.read_table(tmp_path / "out").to_pylist()
    wanted = {(event.id, id) for id, text in FILTERS.items() for event in events if Filter.parse(text).matches(event)}
    assert {(row["event_id"], row["subscription_id"]) for row in found} == wanted and len(found) == len(wanted)
    assert two_workers.executors() == before + 2


def test_a_master_that_is_not_there_is_said_at_once() -> None:
    command = [str(VESTNIK), "lab", "run", "leases", "--spark", "spark://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no Spark master at spark://127.0.0.1:1" in done.stderr
