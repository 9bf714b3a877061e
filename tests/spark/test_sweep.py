"""An experiment on Spark comes to what it comes to here."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vestnik.lab.notebook import Notebook, Task, measure
from vestnik.lab.parallel import Bench, Cores, each
from vestnik.lab.routing import Setting
from vestnik.spark.sweep import Sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VESTNIK = Path(sys.executable).with_name("vestnik")


def silent(share: float) -> None:
    assert 0 < share <= 1


def test_the_same_is_measured(spark: SparkSession) -> None:
    setting = Setting(strategy="covering", advertisements=True, form="interval")
    tasks = [Task(setting, [20, 50], seed, 2) for seed in (1, 2, 3)]
    here, there = (list(measure(tasks, Notebook(None), Bench(pool, silent))) for pool in (Cores(1), Sweep(spark)))
    assert here == there


def test_a_cell_that_fails_is_noted_and_the_others_go_on(spark: SparkSession) -> None:
    bench = Bench(Sweep(spark), silent)
    assert list(each(math.sqrt, [9.0, -1.0, 4.0], bench)) == [3.0, None, 2.0]
    assert [(one.of, one.task) for one in bench.failed] == [("sqrt", "-1.0")]


def ended(number: int) -> int:
    if number == 2:
        os._exit(9)
    return number


def test_a_cell_that_ends_its_worker_is_noted_and_others_jobs_go_on(spark: SparkSession) -> None:
    def slow(number: int) -> int:
        time.sleep(4)
        return number

    with ThreadPoolExecutor(1) as other:
        job = other.submit(lambda: spark.sparkContext.parallelize([7], 1).map(slow).collect())
        bench = Bench(Sweep(spark), silent)
        assert list(each(ended, [1, 2, 3], bench)) == [1, None, 3]
        assert [(one.of, one.task) for one in bench.failed] == [("ended", "2")]
        assert bench.failed[0].error.startswith("its worker was lost: ")
        assert job.result(60) == [7]


def test_a_run_that_was_ended_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    tasks = [Task(Setting(strategy="identity"), [20], seed, 1) for seed in range(1, 7)]
    bench = Bench(Sweep(spark), silent)
    with closing(measure(tasks, Notebook(tmp_path), bench)) as begun:
        first = next(begun)
    rows = tmp_path / "routing.jsonl"
    assert rows.read_bytes().count(b"\n") == 1
    found = list(measure(tasks, Notebook(tmp_path), bench))
    assert found[0] == first and [row.seed for grown in found for row in grown] == [1, 2, 3, 4, 5, 6]
    assert rows.read_bytes().count(b"\n") == 6


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["--spark", "local[1]", "--jobs", "2"], "--jobs is for this machine"), (["--spark", "here"], "not 'here'")],
)
def test_where_it_cannot_run(options: list[str], reason: str) -> None:
    done = subprocess.run([str(VESTNIK), "lab", "run", "leases", *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and reason in done.stderr and "Traceback" not in done.stderr
