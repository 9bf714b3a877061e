"""What is to be done, and when."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, Literal, NamedTuple, TypeVar

from vestnik.model.times import FOREVER

PATIENCE = 5.0
"""Seconds after which a question that was not answered is asked again."""

Key = TypeVar("Key", bound=Hashable)


class Errand(NamedTuple):
    """Something that a client does later."""

    what: Literal["renew", "offer", "check", "ask", "repeat"]
    about: str | int  # the name of a subscription or of an advertisement, or the number of a request


class Agenda(Generic[Key]):
    """Each key has one time at most: to put it down again is to put it off."""

    def __init__(self) -> None:
        self._times: dict[Key, float] = {}
        self._queue: list[tuple[float, int, Key]] = []  # also of what was put off or dropped since
        self._count = count()

    def __contains__(self, key: Key) -> bool:
        return key in self._times

    def put(self, key: Key, at: float) -> None:
        self._times[key] = at
        heapq.heappush(self._queue, (at, next(self._count), key))

    def drop(self, key: Key) -> None:
        self._times.pop(key, None)

    def due(self, now: float) -> Iterator[Key]:
        """What is due; it is taken off."""
        while self.next <= now:
            _, _, key = heapq.heappop(self._queue)
            del self._times[key]
            yield key

    @property
    def earliest(self) -> float:
        """A time before which nothing is due. It may be that of something that was dropped, so it costs no search."""
        return self._queue[0][0] if self._queue else FOREVER

    @property
    def next(self) -> float:
        """When the first is due."""
        while self._queue and self._times.get(self._queue[0][2]) != self._queue[0][0]:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else FOREVER
