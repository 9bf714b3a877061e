"""Which events of a stream have been seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeAlias, TypeVar

from vestnik.model.envelope import MEDIUM, Pair
from vestnik.model.events import Event

WINDOW = 1024
"""How far back in a stream, and in the ids of a source, a duplicate is recognised."""
STREAMS = 10_000
"""Streams that are remembered, those of the latest events; a subscriber and a broker keep up to twice as many."""

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

    def discard(self, key: Key) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)


Seen: TypeAlias = dict[Pair, tuple[int, int]]
"""The last seq of each stream, and as bit n whether the event n before it was seen."""


def was_seen(event: Event, seen: Seen) -> bool:
    """Whether an event is among those seen, or hopelessly old."""
    last, bits = seen.get(event.stream or ("", ""), _NOTHING)
    back = last - (event.seq or 0)
    return back >= WINDOW or (back >= 0 and bool(bits >> back & 1))


class _Stream:
    """The events of one stream that were seen; `latest` is the last seq of each priority, if somebody keeps it.

    Nearly all events have the priority MEDIUM, so only the others need a dictionary.
    """

    __slots__ = ("_latest", "_others", "bits", "last")

    def __init__(self) -> None:
        self.last, self.bits = _NOTHING
        self._latest = 0
        self._others: dict[int, int] | None = None

    def latest(self, priority: int) -> int:
        """Return the last seq of a priority that was handed over; 0 if there was none."""
        if priority == MEDIUM:
            return self._latest
        return 0 if self._others is None else self._others.get(priority, 0)

    def hand(self, priority: int, seq: int) -> None:
        """Note that an event was handed over, which may be the last of its priority."""
        if priority != MEDIUM:
            self._others = self._others or {}
            self._others[priority] = max(seq, self._others.get(priority, 0))
        elif seq > self._latest:
            self._latest = seq

    def adds(self, seq: int) -> bool:
        """Whether an event is seen for the first time, and not hopelessly late; it is remembered."""
        ahead = seq - self.last
        if ahead > 0:
            self.last = seq
            self.bits = (self.bits << ahead | 1) & _WHOLE_WINDOW if ahead < WINDOW else 1
            return True
        bit = 1 << -ahead
        if ahead <= -WINDOW or self.bits & bit:
            return False
        self.bits |= bit
        return True


class _Streams:
    """What was seen of streams, of which at least the last so many are remembered."""

    def __init__(self, streams: int) -> None:
        self._recent: Recent[Pair, _Stream] = Recent(streams)
        self._broker = self._source = ""  # of the last one, which often is the next one, too
        self._last = _Stream()

    def of(self, broker: str, source: str) -> _Stream:
        if source != self._source or broker != self._broker:
            key = broker, source
            self._broker, self._source, self._last = broker, source, self._recent.get(key) or _Stream()
            self._recent.put(key, self._last)
        return self._last

    def items(self) -> Iterator[tuple[Pair, _Stream]]:
        return self._recent.items()


class Arrivals:
    """Knows the events that have arrived, by stream and seq."""

    def __init__(self, streams: int = STREAMS) -> None:
        self._streams = _Streams(streams)

    def of(self, broker: str) -> Seen:
        """What has arrived by now of the streams of a broker."""
        return {pair: (stream.last, stream.bits) for pair, stream in self._streams.items() if pair[0] == broker}

    def is_new(self, event: Event) -> bool:
        """Whether an event arrives for the first time, and not hopelessly late; it is remembered."""
        broker, seq = event.broker, event.seq
        return broker is None or seq is None or self._streams.of(broker, event.source).adds(seq)


class Handed:
    """What a subscriber was given: nothing twice. What comes again is not given after what it came before."""

    def __init__(self) -> None:
        self._streams = _Streams(STREAMS)

    def takes(self, event: Event, *, again: bool = False) -> bool:
        """Whether an event is to be given to the subscriber, who has it then."""
        broker, seq = event.broker, event.seq
        if broker is None or seq is None:
            return True
        stream = self._streams.of(broker, event.source)
        priority = event.priority
        if (again and seq <= stream.latest(priority)) or not stream.adds(seq):
            return False
        stream.hand(priority, seq)
        return True
