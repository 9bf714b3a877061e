"""All strategies on the same subscriptions and publications."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from vestnik.lab.compare_claims import judge
from vestnik.lab.compare_run import Compared, Task, measure
from vestnik.lab.figures import COLOURS, WIDTHS, log_log
from vestnik.lab.overlay import Routing
from vestnik.lab.parallel import Bench, done
from vestnik.lab.plays import WORKLOADS
from vestnik.lab.plays import Size as Size
from vestnik.lab.results import Figure, Result, Row
from vestnik.report.drawing import figure
from vestnik.routing.registry import known_strategies

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REDUCED = Size(30, 15, 3, 200, 20)
FULL = Size(None, 100, 5, 2000, 100)


def run(full: bool, bench: Bench) -> Result:
    return study(FULL if full else REDUCED, list(WORKLOADS), bench)


def study(size: Size, workloads: list[str], bench: Bench) -> Result:
    tasks = [
        Task(workload, Routing(strategy, ads), size)
        for workload in workloads
        for strategy in known_strategies()
        for ads in (False, True)
    ]
    rows = list(with_break_even(done(measure, tasks, bench)))
    return Result(
        name="compare",
        title="All strategies on the same subscriptions and publications",
        settings=size._asdict(),
        tables={"compare": [asdict(row) for row in rows]},
        claims=judge(rows),
        figures=[Figure("compare", "Messages for each publication, by how many subscriptions change for each")],
    )


def with_break_even(rows: list[Compared]) -> Iterator[Compared]:
    flooding = {
        (row.workload, row.advertisements): row.messages_per_publication for row in rows if row.strategy == "flooding"
    }
    for row in rows:
        saved = flooding[row.workload, row.advertisements] - row.messages_per_publication
        yield replace(row, break_even=saved / row.messages_per_change if row.messages_per_change else None)


def draw(result: Result, folder: Path) -> None:
    """Messages for each publication against the rate of change, without the hierarchical variants."""
    rows = [row for row in result.tables["compare"] if row["strategy"] in COLOURS]
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    with figure(folder / "compare.png", panels=len(workloads)) as panels:
        for panel, workload in zip(panels, workloads, strict=True):
            for row in rows:
                if row["workload"] == workload:
                    _line(panel, row)
            log_log(panel, workload, "subscription changes for each publication", "messages for each publication")


RATES = [10 ** (step / 10) for step in range(-20, 21)]


def _line(panel: Axes, row: Row) -> None:
    costs = [row["messages_per_publication"] + rate * row["messages_per_change"] for rate in RATES]
    label = f"{row['strategy']}{', advertisements' if row['advertisements'] else ''}"
    style, colour, width = "--" if row["advertisements"] else "-", COLOURS[row["strategy"]], WIDTHS[row["strategy"]]
    panel.plot(RATES, costs, style, color=colour, linewidth=width, label=label)
