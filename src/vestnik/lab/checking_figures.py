"""The figures of the checking experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vestnik.lab.checking import TABLE_1
from vestnik.lab.losses import RATE
from vestnik.lab.results import Figure, Result, Row
from vestnik.report.drawing import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURES = [
    Figure("checking-figure-2", "Intervals of the adaptive strategy, one run under each law of losses"),
    Figure("checking-figure-3", "Intervals of the four strategies, one run each with Poisson losses"),
    Figure("checking-curves", "What is lost between two checks, and how long it waits, by the mean interval"),
    Figure("checking-storms", "How long losses wait, as a share of that with a constant interval and as many checks"),
]
COLOURS = dict(zip(TABLE_1, ("#2ca02c", "#7f7f7f", "#d62728", "#1f77b4"), strict=True))
HIGHEST = 80
"""Seconds up to which intervals are shown."""
LABEL = "mean interval t_avg, seconds"


def draw(result: Result, folder: Path) -> None:
    paths, curves = result.tables["checking-paths"], result.tables["checking-curves"]
    with figure(folder / "checking-figure-2.png", panels=2) as panels:
        for panel, law in zip(panels, ("uniform, nearest", "poisson"), strict=True):
            _path(panel, paths, f"adaptive, {law}", "adaptive", law)
    with figure(folder / "checking-figure-3.png", width=4.0, panels=len(TABLE_1)) as panels:
        for panel, name in zip(panels, TABLE_1, strict=True):
            _path(panel, paths, "adaptive, poisson" if name == "adaptive" else name, name, name)
    with figure(folder / "checking-curves.png", panels=3) as (lost, steady, rare):
        _curves(lost, [row for row in curves if row["weather"] == "steady"], "k_avg")
        lost.plot([0, 80], [0, 80 * RATE], color="black", linewidth=0.6)
        lost.set(title="steady losses", ylabel="lost between two checks k_avg")
        for panel, weather in ((steady, "steady"), (rare, "rare storms")):
            _curves(panel, [row for row in curves if row["weather"] == weather], "wait")
            panel.set(title=weather, ylabel="mean wait of what is lost, seconds")
    with figure(folder / "checking-storms.png", panels=3) as panels:
        for panel, share in zip(panels, (0.5, 0.2, 0.05), strict=True):
            _storms(panel, result.tables["checking-storms"], share)


def _path(panel: Axes, rows: list[Row], column: str, name: str, title: str) -> None:
    panel.plot([row["i"] for row in rows], [row[column] for row in rows], color=COLOURS[name])
    panel.set(title=title, xlabel="i", ylabel="interval t, seconds", ylim=(0, HIGHEST))


def _curves(panel: Axes, rows: list[Row], column: str) -> None:
    for name, colour in COLOURS.items():
        points = sorted((row["t_avg"], row[column]) for row in rows if row["strategy"] == name)
        panel.plot(*zip(*points, strict=True), "o-", color=colour, label=name, markersize=4)
    panel.set(xlabel=LABEL, xlim=(0, None), ylim=(0, None))
    panel.legend(fontsize=8, frameon=False, loc="upper left")


def _storms(panel: Axes, rows: list[Row], share: float) -> None:
    for name, colour in COLOURS.items():
        here = [row for row in rows if (row["share"], row["strategy"]) == (share, name)]
        if here:
            lengths, shares = [row["length"] for row in here], [row["wait_share"] for row in here]
            spread = [row["wait_share_ci"] for row in here]
            panel.errorbar(lengths, shares, yerr=spread, fmt="o-", color=colour, label=name, markersize=4)
    panel.axhline(1.0, color=COLOURS["constant"], linewidth=0.8, label="constant")
    panel.set(title=f"storms for {share:.0%} of the time", xlabel="length of a storm, seconds", xscale="log")
    panel.set(ylabel="wait / wait with a constant interval", ylim=(0, 1.5))
    panel.legend(fontsize=8, frameon=False, loc="upper left")
