"""Independent tasks, on several cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, TypeVar

from vestnik.lab.results import Advance

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


class Bench(NamedTuple):
    """Where an experiment is done: on so many cores. `advance` is told the share of the work that is done.

    What takes long is kept in `folder`, if there is one, and found there the next time.
    """

    jobs: int
    advance: Advance
    folder: Path | None = None

    def part(self, first: float, last: float) -> Bench:
        """The same for the work between two shares of the whole."""
        return self._replace(advance=lambda share: self.advance(first + share * (last - first)))


def each(call: Callable[[Task], Outcome], tasks: Sequence[Task], bench: Bench) -> Iterator[Outcome]:
    """The outcome of each task, in their order, as soon as those before it are there."""
    for number, outcome in enumerate(_outcomes(call, tasks, min(bench.jobs, len(tasks))), 1):
        bench.advance(number / len(tasks))
        yield outcome


def _outcomes(call: Callable[[Task], Outcome], tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    if jobs <= 1:
        yield from map(call, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(call, tasks)
