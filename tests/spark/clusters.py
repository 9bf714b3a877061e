"""A standalone cluster on loopback: a master and two workers of one core each, from the pip package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from vestnik.spark.java import find_java
from vestnik.spark.launch import cache_folder, prepare

HOST = "127.0.0.1"
WITHIN = 90.0
"""Seconds in which it has to be there."""

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java that ends soon; executors have it from their workers."""


class Cluster(NamedTuple):
    """`folder` holds what its workers write: a folder for each application, with one for each executor."""

    master: str
    folder: Path

    def executors(self) -> int:
        """How many there have been, of all applications."""
        return len(list(self.folder.glob("w*/app-*/*/stderr")))


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    with ExitStack() as running:
        said = _start(running, folder, "m", "master.Master", "--host", HOST, "--port", "0", "--webui-port", "0")
        master = _said(said, r"Starting Spark master at (\S+)")
        workers = []
        for name in ("w1", "w2"):
            work = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / name)]
            workers.append(_start(running, folder, name, "worker.Worker", "--host", HOST, *work, master))
        for said in workers:
            _said(said, r"Successfully registered with master ()")
        yield Cluster(master, folder)


def _start(running: ExitStack, folder: Path, name: str, kind: str, *options: str) -> Path:
    home = Path(pyspark.__file__).parent
    java = prepare(find_java(None), pyspark.__version__, cache_folder()).home
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"SPARK_HOME": str(home), "JAVA_HOME": str(java), "SPARK_LOCAL_IP": HOST}
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": QUICK}
    said = folder / f"{name}.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *options],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    running.callback(process.wait)
    running.callback(process.terminate)
    return said


def _said(said: Path, pattern: str) -> str:
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        found = re.search(pattern, said.read_text(encoding="utf-8"))
        if found is not None:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"{pattern} was not said:\n{said.read_text(encoding='utf-8')}")
