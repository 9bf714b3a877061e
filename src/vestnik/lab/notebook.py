"""What was measured in the routing experiment, so that it need not be measured again."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from vestnik.lab.lines import append
from vestnik.lab.parallel import Bench, each
from vestnik.lab.routing import Measured, Setting, sample

Key: TypeAlias = tuple[Any, ...]
KEY = "strategy advertisements form tolerance locality zipf producers seed operations subscriptions".split()


class Task(NamedTuple):
    """A network of each load, measured."""

    setting: Setting
    loads: list[int]
    seed: int
    operations: int

    @property
    def keys(self) -> list[Key]:
        setting = [getattr(self.setting, name) for name in KEY[:-3]]
        return [(*setting, self.seed, self.operations, load) for load in self.loads]


class Notebook:
    """Rows by what they are of. With a folder, in its file routing.jsonl; lines there that are no rows are left out."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "routing.jsonl"
        self._rows: dict[Key, Measured] = {}
        if self._path is not None and self._path.exists():
            for line in self._path.read_bytes().splitlines():
                with suppress(msgspec.DecodeError):
                    self._keep(msgspec.json.decode(line, type=Measured))

    def _keep(self, row: Measured) -> None:
        self._rows[tuple([getattr(row, name) for name in KEY])] = row

    def add(self, rows: Iterable[Measured]) -> None:
        new = list(rows)
        for row in new:
            self._keep(row)
        if self._path is not None:
            append(self._path, map(msgspec.json.encode, new))

    def __iter__(self) -> Iterator[Measured]:
        return iter(self._rows.values())

    def of(self, task: Task) -> list[Measured]:
        return [self._rows[key] for key in task.keys if key in self._rows]

    def missing(self, task: Task) -> Task:
        """What of a task is still to be done."""
        return task._replace(loads=[key[-1] for key in task.keys if key not in self._rows])


def measure(tasks: Sequence[Task], notebook: Notebook, bench: Bench) -> Generator[list[Measured], None, None]:
    """The rows of each task, in their order; none of one that failed. What is not in the notebook is put there."""
    todo = [notebook.missing(task) for task in tasks]
    outcomes = each(_sampled, [left for left in todo if left.loads], replace(bench, folder=None))
    for task, left in zip(tasks, todo, strict=True):
        if left.loads:
            rows = next(outcomes)
            notebook.add(rows or [])
        yield notebook.of(task)


def _sampled(task: Task) -> list[Measured]:
    """Nothing of a network is garbage until it has been measured: to look for some takes a third of the time."""
    rows: list[Measured] = []
    for load in task.loads:
        gc.disable()
        try:
            rows += sample(task.setting, [load], task.seed, task.operations)
        finally:
            gc.enable()
            gc.collect(0)  # all that came since is the network
    return rows
