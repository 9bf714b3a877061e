"""Many independent cells of an experiment, as tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


class Sweep(NamedTuple):
    """A pool of the lab (`vestnik.lab.parallel`): as many tasks at a time as Spark has cores.

    Each is a job of its own, so that what came of it is there, and can be kept, while others run.
    """

    spark: SparkSession

    def map(self, call: Callable[[Task], Outcome], tasks: Sequence[Task]) -> Iterator[Outcome]:
        context = self.spark.sparkContext

        def run(task: Task) -> Outcome:
            return context.parallelize([task], 1).map(call).collect()[0]

        with ThreadPoolExecutor(context.defaultParallelism) as pool:
            try:
                yield from pool.map(run, tasks)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                context.cancelAllJobs()
