"""Repeats: the events that a source has published before at one broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from vestnik.broker.sources import KnownSources
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.streams import WINDOW, Recent
from vestnik.wire.packing import digest

FEW_EVENTS = 8
"""Events that are looked at one by one."""
CONTENTS = 5_000
"""The least number of answered events whose digests are known. The greatest is twice that."""

_source = attrgetter("source")


class Acceptance:
    """Knows the events that sources have published before, within bounds."""

    def __init__(self) -> None:
        self._sources = KnownSources()
        self._contents: Recent[Pair, bytes] = Recent(CONTENTS)

    def sifted(self, events: Sequence[Event], *, answered: bool = True) -> tuple[Sequence[Event], list[Event]]:
        """Those that their source has not published before, which are remembered; and those that have another's id.

        What is `answered` may be repeated until it is: it is not forgotten for what nobody repeats.
        """
        if not answered and FEW_EVENTS < len(events) <= WINDOW and self._are_fresh(events):
            return events, []
        fresh: list[Event] = []
        known: list[Event] = []
        for name, run in groupby(events, key=_source):
            source = self._sources.of(name)
            for event in run:
                if source.knows(event.id):
                    known.append(event)
                else:
                    self._sources.add(source, event.id, answered=answered)
                    fresh.append(event)
                    if answered:
                        self._contents.put((name, event.id), digest(_unstamped(event)))
        return fresh, [event for event in known if self._knows_another(event)]

    def _are_fresh(self, events: Sequence[Event]) -> bool:
        """Whether all are of one source that has published none of them, as it mostly is; then they are remembered."""
        if len({event.source for event in events}) != 1:
            return False
        source = self._sources.of(events[0].source)
        new = {event.id for event in events}
        is_fresh = len(new) == len(events) and source.knows_none(new)
        if is_fresh:
            self._sources.add_all(source, new, answered=False)
        return is_fresh

    def _knows_another(self, event: Event) -> bool:
        """Whether what its source has published with this id is known, and is another event."""
        known = self._contents.get((event.source, event.id))
        return known is not None and known != digest(event)

    def forget(self, event: Event) -> None:
        """It was not published after all, and may be again."""
        self._contents.discard((event.source, event.id))
        self._sources.discard(event.source, event.id)

    def recover(self, pair: Pair) -> None:
        """Go on from an event that was stored in an earlier life."""
        name, id = pair
        source = self._sources.of(name)
        if not source.knows(id):
            self._sources.add(source, id, answered=True)

    def recover_contents(self, events: Iterable[Event]) -> None:
        """Remember what the last events of an earlier life were."""
        for event in events:
            if self._contents.get((event.source, event.id)) is None:
                self._contents.put((event.source, event.id), digest(_unstamped(event)))


def _unstamped(event: Event) -> Event:
    return event if event.seq is None and event.broker is None else event.replace(stream=None, seq=None)
