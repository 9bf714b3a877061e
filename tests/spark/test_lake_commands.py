"""A broker, and ingests into a lake, as commands: nothing here knows how they are made."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from network.processes import serving

WITHIN = 240
"""Seconds that a command may take at most."""

KILLED_BEFORE_A_VERSION = """
import os, signal, sys
from pathlib import Path
def hook(event, arguments):
    if event == "os.rename" and "/log/" in str(arguments[1]):
        lake = Path(str(arguments[1])).parent.parent
        if any(path.suffix in (".parquet", ".data") for path in lake.rglob("*")):
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""
"""Statements after which a process ends when it has written events and makes a version of the lake of them."""


def vestnik(*words: str, patch: str = "", stdin: str = "") -> subprocess.CompletedProcess[str]:
    code = f"{patch}\nfrom vestnik.cli import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], input=stdin, capture_output=True, encoding="utf-8", timeout=WITHIN
    )


def lines(first: int, count: int) -> str:
    events = [{"type": "quote", "source": "s", "id": str(n), "data": {"n": n}} for n in range(first, first + count)]
    return "".join(f"{json.dumps(event)}\n" for event in events)


def publish(folder: Path, *options: str) -> None:
    """Let a broker with this data folder take 60 events, in three batches."""
    with serving("--name", folder.name, "--data", str(folder), *options) as (running, address):
        for first in (0, 20, 40):
            done = vestnik("pub", "--url", address, stdin=lines(first, 20))
            assert done.returncode == 0, done.stderr
        running.terminate()
        assert running.wait(WITHIN) == 0


def globbed(lake: Path) -> Counter[str]:
    """Return how often each event is in the Parquet files of a lake's folder."""
    files = [path for path in (lake / "events").rglob("*.parquet") if not path.name.startswith((".", "_"))]
    return Counter(row["id"] for path in files for row in pq.ParquetFile(path).read(["id"]).to_pylist())


def test_the_first_ingest_says_what_retention_dropped_before_it(tmp_path: Path) -> None:
    publish(tmp_path / "b1", "--retain-count", "8")
    done = vestnik("pipeline", "ingest", "--from", str(tmp_path / "b1"), "--lake", str(tmp_path / "lake"))
    kept = len(globbed(tmp_path / "lake"))
    assert 0 < kept < 60
    assert done.returncode == 1, "some of what the broker took is not in the lake"
    assert f"{60 - kept} positions of the journal of b1 were dropped by retention" in done.stderr


def test_a_glob_counts_each_event_once_after_a_killed_and_after_the_repeated_ingest(tmp_path: Path) -> None:
    """Two brokers took the same events, as if publishers had tried again at the other one."""
    lake, journals = tmp_path / "lake", [tmp_path / "b1", tmp_path / "b2"]
    for folder in journals:
        publish(folder)
    ingest = ("pipeline", "ingest", *[f"--from={folder}" for folder in journals], "--lake", str(lake))
    assert vestnik(*ingest, patch=KILLED_BEFORE_A_VERSION).returncode == -signal.SIGKILL
    assert set(globbed(lake).values()) <= {1}
    done = vestnik(*ingest)
    assert done.returncode == 0 and done.stdout.startswith("60 new events, 60 that"), done.stderr
    assert globbed(lake) == Counter(map(str, range(60)))
