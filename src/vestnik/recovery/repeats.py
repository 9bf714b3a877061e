"""Recognises an event that its publisher published at two brokers, so that no subscription gets it twice.

A broker remembers once, for all readers, at which offset of which log it had an event first. A reader has that twin if
its cursor has passed the offset since the reader started. What this does not tell, a reader remembers by itself: what
it was given of the past, and events that have a twin.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.recovery.limits import REPEAT_WINDOW, REPEAT_WINDOW_AGE
from vestnik.wire.origins import Origin


class Twin(NamedTuple):
    """An event as it came first: its origin and offset, and a serial number in the order in which events came here."""

    origin: Origin
    offset: int
    serial: int


class Until(NamedTuple):
    """The end of what is remembered now: after the event with a serial number, or at a time."""

    serial: int
    time: float


class Lately:
    """Events that came one after another, by the hash of source and id: 64 bits, with a key of this process.

    A table of the hashes is made when one is looked for: as long as all events are of one log, nobody looks.
    """

    __slots__ = ("_indexed", "_places", "first", "hashes", "highest", "offsets", "origins")

    def __init__(self, first: int) -> None:
        self.first = first  # the serial number of the first event
        self.highest = -1  # the highest offset
        self.hashes = array("q")
        self.offsets = array("q")
        self.origins: list[Origin] = []
        self._places: dict[int, int] = {}
        self._indexed = 0

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def places(self) -> dict[int, int]:
        """The place of each hash."""
        if self._indexed < len(self.hashes):
            new = self.hashes[self._indexed :] if self._indexed else self.hashes
            self._places.update(zip(new, range(self._indexed, len(self.hashes)), strict=True))
            self._indexed = len(self.hashes)
        return self._places

    def extend(self, origin: Origin, events: Sequence[Event]) -> None:
        """Add events that are not here, in the order of their offsets."""
        self.hashes.extend([hash((event.source, event.id)) for event in events])
        self.offsets.extend([event.seq or 0 for event in events])
        self.origins += [origin] * len(events)
        self.highest = max(self.highest, self.offsets[-1])

    def fresh(self, events: Sequence[Event]) -> int:
        """Return how many of the first events are not here, and differ from each other."""
        places, seen = self.places, set[int]()
        for count, event in enumerate(events):
            key = hash((event.source, event.id))
            if key in places or key in seen:
                return count
            seen.add(key)
        return len(events)

    def get(self, key: int) -> Twin | None:
        place = self.places.get(key)
        return None if place is None else Twin(self.origins[place], self.offsets[place], self.first + place)

    def place_of(self, offsets: Sequence[int]) -> int | None:
        """Return where the events at some offsets stand one after another; None if they do not. All are of one log."""
        place = bisect_left(self.offsets, offsets[0])
        return place if self.offsets[place : place + len(offsets)] == array("q", offsets) else None


class Repeats:
    """The events that came to one broker lately: at least the last `window` of those that came in `age` seconds.

    `serial` is the number of the last one. `tell` supplies the time.
    """

    def __init__(self, window: int = REPEAT_WINDOW, age: float = REPEAT_WINDOW_AGE) -> None:
        self.window = window
        self.serial = 0
        self._age = age
        self._now = 0.0  # by a clock that nobody sets
        self._set_by = 0.0  # how far the clock was set
        self._began = 0.0  # when the younger events began
        self._young = Lately(1)
        self._old = Lately(1)
        self._only: Origin | None = None  # the log of all events, if it is one

    def add(self, origin: Origin, events: Sequence[Event]) -> dict[int, Twin]:
        """Remember events of an origin; return the twins of those that came before of others, by their offsets."""
        twins: dict[int, Twin] = {}
        if self._follow(origin, events):
            return twins
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

    def _is_alone(self, origin: Origin) -> bool:
        """Return whether no events of another log are remembered."""
        return self._only == origin or not (self._young or self._old)

    def _follow(self, origin: Origin, events: Sequence[Event]) -> bool:
        """Remember events if they come after all others in the only log that is remembered; they are new then.

        A feed that catches up reads what is before a live event that came, and then that event again.
        """
        young = self._young
        has_room = len(young.offsets) + len(events) <= self.window and self._now - self._began < self._age
        if self._only != origin or not (has_room and events and young.offsets):
            return False
        if (events[0].seq or 0) <= max(young.highest, self._old.highest):
            return False
        young.extend(origin, events)
        self.serial += len(events)
        return True

    def _add_fresh(self, origin: Origin, events: Sequence[Event]) -> int:
        """Remember the first of these events, and those after it that did not come lately either; return how many."""
        self._make_room()
        self._only = origin if self._is_alone(origin) else None
        room, old = self.window - len(self._young), self._old
        some = events[:room]
        fresh = min(self._young.fresh(some), old.fresh(some) if old else room)
        self._young.extend(origin, some[:fresh])
        self.serial += fresh
        return fresh

    def _make_room(self) -> None:
        if len(self._young) >= self.window or self._now - self._began >= self._age:
            self._forget()

    def _forget(self) -> None:
        """Let the younger events be the older ones, unless they are too old for that."""
        is_old = self._now - self._began >= 2 * self._age
        self._old = Lately(self.serial + 1) if is_old else self._young
        self._young = Lately(self.serial + 1)
        self._began = self._now
        logs = set(self._old.origins)
        self._only = logs.pop() if len(logs) == 1 else None

    def tell(self, now: float) -> None:
        """Note what time it is."""
        self._now = now - self._set_by

    def shift(self, by: float) -> None:
        """Move all times, as the clock was."""
        self._set_by += by

    def until(self) -> Until:
        """Return how long what comes now has to be remembered."""
        return Until(self.serial + self.window, self._now + self._age)

    def is_over(self, until: Until) -> bool:
        """Return whether something needs to be remembered no longer."""
        return self.serial > until.serial or self._now > until.time

    def _get(self, key: int) -> Twin | None:
        return self._young.get(key) or self._old.get(key)

    def first(self, pair: Pair) -> Twin | None:
        """Return an event as it came first, if it came lately."""
        return self._get(hash(pair))

    def are_first(self, origin: Origin, events: Sequence[Event], after: int) -> bool:
        """Return whether events came lately of this origin first, and later than a serial number."""
        if self._is_alone(origin):
            offsets = [event.seq or 0 for event in events]
            for lately in (self._young, self._old):
                place = lately.place_of(offsets)
                if place is not None:
                    return lately.first + place > after
        for event in events:
            key = hash((event.source, event.id))
            lately = self._young if key in self._young.places else self._old
            place = lately.places.get(key)
            if place is None or lately.first + place <= after or lately.origins[place] != origin:
                return False
        return True
