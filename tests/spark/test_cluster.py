"""On a cluster: a master and two workers, to whom this package is shipped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lake.lakes import content, quote, write
from spark.clusters import Cluster, cluster
from vestnik import Event, Filter
from vestnik.cli import main
from vestnik.lake.taking import take_in
from vestnik.trace.files import to_lines
from vestnik.trace.records import AnyRecord, Notified, Published, Settled, Subscribed

VESTNIK = Path(sys.executable).with_name("vestnik")
FILTERS = {"cheap": "price < 10", "named": "symbol LIKE '%1' OR price = 3"}
EVENTS = [Event("t", {"price": n, "symbol": f"s{n}"}, source="feed", id=str(n)) for n in range(40)]

DRIVER = """
import json, os, signal, subprocess, sys
from functools import partial
from vestnik.cli import main
from vestnik.lake import taking
from vestnik.spark.ingest import on
from vestnik.spark.session import session

folder, master = sys.argv[1:]
flag = folder + "/killed"
taking.PART = 10

def executor():
    "The Java that this worker was started by, through a daemon of its own."
    parent = subprocess.run(["ps", "-o", "ppid=", "-p", str(os.getppid())], capture_output=True, text=True)
    return int(parent.stdout)

def deadly(work, part):
    done = work(part)
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return done
    os.kill(executor(), signal.SIGKILL)

def imported(_):
    import vestnik
    return vestnik.__file__

spark = session(master, "tests")
package = spark.sparkContext.parallelize(range(8), 8).map(imported).distinct().collect()
taking.take_in(folder + "/lake", [folder + "/b"], lambda work, parts: on(spark)(partial(deadly, work), parts))
spark.stop = lambda: None  # the commands have the same session
given = ["--subscriptions", folder + "/s.jsonl", "--events", folder + "/e.jsonl", "--out", folder + "/out"]
main(["pipeline", "match", *given, "--master", master], standalone_mode=False)
code = main(["pipeline", "verify", folder + "/t.jsonl", "--master", master], standalone_mode=False)
print(json.dumps({"package": package, "verify": code}))
"""


class Done(NamedTuple):
    """What a driver found, what it left and what its commands printed; and how many executors it had."""

    found: dict[str, Any]
    folder: Path
    printed: str
    executors: int


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def done(two_workers: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One driver and one session for all: to start Java takes most of the time."""
    folder = tmp_path_factory.mktemp("driver")
    write(folder / "b", "b", [*(quote(n) for n in range(50)), b"nonsense"])
    (folder / "e.jsonl").write_text("".join(f"{event.to_json()}\n" for event in EVENTS))
    lines = [json.dumps({"id": id, "filter": text}) + "\n" for id, text in FILTERS.items()]
    (folder / "s.jsonl").write_text("".join(lines))
    wanted = Subscribed(0.0, "c", "s", Filter.parse("price > 4"))
    taken = [Published(2.0 + n, "feed", event) for n, event in enumerate(EVENTS[:10])]
    happened: list[AnyRecord] = [
        wanted,
        Settled(1.0),
        *taken,
        Notified(20.0, "c", EVENTS[7], (("s", 1),)),
        Settled(30.0),
    ]
    (folder / "t.jsonl").write_bytes(b"".join(to_lines(happened)))
    words = [sys.executable, "-c", DRIVER, str(folder), two_workers.master]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    *printed, found = ended.stdout.splitlines(keepends=True)
    return Done(json.loads(found), folder, "".join(printed), two_workers.executors())


def pairs() -> Counter[tuple[str, str]]:
    filters = {id: Filter.parse(text) for id, text in FILTERS.items()}
    return Counter((event.id, id) for id, wants in filters.items() for event in EVENTS if wants.matches(event))


def test_workers_import_what_is_shipped_and_not_what_is_installed(done: Done) -> None:
    assert done.found["package"]
    assert all(f"{Path('vestnik.zip', 'vestnik', '__init__.py')}" in file for file in done.found["package"])


def test_match(done: Done) -> None:
    found = pq.read_table(done.folder / "out").to_pylist()
    assert Counter((row["event_id"], row["subscription_id"]) for row in found) == pairs()
    assert done.printed.startswith(f"{pairs().total()} pairs\n")
    assert done.executors >= 2, "both workers had one"


def test_verify(done: Done) -> None:
    checked = CliRunner().invoke(main, ["check", str(done.folder / "t.jsonl")])
    assert "c was not notified of feed/5" in checked.stdout
    assert done.found["verify"] == checked.exit_code == 1
    assert done.printed.partition("pairs\n")[2].startswith(checked.stdout)


def test_an_executor_that_is_killed_while_it_takes_in(done: Done) -> None:
    assert (done.folder / "killed").exists()
    take_in(done.folder / "undisturbed", [done.folder / "b"])
    assert content(done.folder / "lake") == content(done.folder / "undisturbed")


def test_a_master_that_is_not_there_is_said_at_once() -> None:
    command = [str(VESTNIK), "lab", "run", "leases", "--spark", "spark://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no Spark master at spark://127.0.0.1:1" in done.stderr
