"""Recognises an event that its publisher published at two brokers, so that no subscription gets it twice.

A broker remembers once, for all readers, at which offset of which log it had an event first. A reader has that twin if
its cursor has passed the offset since the reader started. What this does not tell, a reader remembers by itself: what
it was given of the past, and events that have a twin.
"""

from __future__ import annotations

from collections.abc import Iterable
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


class Repeats:
    """The events that came to one broker lately."""

    def __init__(self) -> None:
        self.serial = 0
        self._young: dict[Pair, tuple[Origin, int, int]] = {}
        self._old: dict[Pair, tuple[Origin, int, int]] = {}

    def add(self, pair: Pair, origin: Origin, offset: int) -> Twin | None:
        """Remember an event, unless it came before of another origin: then return that twin."""
        known = self._young.get(pair) or self._old.get(pair)
        if known is not None:
            return None if known[0] == origin else Twin(*known)
        if len(self._young) >= REPEAT_WINDOW:
            self._old, self._young = self._young, {}
        self.serial += 1
        self._young[pair] = origin, offset, self.serial
        return None

    def add_all(self, origin: Origin, events: Iterable[Event]) -> dict[int, Twin]:
        """Remember events of an origin; return the twins of those that came before of others, by their places."""
        return {
            place: twin
            for place, event in enumerate(events)
            if (twin := self.add((event.source, event.id), origin, event.seq or 0)) is not None
        }

    def are_first(self, origin: Origin, events: Iterable[Event], after: int) -> bool:
        """Return whether events came lately of this origin first, and later than a serial number."""
        young, old = self._young, self._old
        for event in events:
            pair = event.source, event.id
            known = young.get(pair) or old.get(pair)
            if known is None or known[2] <= after or known[0] != origin:
                return False
        return True

    def first(self, pair: Pair) -> Twin | None:
        """Return an event as it came first, if it came lately."""
        known = self._young.get(pair) or self._old.get(pair)
        return None if known is None else Twin(*known)
