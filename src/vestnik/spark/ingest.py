"""The journals of brokers into a lake, by Spark: ranges of journals are read by its tasks, wherever they run.

The lake, and journals that are folders, are where all of Spark's machines find them. Rows do not pass through Java: a
task reads its range and writes its files itself, and tells which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, TypeVar

from vestnik.errors import VestnikError
from vestnik.lake.manifest import Column
from vestnik.lake.running import Runner
from vestnik.lake.taking import TookIn, take_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A = TypeVar("A")
B = TypeVar("B")


def ingest(
    spark: SparkSession,
    journals: Iterable[str | PathLike[str]],
    lake: str | PathLike[str],
    *,
    declared: Mapping[str, Mapping[str, Column]] | None = None,
    say: Callable[[float], object] = lambda share: None,
) -> TookIn:
    """Take in what is in the journals now, folders or URLs, and not yet in the lake; what was new.

    Each event is taken in once, by its source and id. It may be killed at any point: the next one goes on behind what
    was committed last, and nothing is lost or there twice.
    """
    return take_in(lake, journals, on(spark), declared=declared, say=say)


def on(spark: SparkSession) -> Runner:
    """A task of Spark for each part."""

    def run(work: Callable[[A], B], parts: Sequence[A], /) -> list[B]:
        if not parts:
            return []
        done = spark.sparkContext.parallelize(parts, len(parts)).map(partial(_tried, work)).collect()
        for result in done:
            if isinstance(result, VestnikError | OSError):
                raise result
        return done  # type: ignore[return-value]

    return run


def _tried(work: Callable[[A], B], part: A) -> B | VestnikError | OSError:
    """What is wrong with the input or the disk is said once, and not tried again."""
    try:
        return work(part)
    except (VestnikError, OSError) as error:
        return error
