"""Streams: the events that one source publishes at one broker, numbered in the order in which they were taken."""

from __future__ import annotations

from collections import OrderedDict

from vestnik.model.events import Event, Pair

WINDOW = 1024
"""How far back in a stream, and in the ids of a source, a duplicate is recognised."""
_WHOLE_WINDOW = (1 << WINDOW) - 1


class Acceptance:
    """Gives events their stream and seq, and knows those that a source has published before."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._last: dict[str, int] = {}
        self._ids: dict[str, OrderedDict[str, None]] = {}

    def is_known(self, event: Event) -> bool:
        return event.id in self._ids.get(event.source, ())

    def note(self, event: Event) -> None:
        """Remember that the source has published this."""
        ids = self._ids.setdefault(event.source, OrderedDict())
        ids[event.id] = None
        if len(ids) > WINDOW:
            ids.popitem(last=False)

    def recover(self, event: Event) -> None:
        """Go on from an event that was stored in an earlier life."""
        self.note(event)
        self._last[event.source] = max(self._last.get(event.source, 0), event.seq or 0)

    def stamped(self, event: Event) -> Event:
        """The event with the next seq of its stream."""
        seq = self._last[event.source] = self._last.get(event.source, 0) + 1
        return event.replace(stream=(self._broker, event.source), seq=seq)


class Arrivals:
    """Knows the events that have arrived from other brokers."""

    def __init__(self) -> None:
        self._last: dict[Pair, int] = {}
        self._seen: dict[Pair, int] = {}  # bit n: whether the event n before the last was seen

    def is_new(self, event: Event) -> bool:
        """Whether an event arrives for the first time, and not hopelessly late; it is remembered."""
        stream, seq = event.stream, event.seq
        if stream is None or seq is None:
            return True
        last, seen = self._last.get(stream, 0), self._seen.get(stream, 0)
        if seq > last:
            self._last[stream] = seq
            self._seen[stream] = (seen << min(seq - last, WINDOW) | 1) & _WHOLE_WINDOW
            return True
        bit = 1 << (last - seq)
        if last - seq >= WINDOW or seen & bit:
            return False
        self._seen[stream] = seen | bit
        return True
