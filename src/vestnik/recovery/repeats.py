"""Recognises an event that its publisher published at two brokers, so that no subscription gets it twice.

A broker remembers once, for all readers, at which offset of which log it had an event first. A reader has that twin if
its cursor has passed the offset since the reader started. What this does not tell, a reader remembers by itself: what
it was given of the past, and events that have a twin.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.wire.origins import Origin

REPEAT_WINDOW: Final = 100_000
"""Events among which a repeat at another broker is recognised, at least."""


class Twin(NamedTuple):
    """An event as it came first: its origin and offset, and a serial number in the order in which events came here."""

    origin: Origin
    offset: int
    serial: int


class Lately:
    """Events that came one after another, by the hash of source and id: 64 bits, with a key of this process."""

    __slots__ = ("first", "offsets", "origins", "places")

    def __init__(self, first: int) -> None:
        self.first = first  # the serial number of the first event
        self.places: dict[int, int] = {}
        self.origins: list[Origin] = []
        self.offsets = array("q")

    def add_fresh(self, origin: Origin, events: Sequence[Event]) -> int:
        """Add events up to the first that is here; return how many."""
        places, count = self.places, len(self.places)
        for event in events:
            key = hash((event.source, event.id))
            if key in places:
                break
            places[key] = len(places)
        fresh = len(places) - count
        self.origins += [origin] * fresh
        self.offsets.extend([event.seq or 0 for event in events[:fresh]])
        return fresh

    def get(self, key: int) -> Twin | None:
        place = self.places.get(key)
        return None if place is None else Twin(self.origins[place], self.offsets[place], self.first + place)


class Repeats:
    """The events that came to one broker lately. `serial` is the number of the last."""

    def __init__(self) -> None:
        self.serial = 0
        self._young = Lately(1)
        self._old = Lately(1)

    def add(self, origin: Origin, events: Sequence[Event]) -> dict[int, Twin]:
        """Remember events of an origin; return the twins of those that came before of others, by their offsets."""
        twins: dict[int, Twin] = {}
        at = 0
        while at < len(events):
            known = self._get(hash((events[at].source, events[at].id)))
            if known is not None:
                if known.origin != origin:
                    twins[events[at].seq or 0] = known
                at += 1
            else:
                at += self._add_fresh(origin, events[at:] if at else events)
        return twins

    def _add_fresh(self, origin: Origin, events: Sequence[Event]) -> int:
        """Remember the first of these events, and those after it that did not come lately either; return how many."""
        if len(self._young.places) >= REPEAT_WINDOW:
            self._old, self._young = self._young, Lately(self.serial + 1)
        room, old = REPEAT_WINDOW - len(self._young.places), self._old.places
        known = (place for place, event in enumerate(events) if hash((event.source, event.id)) in old)
        most = min(room, next(known, room)) if old else room
        fresh = self._young.add_fresh(origin, events[:most])
        self.serial += fresh
        return fresh

    def _get(self, key: int) -> Twin | None:
        return self._young.get(key) or self._old.get(key)

    def first(self, pair: Pair) -> Twin | None:
        """Return an event as it came first, if it came lately."""
        return self._get(hash(pair))

    def are_first(self, origin: Origin, events: Iterable[Event], after: int) -> bool:
        """Return whether events came lately of this origin first, and later than a serial number."""
        for event in events:
            key = hash((event.source, event.id))
            lately = self._young if key in self._young.places else self._old
            place = lately.places.get(key)
            if place is None or lately.first + place <= after or lately.origins[place] != origin:
                return False
        return True
