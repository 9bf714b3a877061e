"""How far a long command is, on standard error, for a person who waits."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase


@contextmanager
def progress(what: str, file: BufferedIOBase) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the bytes that were read of `file`.

    It draws only where standard error is a terminal and the results go elsewhere.
    """
    if not _is_terminal(sys.stderr) or _is_terminal(sys.stdout):
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=_size(file))
        yield lambda size: bar.advance(task, size)


@contextmanager
def share_progress(what: str) -> Iterator[Callable[[float], None]]:
    """Gives a function to call with the share, from 0 to 1, that is done. It draws only on a terminal."""
    if not _is_terminal(sys.stderr):
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def step_progress() -> Iterator[Callable[[str], None]]:
    """Give a function to call with each step, of which nobody knows how long it takes. It draws only on a terminal."""
    if not _is_terminal(sys.stderr):
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=None)
        yield lambda step: bar.update(task, description=step, refresh=True)


def _is_terminal(stream: object) -> bool:
    return stream is not None and bool(getattr(stream, "isatty", lambda: False)())


def _size(file: BufferedIOBase) -> int | None:
    """The bytes of a file that has an end; None for a pipe or a terminal."""
    found = os.fstat(file.fileno())
    return found.st_size if stat.S_ISREG(found.st_mode) else None
