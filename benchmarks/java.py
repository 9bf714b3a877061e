"""The Java that Spark runs in: one for a process, unless it is ended."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext


def end(spark: Any) -> None:
    """Stop a session, and its Java: what starts next has settings of its own, and memory that nobody has used."""
    gateway: Any = SparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None
