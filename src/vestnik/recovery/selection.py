"""Picks, of events that come in order, those that a replay is of."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Hashable
from typing import Any

from vestnik.matching.single.index import Matcher
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import EVENT, Path
from vestnik.wire.replays import Replay


class Selection:
    """The last events, the latest by a key, those since a time, or all; and what was left out of them."""

    def __init__(self, filters: tuple[Filter, ...], replay: Replay) -> None:
        self._matcher: Matcher[int] = Matcher()
        for place, wanted in enumerate(filters):
            self._matcher.add(place, wanted)
        self._replay = replay
        self._key = None if replay.latest_by is None else replay.key()
        self._latest: dict[Any, tuple[Event, int]] = {}
        self.count = 0  # of events that are wanted, without those that have a key
        self._found: deque[tuple[Event, int]] = deque(maxlen=replay.bound)

    def take(self, event: Event, accepted: int) -> None:
        """Consider an event that was accepted at a time. One without a time of its own has that."""
        if not self.wants(event, accepted):
            return
        if self._key is None:
            self._found.append((event, accepted))
            self.count += 1
        else:
            value = key_of(event, self._key)
            self._latest.pop(value, None)
            self._latest[value] = event, accepted

    def wants(self, event: Event, accepted: int) -> bool:
        """Return whether an event is one of them unless there are later ones."""
        at, since = accepted if event.time is None else event.time, self._replay.since
        return (since is None or at >= since) and bool(self._matcher.match(event))

    def found(self) -> list[tuple[Event, int]]:
        """Return what was picked, with the times at which it was accepted."""
        return list(deque([*self._found, *self._latest.values()], maxlen=self._replay.bound))

    @property
    def left_out(self) -> str:
        """What was asked for, and is more than there may be, in words."""
        return left_out(self._replay, self.count + len(self._latest))


def left_out(replay: Replay, count: int) -> str:
    """Return in words how many of `count` events a replay leaves out; an empty text if it takes all."""
    most = replay.most or sys.maxsize
    number = min(count, replay.last or sys.maxsize) - most
    if number <= 0:
        return ""
    older = "1 older event was" if number == 1 else f"{number:,} older events were"
    return f"{older} left out: a replay picks {most:,} at most, which is the limit replay"


def key_of(event: Event, path: Path) -> Hashable:
    """Return the value at a path of an event, the same for values that filters take for the same."""
    value = EVENT.read(event, path)
    return repr(value) if isinstance(value, dict | list) else (isinstance(value, bool), value)
