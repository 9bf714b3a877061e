"""Many independent cells of an experiment, as tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


class Sweep(NamedTuple):
    """A pool of the lab (`vestnik.lab.parallel`): as many tasks at a time as Spark has cores.

    Each is a job of its own, so that what came of it is there, and can be kept, while others run.
    """

    spark: SparkSession

    def map(
        self, call: Callable[[Task], Outcome], tasks: Sequence[Task], lost: Callable[[Exception], Outcome]
    ) -> Iterator[Outcome]:
        context, tag = self.spark.sparkContext, f"sweep-{uuid4().hex}"

        def run(task: Task) -> Outcome:
            context.addJobTag(tag)
            try:
                return context.parallelize([task], 1).map(call).collect()[0]
            except Exception as error:  # Spark has several kinds of them
                return lost(error)

        with ThreadPoolExecutor(context.defaultParallelism) as pool:
            try:
                yield from pool.map(run, tasks)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                context.cancelJobsWithTag(tag)
