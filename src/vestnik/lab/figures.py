"""How figures are drawn. What draws them is loaded here, when one is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vestnik.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "flooding": "#7f7f7f",
    "simple": "#d62728",
    "identity": "#ff7f0e",
    "covering": "#1f77b4",
    "merging": "#2ca02c",
}
WIDTHS = {"flooding": 2.0, "simple": 5.0, "identity": 3.6, "covering": 2.4, "merging": 1.2}
"""Lines of strategies that come to the same are seen, the later ones on top."""


@contextmanager
def figure(path: Path, width: float = 7.0, height: float = 4.5, panels: int = 1) -> Iterator[list[Axes]]:
    """Axes side by side to draw on; what was drawn is written to `path` afterwards."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("drawing figures", "lab") from None
    drawing = Figure(figsize=(width * panels, height), layout="constrained")
    axes = [drawing.add_subplot(1, panels, place + 1) for place in range(panels)]
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    yield axes
    drawing.savefig(path, dpi=130, metadata={"Software": None})


def log_log(panel: Axes, title: str, x: str, y: str) -> None:
    """Name the axes, both logarithmic, and show the legend."""
    panel.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
    panel.grid(alpha=0.25)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axis.set_minor_formatter(lambda value, _: "")
    panel.legend(fontsize=8, frameon=False)
