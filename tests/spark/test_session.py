"""A session that finds its Java, starts Spark, and says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from vestnik.errors import MissingExtra, WrongValue
from vestnik.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_QUERY = """
from vestnik.spark import session
from vestnik.spark.session import start_session
said = []
spark = start_session("local[2]", "test", said.append)
java = spark.sparkContext._jvm.System
options = spark.conf.get("spark.driver.extraJavaOptions")
print(spark.range(10).selectExpr("sum(id)").first()[0], java.getenv("JAVA_HOME"), "ArchiveClassesAtExit" in options)
print("first start" in said[0], "starting Spark" in said)
spark.stop()
numbers = session("local[2]").sparkContext.parallelize([1], 1)
print(numbers.map(lambda _: __import__("sys").executable).first())  # and it ends as it is
"""


def test_a_query_is_answered(spark: SparkSession) -> None:
    rows = spark.createDataFrame(pa.table({"a": [1, 2, 3]})).mapInArrow(lambda batches: batches, "a long")
    assert sorted(row.a for row in rows.collect()) == [1, 2, 3]


def test_what_a_session_is_set_to(spark: SparkSession) -> None:
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"


def test_a_second_call_gives_the_same_session_with_what_is_new(spark: SparkSession) -> None:
    settings: dict[str, Any] = {"spark.sql.ansi.enabled": False}
    again = session("local[2]", **settings)
    assert again.sparkContext is spark.sparkContext
    assert again.conf.get("spark.sql.ansi.enabled") == "false"
    spark.conf.unset("spark.sql.ansi.enabled")


def test_the_environment_is_left_as_it_was(spark: SparkSession) -> None:
    assert "vestnik" not in os.environ.get("JAVA_HOME", "")
    assert "SPARK_LAUNCHER_OPTS" not in os.environ


def test_settings_are_named_as_spark_names_them() -> None:
    with pytest.raises(WrongValue, match=r"Spark's settings are named spark\.\*, not 'memory'"):
        session(memory="4g")


def test_without_pyspark_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys.modules["vestnik.spark.session"], "find_spec", lambda name: None if name == "pyspark" else 1
    )
    with pytest.raises(MissingExtra) as caught:
        session()
    assert str(caught.value) == "Spark (pyspark) needs an optional part: pip install 'vestnik[spark]'"


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A Python without Java in its environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, env={**kept, "PATH": "", **environ}
    )


def test_without_a_java_on_the_system_the_wheel_serves_and_is_faster_from_then_on(tmp_path: Path) -> None:
    for is_first in (True, False):
        done = run(FIRST_QUERY, XDG_CACHE_HOME=str(tmp_path))
        assert done.stderr == ""
        total, home, is_recorded, *said, python = done.stdout.split()
        assert said == [str(is_first), "True"], "why it takes long"
        assert python == sys.executable, "of a second session, too"
        assert (total, is_recorded) == ("45", str(is_first))
        assert Path(home).is_relative_to(tmp_path)
        (archive,) = (tmp_path / "vestnik" / "spark").glob("classes-*")
        assert archive.suffix == ".jsa"


def test_without_any_java_nothing_is_started() -> None:
    done = run("from vestnik.spark import java, session\njava.find_spec = lambda name: None\nsession()")
    assert done.stderr.splitlines()[-1].startswith("vestnik.errors.MissingJava: Spark needs Java 17 or newer")
