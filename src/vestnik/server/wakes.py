"""The times at which a broker asked to be woken."""

from __future__ import annotations

import heapq

from vestnik.model.times import FOREVER


class Wakes:
    """Each time is kept once, until it has passed. The caller supplies the time."""

    def __init__(self) -> None:
        self._times: set[float] = set()
        self._queue: list[float] = []

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def next(self) -> float:
        """The earliest time that has not passed."""
        return self._queue[0] if self._queue else FOREVER

    def put(self, at: float) -> None:
        """Add a time, unless it is there already."""
        if at not in self._times:
            self._times.add(at)
            heapq.heappush(self._queue, at)

    def drop_until(self, now: float) -> None:
        """Drop the times that have passed."""
        while self.next <= now:
            self._times.discard(heapq.heappop(self._queue))

    def shift(self, by: float) -> None:
        """Move all times by `by` seconds, as the clock was."""
        self._queue = [at + by for at in self._queue]  # the order stays the same
        self._times = set(self._queue)
