"""Measurements of a broker process: its event loop, its disk and its queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from vestnik.observe.histograms import Histogram

EVERY: Final = 1.0
"""Seconds between two looks at the event loop."""


class Queues(NamedTuple):
    """Events that wait to be stored and to be routed, and bytes that wait for clients and for neighbours."""

    storing: int
    routing: int
    client_bytes: int
    neighbour_bytes: int


class Measures:
    """Looks at a process once a second, and calls `then`. `queues` returns what waits; the store fills `fsync`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        queues: Callable[[], Queues],
        fsync: Histogram | None,
        then: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._then = then
        self.queues = queues
        self.fsync = fsync
        self.loop_lag = Histogram()
        self._due = loop.time() + EVERY
        self._timer = loop.call_at(self._due, self._look)

    def close(self) -> None:
        self._timer.cancel()

    def status(self) -> dict[str, Any]:
        """Return what waits, and the latest durations in seconds, as plain data."""
        fsync = None if self.fsync is None else self.fsync.last
        return {"queues": self.queues()._asdict(), "loop_lag": self.loop_lag.last, "fsync": fsync}

    def _look(self) -> None:
        """Measure by how much later than due the loop has come to this."""
        now = self._loop.time()
        self.loop_lag.put(max(0.0, now - self._due))
        self._due = now + EVERY
        self._timer = self._loop.call_at(self._due, self._look)
        self._then()
