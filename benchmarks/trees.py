"""What a process and all below it take: Spark is a Java and many Pythons."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    parent: int
    seconds: float
    resident: int


def tree() -> Iterator[Process]:
    """This process and all that descend from it. The seconds of a process are with those of children it waited for."""
    found: dict[int, Process] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            found[int(entry.name)] = Process(
                int(fields[1]), sum(map(int, fields[11:15])) / TICK, int(fields[21]) * PAGE
            )
    ours = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, process in found.items() if process.parent in ours} - ours
        ours |= more
        grown = bool(more)
    return (found[pid] for pid in ours if pid in found)


def cpu_of_tree() -> float:
    return sum(process.seconds for process in tree())


@contextmanager
def peak_of_tree(every: float = 0.25) -> Iterator[Callable[[], int]]:
    """Gives a function that says how many bytes were resident at most: shared ones count in each process."""
    peak = 0
    done = threading.Event()

    def look() -> None:
        nonlocal peak
        while not done.wait(every):
            peak = max(peak, sum(process.resident for process in tree()))

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield lambda: peak
    finally:
        done.set()
        watching.join()
