"""Streams: the events that one source publishes at one broker, numbered in the order in which they were taken."""

from __future__ import annotations

from collections import OrderedDict

from vestnik.model.events import Event
from vestnik.model.streams import STREAMS, WINDOW, Recent


class Acceptance:
    """Gives events their stream and seq, from `first` on, and knows those that a source has published before.

    The last seq of a source is kept for good: others know the stream by it.
    """

    def __init__(self, broker: str, first: int = 1) -> None:
        self._broker = broker
        self._before = first - 1
        self._last: dict[str, int] = {}
        self._ids: Recent[str, OrderedDict[str, None]] = Recent(STREAMS)

    def is_known(self, event: Event) -> bool:
        return event.id in (self._ids.get(event.source) or ())

    def note(self, event: Event) -> None:
        """Remember that the source has published this."""
        ids = self._ids.get(event.source) or OrderedDict()
        ids[event.id] = None
        if len(ids) > WINDOW:
            ids.popitem(last=False)
        self._ids.put(event.source, ids)

    def forget(self, event: Event) -> None:
        """It was not published after all, and may be again."""
        ids = self._ids.get(event.source)
        if ids is not None:
            ids.pop(event.id, None)

    def recover(self, event: Event) -> None:
        """Go on from an event that was stored in an earlier life."""
        self.note(event)
        self._last[event.source] = max(self._last.get(event.source, 0), event.seq or 0)

    def stamped(self, event: Event) -> Event:
        """The event with the next seq of its stream."""
        source = event.source
        seq = self._last[source] = max(self._last.get(source, 0), self._before) + 1
        return event.stamped((self._broker, source), seq)
