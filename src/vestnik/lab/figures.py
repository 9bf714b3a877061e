"""How the figures of the lab look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "flooding": "#7f7f7f",
    "simple": "#d62728",
    "identity": "#ff7f0e",
    "covering": "#1f77b4",
    "merging": "#2ca02c",
}
Corner: TypeAlias = Literal["upper left", "upper right"]
WIDTHS = {"flooding": 2.0, "simple": 5.0, "identity": 3.6, "covering": 2.4, "merging": 1.2}
"""Lines of strategies that come to the same are seen, the later ones on top."""


def log_log(panel: Axes, title: str, x: str, y: str, legend: Corner = "upper left") -> None:
    """Name the axes, both logarithmic, and show the legend."""
    panel.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
    panel.grid(alpha=0.25)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axis.set_minor_formatter(lambda value, _: "")
    panel.legend(fontsize=8, frameon=False, loc=legend)
