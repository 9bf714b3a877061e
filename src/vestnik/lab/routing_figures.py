"""The figures of the routing experiment, named after those of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from vestnik.lab.figures import COLOURS, WIDTHS, log_log
from vestnik.lab.results import Result
from vestnik.lab.routing import FORMS, Measured
from vestnik.lab.routing_evidence import PAPER, STRATEGIES, Evidence
from vestnik.lab.statistics import Estimate
from vestnik.report.drawing import figure
from vestnik.sim.topologies import Topology
from vestnik.wire.messages import NodeId

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOADS = [10 * round(10 ** (step / 5)) for step in range(21)]
"""Where exact values are drawn: 10 to 100,000 subscriptions."""
SUBSCRIPTIONS = "active subscriptions"

Exactly: TypeAlias = Callable[[str, bool, str, int], float]
Measuring: TypeAlias = Callable[[str, bool, str, int], Estimate]


def draw(result: Result, folder: Path) -> None:
    evidence = Evidence(msgspec.convert(result.tables["routing"], list[Measured]))
    _topology(folder / "figure-16.png")
    with figure(folder / "figure-17.png", panels=2) as panels:
        for panel, form in zip(panels, FORMS, strict=True):
            _curves(panel, evidence, ("covering", "merging"), form, evidence.exact_entries, evidence.entries)
            log_log(panel, form, SUBSCRIPTIONS, "remote entries")
    with figure(folder / "figure-18.png", panels=2) as panels:
        for panel, form in zip(panels, FORMS, strict=True):
            _factors(panel, evidence, form)
    with figure(folder / "routing-messages.png", panels=2) as panels:
        for panel, form in zip(panels, FORMS, strict=True):
            _curves(panel, evidence, STRATEGIES, form, evidence.exact_admin, evidence.admin)
            log_log(panel, form, SUBSCRIPTIONS, "messages per change")


def _curves(
    panel: Axes, evidence: Evidence, strategies: Iterable[str], form: str, exactly: Exactly, measuring: Measuring
) -> None:
    """Exact values as lines, means with standard errors as points; dashed with advertisements."""
    for strategy in strategies:
        for ads, style in ((False, "-"), (True, "--")):
            label = f"{strategy}{', advertisements' if ads else ''}"
            colour = COLOURS[strategy]
            exact = [exactly(strategy, ads, form, x) for x in LOADS]
            panel.plot(LOADS, exact, style, color=colour, label=label, linewidth=WIDTHS[strategy])
            loads = evidence.loads(strategy, ads, form)
            means = [measuring(strategy, ads, form, x) for x in loads]
            _points(panel, loads, means, strategy)


def _factors(panel: Axes, evidence: Evidence, form: str) -> None:
    for strategy in STRATEGIES:
        colour = COLOURS[strategy]
        exact = [evidence.exact_factor(strategy, form, x) for x in LOADS]
        panel.plot(LOADS, exact, color=colour, label=strategy, linewidth=WIDTHS[strategy])
        loads = [x for x in evidence.loads(strategy, False, form) if x in evidence.loads(strategy, True, form)]
        _points(panel, loads, [evidence.factor(strategy, form, x) for x in loads], strategy)
    panel.axhline(2, color="#999999", linewidth=0.8, linestyle=":")
    log_log(panel, form, SUBSCRIPTIONS, "entries without / with advertisements", "upper right")
    panel.set_yticks([2, 5, 10, 20, 28.4])


def _points(panel: Axes, loads: list[int], means: list[Estimate], strategy: str) -> None:
    """Points of strategies that come to the same lie within each other."""
    panel.errorbar(
        loads,
        [m.mean for m in means],
        yerr=[m.error for m in means],
        fmt="o",
        markersize=2 + 1.4 * WIDTHS[strategy],
        color=COLOURS[strategy],
        capsize=2,
    )


def _topology(path: Path) -> None:
    places = _places(PAPER.topology)
    access = set(PAPER.topology.access)
    with figure(path, width=11, height=3.6) as (panel,):
        for one, other in PAPER.topology.edges:
            (x1, y1), (x2, y2) = places[one], places[other]
            panel.plot([x1, x2], [y1, y2], color="#bbbbbb", linewidth=0.8, zorder=1)
        for marker, colour, nodes in (
            ("o", COLOURS["covering"], [node for node in places if node not in access]),
            ("s", COLOURS["identity"], sorted(access)),
        ):
            xs, ys = [places[node][0] for node in nodes], [places[node][1] for node in nodes]
            panel.scatter(xs, ys, s=18, marker=marker, color=colour, zorder=2)
        panel.set_axis_off()


def _places(topology: Topology) -> dict[NodeId, tuple[float, float]]:
    """Leaves side by side, every other node above the middle of those below it."""
    below: dict[NodeId, list[NodeId]] = {node: [] for node in topology.nodes}
    for node, parent in topology.parents.items():
        if parent is not None:
            below[parent].append(node)
    places: dict[NodeId, tuple[float, float]] = {}
    leaves = 0.0

    def put(node: NodeId, level: int) -> float:
        nonlocal leaves
        if below[node]:
            xs = [put(child, level - 1) for child in below[node]]
            x = (xs[0] + xs[-1]) / 2
        else:
            x, leaves = leaves, leaves + 1
        places[node] = x, float(level)
        return x

    put(topology.root, 0)
    return places
