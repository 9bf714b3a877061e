"""Independent tasks, on several cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def each(
    call: Callable[[Task], Outcome], tasks: Sequence[Task], jobs: int, advance: Callable[[float], None]
) -> list[Outcome]:
    """The outcome of each task, in their order. `advance` is told the share of tasks that is done."""
    found: dict[int, Outcome] = {}
    for number, outcome in _outcomes(call, tasks, jobs):
        found[number] = outcome
        advance(len(found) / len(tasks))
    return [found[number] for number in range(len(tasks))]


def _outcomes(call: Callable[[Task], Outcome], tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, Outcome]]:
    if jobs == 1:
        yield from ((number, call(task)) for number, task in enumerate(tasks))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        numbers = {pool.submit(call, task): number for number, task in enumerate(tasks)}
        try:
            yield from ((numbers[done], done.result()) for done in as_completed(numbers))
        finally:
            pool.shutdown(cancel_futures=True)
