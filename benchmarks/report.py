"""CPU time, and the table of what was measured beside what was promised."""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Generic, TypeVar

import msgspec
from rich.console import Console
from rich.table import Table

Result = TypeVar("Result")
Scale = TypeVar("Scale")
RESULTS = Path(__file__).parent / "results"


def cpu_seconds() -> float:
    """CPU time of this process so far: all threads, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Timing(Generic[Result]):
    """CPU seconds of each run, and what the last one returned."""

    seconds: tuple[float, ...]
    result: Result

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Slowest less fastest, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


def measure(call: Callable[[], Result], repeat: int = 5) -> Timing[Result]:
    """Run `call` once to warm up and then `repeat` times."""
    result = call()
    seconds = []
    for _ in range(repeat):
        del result
        gc.collect()
        start = cpu_seconds()
        result = call()
        seconds.append(max(cpu_seconds() - start, 1e-9))
    return Timing(tuple(seconds), result)


@dataclass(frozen=True)
class Row:
    """One figure, and how much better it is than the peer's.

    `target` is the least that `ours`, or the ratio when `of_ratio`, may be; the most when `at_most`.
    """

    section: str
    case: str
    ours: float
    unit: str
    spread: float | None = None
    peer: float | None = None
    ratio: float | None = None
    target: float | None = None
    at_most: bool = False
    of_ratio: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        value = self.ratio if self.of_ratio else self.ours
        if self.target is None or value is None:
            return None
        return value <= self.target if self.at_most else value >= self.target


@dataclass
class Report:
    """The rows of one benchmark. `quick` runs are too small to be held to the targets."""

    name: str
    quick: bool = False
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.rows.append(row)

    def show(self, console: Console) -> None:
        table = Table(title=f"{self.name}, quick: too small to judge" if self.quick else self.name)
        for title in ("section", "case"):
            table.add_column(title)
        for title in ("ours", "spread", "peer", "ratio", "target"):
            table.add_column(title, justify="right")
        table.add_column("verdict")
        table.add_column("note")
        for row in self.rows:
            table.add_row(*self._cells(row))
        console.print(table)

    def _cells(self, row: Row) -> list[str]:
        bound = "" if row.target is None else f"{'<=' if row.at_most else '>='} {figure(row.target)}"
        verdict = {None: "", True: "met", False: "short"}[None if self.quick else row.met]
        return [
            row.section,
            row.case,
            f"{figure(row.ours)} {row.unit}",
            "" if row.spread is None else f"{row.spread:.0%}",
            "" if row.peer is None else figure(row.peer),
            "" if row.ratio is None else f"{figure(row.ratio)} x",
            bound + (" x" if row.of_ratio else ""),
            verdict,
            row.note,
        ]

    def write(self, folder: Path = RESULTS) -> Path:
        """Write the rows and what they were measured with to `folder`/NAME.json."""
        folder.mkdir(parents=True, exist_ok=True)
        packages = ("vestnik", "msgspec", "numpy", "pyarrow", "numba", "duckdb")
        content = {
            "name": self.name,
            "quick": self.quick,
            "python": platform.python_version(),
            "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
            "packages": {name: version(name) for name in packages},
            "rows": [asdict(row) | {"met": None if self.quick else row.met} for row in self.rows],
        }
        path = folder / f"{self.name}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        return path


def figure(value: float) -> str:
    """Three significant digits, with a k or M for large numbers."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.3g} k"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def run(
    name: str,
    description: str,
    sections: Mapping[str, Callable[[Report, Scale], None]],
    *,
    full: Scale,
    quick: Scale,
) -> None:
    """The command line of a benchmark: run its sections, all or those that are named, show the table and write it."""
    parser = argparse.ArgumentParser(prog=f"script/bench {name}", description=description)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of: {', '.join(sections)}; else all")
    parser.add_argument("--quick", action="store_true", help="small sizes: that it runs, not how fast")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the JSON file")
    options = parser.parse_args()
    unknown = set(options.sections) - set(sections)
    if unknown:
        parser.error(f"no section called {', '.join(sorted(unknown))}")
    report = Report(name, options.quick)
    progress = Console(stderr=True)
    try:
        for section in options.sections or sections:
            progress.print(f"{section} ...", style="dim")
            sections[section](report, quick if options.quick else full)
    finally:  # what was measured before something failed, or before Ctrl-C, is worth having
        report.show(Console(width=max(140, progress.width)))
        progress.print(f"written to {report.write(options.output).name}", style="dim")
