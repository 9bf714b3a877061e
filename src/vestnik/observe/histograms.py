"""How long something takes: a histogram of seconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))
"""The upper bounds of the buckets, in seconds."""


class Histogram:
    """Counts durations by bucket. `last` is the latest of them, and `total` is their sum, in seconds."""

    def __init__(self) -> None:
        self.last = 0.0
        self.total = 0.0
        self._counts = [0] * len(BOUNDS)

    def put(self, seconds: float) -> None:
        self.last = seconds
        self.total += seconds
        self._counts[bisect_left(BOUNDS, seconds)] += 1

    def buckets(self) -> Iterator[tuple[float, int]]:
        """Yield each bound, and how many durations were not longer."""
        yield from zip(BOUNDS, accumulate(self._counts), strict=True)
