"""Streams: the events that one source publishes at one broker, numbered in the order in which they were taken."""

from __future__ import annotations

from collections import OrderedDict

from vestnik.model.events import Event, Pair
from vestnik.model.streams import STREAMS, WINDOW, Recent

IDS = 16 * WINDOW
"""Of a source. A client has no more than WINDOW unanswered, and a source may have several."""

CONTENTS = 5_000
"""Of how many events that were answered for at least the content is known; at most of twice as many."""


class _Stream:
    """The pair that events have in common, and the last seq that one was given."""

    __slots__ = ("last", "name")

    def __init__(self, name: Pair, last: int) -> None:
        self.name = name
        self.last = last


class Acceptance:
    """Gives events their stream and seq, from `first` on, and knows those that a source has published before.

    The last seq of a source is kept for good: others know the stream by it.
    """

    def __init__(self, broker: str, first: int = 1) -> None:
        self._broker = broker
        self._before = first - 1
        self._streams: dict[str, _Stream] = {}  # by source
        self._contents: Recent[Pair, Event] = Recent(CONTENTS)
        self._ids: Recent[tuple[str, bool], OrderedDict[str, None]] = Recent(STREAMS)

    def is_new(self, event: Event, *, answered: bool = True) -> bool:
        """Whether the source has not published this before; it is remembered.

        What is `answered` may be repeated until it is: it is not forgotten for what nobody repeats.
        """
        source, id = event.source, event.id
        ids, others = self._ids.get((source, answered)), self._ids.get((source, not answered))
        if ids is None:
            ids = OrderedDict()
        if id in ids or (others is not None and id in others):
            return False
        ids[id] = None
        if len(ids) > IDS:
            ids.popitem(last=False)
        self._ids.put((source, answered), ids)
        if answered:
            self._contents.put((source, id), event)
        return True

    def knows_another(self, event: Event) -> bool:
        """Whether what its source has published with this id is known, and is another event."""
        known = self._contents.get((event.source, event.id))
        return known is not None and known.replace(stream=None, seq=None) != event

    def forget(self, event: Event) -> None:
        """It was not published after all, and may be again."""
        for answered in (True, False):
            ids = self._ids.get((event.source, answered))
            if ids is not None:
                ids.pop(event.id, None)

    def recover(self, event: Event) -> None:
        """Go on from an event that was stored in an earlier life."""
        self.is_new(event)
        stream = self._stream(event.source)
        stream.last = max(stream.last, event.seq or 0)

    def stamped(self, event: Event) -> Event:
        """The event with the next seq of its stream."""
        stream = self._streams.get(event.source) or self._stream(event.source)
        stream.last += 1
        return event.stamped(stream.name, stream.last)

    def _stream(self, source: str) -> _Stream:
        stream = self._streams.get(source)
        if stream is None:
            stream = self._streams[source] = _Stream((self._broker, source), self._before)
        return stream
