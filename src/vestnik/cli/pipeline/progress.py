"""How far the tasks of Spark are, on standard error, for a person who waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from vestnik.cli.progress import share_progress

EVERY = 0.3
"""Seconds between two looks."""


@contextmanager
def task_progress(spark: Any, what: str) -> Iterator[None]:
    """Show which share of the tasks that are known of is done."""
    done = threading.Event()
    with share_progress(what) as show:
        looking = threading.Thread(target=_look, args=(spark.sparkContext.statusTracker(), show, done))
        looking.start()
        try:
            yield
        finally:
            done.set()
            looking.join()


def _look(tracker: Any, show: Callable[[float], None], done: threading.Event) -> None:
    while not done.wait(EVERY):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = sum(stage.numTasks for stage in stages if stage is not None)
        if tasks:
            show(sum(stage.numCompletedTasks for stage in stages if stage is not None) / tasks)
