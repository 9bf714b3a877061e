"""Virtual time: actions in the order of their times, and of equal times in the order in which they were asked for."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any, TypeAlias

from vestnik.model.times import FOREVER

Action: TypeAlias = Callable[[Any], None]


SELDOM = 20_000
"""So many objects more than before are made until the first look for cycles among them, instead of some hundred."""


class Kernel:
    """A clock that jumps to whatever is next. Timers are what nodes wake up by: they alone keep nothing going."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Action, Any]] = []
        self._count = 0
        self._timers = 0

    def at(self, time: float, action: Action, argument: Any = None) -> None:
        """Do `action(argument)` at `time`, or now where that is past."""
        self._count += 1
        heappush(self._heap, (time, self._count, action, argument))

    def wake(self, time: float, action: Action, argument: Any = None) -> None:
        """Like `at`, but nobody waits for it."""
        self._timers += 1
        self.at(time, self._ring, (action, argument))

    def _ring(self, timer: tuple[Action, Any]) -> None:
        self._timers -= 1
        action, argument = timer
        action(argument)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing but timers is left."""
        return len(self._heap) == self._timers

    def run(self, until: float) -> None:
        """Do everything up to and including the time `until`, which it is afterwards."""
        heap = self._heap
        with seldom_collected():
            while heap and heap[0][0] <= until:
                time, _, action, argument = heappop(heap)
                if time > self.now:
                    self.now = time
                action(argument)
        self.now = max(self.now, until)

    def settle(self, until: float = FOREVER) -> bool:
        """Go on until nothing but timers is left, at most to the time `until`; whether that came about."""
        heap = self._heap
        with seldom_collected():
            while len(heap) > self._timers and heap[0][0] <= until:
                time, _, action, argument = heappop(heap)
                if time > self.now:
                    self.now = time
                action(argument)
        return self.is_quiet


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Tables only grow while a network is told things: to look through them again and again would find nothing."""
    before = gc.get_threshold()
    gc.set_threshold(before[0] and max(before[0], SELDOM), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
