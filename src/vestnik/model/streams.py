"""Which events of a stream have been seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeAlias, TypeVar

from vestnik.model.envelope import Pair
from vestnik.model.events import Event

WINDOW = 1024
"""How far back in a stream, and in the ids of a source, a duplicate is recognised."""
STREAMS = 100_000
"""Of how many streams and sources at least this is remembered; at most of twice as many."""

_WHOLE_WINDOW = (1 << WINDOW) - 1
_NOTHING = 0, 0

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """What was put down, for at least the `size` keys that were put last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key) -> Value | None:
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def items(self) -> Iterator[tuple[Key, Value]]:
        for key, value in self._old.items():
            if key not in self._young:
                yield key, value
        yield from self._young.items()

    def put(self, key: Key, value: Value) -> None:
        if len(self._young) >= self._size and key not in self._young:
            self._old, self._young = self._young, {}
        self._young[key] = value


Seen: TypeAlias = dict[Pair, tuple[int, int]]
"""The last seq of each stream, and as bit n whether the event n before it was seen."""


def was_seen(event: Event, seen: Seen) -> bool:
    """Whether an event is among those seen, or hopelessly old."""
    last, bits = seen.get(event.stream or ("", ""), _NOTHING)
    back = last - (event.seq or 0)
    return back >= WINDOW or (back >= 0 and bool(bits >> back & 1))


class Arrivals:
    """Knows the events that have arrived, by stream and seq."""

    def __init__(self, streams: int = STREAMS) -> None:
        self._seen: Recent[Pair, tuple[int, int]] = Recent(streams)

    def of(self, broker: str) -> Seen:
        """What has arrived by now of the streams of a broker."""
        return {stream: seen for stream, seen in self._seen.items() if stream[0] == broker}

    def is_new(self, event: Event) -> bool:
        """Whether an event arrives for the first time, and not hopelessly late; it is remembered."""
        stream, seq = event.stream, event.seq
        if stream is None or seq is None:
            return True
        last, seen = self._seen.get(stream) or _NOTHING
        if seq > last:
            self._seen.put(stream, (seq, (seen << min(seq - last, WINDOW) | 1) & _WHOLE_WINDOW))
            return True
        if last - seq >= WINDOW:
            return False
        bit = 1 << (last - seq)
        if seen & bit:
            return False
        self._seen.put(stream, (last, seen | bit))
        return True


class Handed:
    """What a subscriber was given: nothing twice. What comes again is not given after what it came before."""

    def __init__(self) -> None:
        self._arrivals = Arrivals()
        self._latest: Recent[tuple[Pair, int], int] = Recent(STREAMS)  # by stream and priority

    def takes(self, event: Event, *, again: bool = False) -> bool:
        """Whether an event is to be given to the subscriber, who has it then."""
        if event.stream is None or event.seq is None:
            return True
        order = event.stream, event.priority
        latest = self._latest.get(order) or 0
        if (again and event.seq <= latest) or not self._arrivals.is_new(event):
            return False
        self._latest.put(order, max(latest, event.seq))
        return True
