"""How figures are drawn. What draws them is loaded here, when one is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vestnik.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@contextmanager
def figure(path: Path, width: float = 7.0, height: float = 4.5, panels: int = 1) -> Iterator[list[Axes]]:
    """Axes side by side to draw on; what was drawn is written to `path` afterwards.

    Text is shown as it is, whatever is in it: a $ begins no formula, and what the font does not have is a box.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("drawing figures", "lab") from None
    with rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        drawing = Figure(figsize=(width * panels, height), layout="constrained")
        axes = [drawing.add_subplot(1, panels, place + 1) for place in range(panels)]
        for panel in axes:
            panel.spines[["top", "right"]].set_visible(False)
        yield axes
        drawing.savefig(path, dpi=130, metadata={"Software": None})
