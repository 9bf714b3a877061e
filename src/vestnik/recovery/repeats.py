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

    __slots__ = ("_first", "_offsets", "_origins", "places")

    def __init__(self, first: int) -> None:
        self._first = first  # the serial number of the first event
        self.places: dict[int, int] = {}
        self._origins: list[Origin] = []
        self._offsets = array("q")

    def add(self, key: int, origin: Origin, offset: int) -> None:
        self.places[key] = len(self.places)
        self._origins.append(origin)
        self._offsets.append(offset)

    def get(self, key: int) -> Twin | None:
        place = self.places.get(key)
        return None if place is None else Twin(self._origins[place], self._offsets[place], self._first + place)


class Repeats:
    """The events that came to one broker lately. `serial` is the number of the last."""

    def __init__(self) -> None:
        self.serial = 0
        self._young = Lately(1)
        self._old = Lately(1)

    def add(self, origin: Origin, events: Sequence[Event]) -> dict[int, Twin]:
        """Remember events of an origin; return the twins of those that came before of others, by their places."""
        twins: dict[int, Twin] = {}
        for place, event in enumerate(events):
            key = hash((event.source, event.id))
            if key not in self._young.places and key not in self._old.places:
                self._add(key, origin, event.seq or 0)
            elif (twin := self._get(key)) is not None and twin.origin != origin:
                twins[place] = twin
        return twins

    def _add(self, key: int, origin: Origin, offset: int) -> None:
        self.serial += 1
        if len(self._young.places) >= REPEAT_WINDOW:
            self._old, self._young = self._young, Lately(self.serial)
        self._young.add(key, origin, offset)

    def _get(self, key: int) -> Twin | None:
        return self._young.get(key) or self._old.get(key)

    def first(self, pair: Pair) -> Twin | None:
        """Return an event as it came first, if it came lately."""
        return self._get(hash(pair))

    def are_first(self, origin: Origin, events: Iterable[Event], after: int) -> bool:
        """Return whether events came lately of this origin first, and later than a serial number."""
        for event in events:
            known = self._get(hash((event.source, event.id)))
            if known is None or known.serial <= after or known.origin != origin:
                return False
        return True
