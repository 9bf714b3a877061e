"""Streams: the events that one source publishes at one broker, numbered in the order in which they were taken."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.streams import STREAMS, WINDOW, Recent

IDS = 16 * WINDOW
"""Of a source, at least. A client has no more than WINDOW unanswered, and a source may have several."""

FEW = 8
"""Events that are looked at one by one."""
CONTENTS = 5_000
"""Of how many events that were answered for at least the content is known; at most of twice as many."""

_source = attrgetter("source")


class _Ids:
    """The last ids of a source: those since there were IDS of them, and those before."""

    __slots__ = ("new", "old")

    def __init__(self) -> None:
        self.new: set[str] = set()
        self.old: set[str] = set()

    def discard(self, id: str) -> None:
        self.new.discard(id)
        self.old.discard(id)


class Acceptance:
    """Gives events their stream and seq, from `first` on, and knows those that a source has published before.

    Others know a stream by its last seq, which must not come again. Of the sources that began first it is forgotten
    when there are more than STREAMS; one that publishes again goes on above all that were forgotten.
    """

    def __init__(self, broker: str, first: int = 1) -> None:
        self._broker = broker
        self._before = first - 1
        self._last: dict[str, int] = {}  # by source
        self._contents: Recent[Pair, Event] = Recent(CONTENTS)
        self._ids: Recent[str, tuple[_Ids, _Ids]] = Recent(STREAMS)  # of what is answered, and of what is not

    def sifted(self, events: Sequence[Event], *, answered: bool = True) -> tuple[Sequence[Event], list[Event]]:
        """Those that their source has not published before, which are remembered; and those that have another's id.

        What is `answered` may be repeated until it is: it is not forgotten for what nobody repeats.
        """
        if not answered and len(events) > FEW and self._are_fresh(events):
            return events, []
        fresh: list[Event] = []
        known: list[Event] = []
        source = None
        for event in events:
            if event.source != source:
                source = event.source
                ids, others = self._ids_of(source, answered=answered)
            id = event.id
            if id in ids.new or id in others.new or id in ids.old or id in others.old:
                known.append(event)
            else:
                if len(ids.new) == IDS:
                    ids.old, ids.new = ids.new, set()
                ids.new.add(id)
                fresh.append(event)
                if answered:
                    self._contents.put((source, id), event)
        return fresh, [event for event in known if self._knows_another(event)]

    def _are_fresh(self, events: Sequence[Event]) -> bool:
        """Whether all are of one source that has published none of them, as it mostly is; then they are remembered."""
        if len({event.source for event in events}) != 1:
            return False
        ids, others = self._ids_of(events[0].source, answered=False)
        new = {event.id for event in events}
        is_fresh = len(new) == len(events) and len(ids.new) + len(new) <= IDS
        if is_fresh and all(map(new.isdisjoint, (ids.new, others.new, ids.old, others.old))):
            ids.new |= new
            return True
        return False

    def _ids_of(self, source: str, *, answered: bool) -> tuple[_Ids, _Ids]:
        """The ids of a source that are answered for, or that are not; and the others."""
        kinds = self._ids.get(source) or (_Ids(), _Ids())
        self._ids.put(source, kinds)
        return kinds if answered else kinds[::-1]

    def _knows_another(self, event: Event) -> bool:
        """Whether what its source has published with this id is known, and is another event."""
        known = self._contents.get((event.source, event.id))
        return known is not None and known.replace(stream=None, seq=None) != event

    def forget(self, event: Event) -> None:
        """It was not published after all, and may be again."""
        self._contents.discard((event.source, event.id))
        for ids in self._ids.get(event.source) or ():
            ids.discard(event.id)

    def recover(self, event: Event) -> None:
        """Go on from an event that was stored in an earlier life."""
        self.sifted([event])
        self._last[event.source] = max(self._last.get(event.source, self._before), event.seq or 0)
        self._bound()

    def stamped(self, event: Event) -> Event:
        """The event with the next seq of its stream."""
        source = event.source
        seq = self._last[source] = self._last.get(source, self._before) + 1
        if len(self._last) > STREAMS:
            self._bound()
        return event.stamped(self._broker, seq)

    def stamp(self, events: Sequence[Event]) -> list[Event]:
        """Each event with the next seq of its stream."""
        if len(events) <= FEW:
            return [self.stamped(event) for event in events]
        stamped: list[Event] = []
        for source, run in groupby(events, key=_source):
            first = self._last.get(source, self._before) + 1
            stamped += [event.stamped(self._broker, seq) for seq, event in enumerate(run, first)]
            self._last[source] = stamped[-1].seq or 0
            self._bound()
        return stamped

    def _bound(self) -> None:
        while len(self._last) > STREAMS:
            first = next(iter(self._last))
            self._before = max(self._before, self._last.pop(first))
