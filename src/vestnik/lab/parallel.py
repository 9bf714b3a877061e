"""Independent tasks, on several cores or machines. One that fails is noted, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from vestnik.lab.kept import Kept
from vestnik.lab.results import Advance

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


class Failed(NamedTuple):
    """A task of which nothing came, and why."""

    of: str
    task: str
    error: str


class Pool(Protocol):
    """Where tasks are done."""

    def map(
        self, call: Callable[[Task], Outcome], tasks: Sequence[Task], lost: Callable[[Exception], Outcome]
    ) -> Iterator[Outcome]:
        """The outcome of each task, in their order, as soon as those before it are there.

        That of a task whose process has died is `lost`, where the others can go on.
        """


class Cores(NamedTuple):
    """So many of this machine, each with a process of its own; one is this process."""

    jobs: int

    def map(
        self, call: Callable[[Task], Outcome], tasks: Sequence[Task], lost: Callable[[Exception], Outcome]
    ) -> Iterator[Outcome]:
        jobs = min(self.jobs, len(tasks))
        if jobs <= 1:
            yield from map(call, tasks)
            return
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            yield from pool.map(call, tasks)


@dataclass(frozen=True)
class Bench:
    """Where an experiment is done. `advance` is told the share of the work that is done.

    What takes long is kept in `folder`, if there is one, and found there the next time. Tasks that failed are noted
    in `failed`.
    """

    pool: Pool
    advance: Advance
    folder: Path | None = None
    failed: list[Failed] = field(default_factory=list)

    def part(self, first: float, last: float) -> Bench:
        """The same for the work between two shares of the whole."""
        return replace(self, advance=lambda share: self.advance(first + share * (last - first)))


class _Tried(NamedTuple, Generic[Outcome]):
    outcome: Outcome | None
    error: str = ""


def each(call: Callable[[Task], Outcome], tasks: Sequence[Task], bench: Bench) -> Iterator[Outcome | None]:
    """The outcome of each task, in their order, as soon as those before it are there; None of one that failed."""
    kept: Kept[Task, Outcome] = Kept(bench.folder, call)
    found = [kept.get(task) for task in tasks]
    todo = [task for task, known in zip(tasks, found, strict=True) if known is None]
    tried: Iterator[_Tried[Outcome]] = bench.pool.map(partial(_try, call), todo, _lost)
    for number, (task, known) in enumerate(zip(tasks, found, strict=True), 1):
        outcome = known if known is not None else _noted(call, task, next(tried), kept, bench)
        bench.advance(number / len(tasks))
        yield outcome


def done(call: Callable[[Task], Outcome], tasks: Sequence[Task], bench: Bench) -> list[Outcome]:
    """What came of the tasks that did not fail."""
    return [outcome for outcome in each(call, tasks, bench) if outcome is not None]


def _try(call: Callable[[Task], Outcome], task: Task) -> _Tried[Outcome]:
    try:
        return _Tried(call(task))
    except Exception as error:
        return _Tried(None, f"{type(error).__name__}: {error}")


def _lost(error: Exception) -> _Tried[Any]:
    return _Tried(None, f"its worker was lost: {str(error).splitlines()[0]}")


def _noted(
    call: Callable[[Task], Outcome], task: Task, tried: _Tried[Outcome], kept: Kept[Task, Outcome], bench: Bench
) -> Outcome | None:
    if tried.outcome is None:
        bench.failed.append(Failed(call.__qualname__, str(task), tried.error))
    else:
        kept.put(task, tried.outcome)
    return tried.outcome
