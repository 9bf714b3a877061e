"""Gives readers what they want: events and gaps, numbered, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from vestnik.model.events import Event
from vestnik.model.reserved import is_reserved
from vestnik.model.times import MICROS
from vestnik.recovery.feed import Feed
from vestnik.recovery.flight import Flight, of_packed, single, together
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.repeats import Repeats, Twin
from vestnik.recovery.tail import Tail
from vestnik.wire.messages import Gap
from vestnik.wire.origins import Origin, PackedSlice, Placed, Slice

STEPS: Final = 5_000
"""Notifications that are given in one turn, roughly; some milliseconds."""

Given: TypeAlias = tuple[Reader, int, Flight]
"""A reader, the number of the first that it is given, and all that it is given."""


class Giving:
    """Gives the readers of one broker their events and gaps. `given` is what was given since `take_given`, in order.

    `now` is the time of what is being handled, and `left` is how much more may be given in this turn. `resolved` are
    readers of which a cursor is known now, and `finished` those that have read all, with what they miss. `cursor_of`
    says how far a reader has come in a log, and `tail` who wanted the latest events of the `own` log.
    """

    def __init__(
        self, own: Origin, tail: Tail, repeats: Repeats, cursor_of: Callable[[ReaderKey, Origin], int]
    ) -> None:
        self._own = own
        self._tail = tail
        self._cursor_of = cursor_of
        self.now = 0.0
        self.left = STEPS
        self.given: list[Given] = []
        self.resolved: dict[ReaderKey, None] = {}
        self.finished: list[tuple[Reader, list[str]]] = []
        self.repeats = repeats

    def begin_turn(self, now: float) -> None:
        """Begin to handle what has happened at a time."""
        self.now, self.left = now, STEPS
        self.repeats.tell(now)

    @property
    def has_some(self) -> bool:
        """Whether anything is to be sent."""
        return bool(self.given or self.resolved or self.finished)

    def take_given(self) -> list[Given]:
        given, self.given = self.given, []
        return given

    def resolve(self, readers: Iterable[ReaderKey]) -> None:
        """Note that readers may know now where they start."""
        self.resolved.update(dict.fromkeys(readers))

    def take_resolved(self) -> list[ReaderKey]:
        """Return readers whose clients are to be told, as many as this turn allows."""
        taken = list(islice(self.resolved, max(1, self.left)))
        for key in taken:
            del self.resolved[key]
        self.left -= len(taken)
        return taken

    def finish(self, reader: Reader, missing: list[str]) -> None:
        """Note that a reader has read all, and what it misses."""
        self.finished.append((reader, missing))

    def take_finished(self) -> list[tuple[Reader, list[str]]]:
        finished, self.finished = self.finished, []
        return finished

    def forget(self, reader: Reader) -> None:
        """Drop what a reader that has ended was given and not sent."""
        if self.given:
            self.given = [one for one in self.given if one[0] is not reader]

    def live(
        self, events: Sequence[Event], flight: Flight, twins: Mapping[int, Twin], readers: Iterable[Reader]
    ) -> list[tuple[Reader, int]]:
        """Give live events, which are those of a flight, to readers that want all of them.

        `twins` has the twins of those that have one, by offset. Return the readers that have no room, each with the
        place of the first event for which it has none.
        """
        is_plain = not twins
        for event in events:
            if event.seldom is not None and self._has_expired(event):
                is_plain = False
        without_room: list[tuple[Reader, int]] = []
        for reader in readers:
            if is_plain and not reader.is_young and reader.remembered is None:
                count = self._give(reader, flight)
            else:
                count = self._give_each(reader, events, flight, twins)
            if count < flight.count:
                without_room.append((reader, count))
        return without_room

    def _has_expired(self, event: Event) -> bool:
        return event.seldom is not None and event.expires is not None and event.expires <= self.now * MICROS

    def _give_each(self, reader: Reader, events: Sequence[Event], flight: Flight, twins: Mapping[int, Twin]) -> int:
        """Give the events that a reader has not got from another log; return the place at which there was no room."""
        for place, event in enumerate(events):
            twin = twins.get(event.seq or 0)
            if self._has_expired(event) or self._has(reader, event, twin):
                continue
            if reader.room <= 0:
                return place
            if twin is not None or reader.is_young:
                reader.remember((event.source, event.id), self.repeats)
            self._give(reader, flight.part(place, place + 1))
        return flight.count

    def _give(self, reader: Reader, flight: Flight) -> int:
        """Give a reader as much as it has room for; return how many events."""
        first = reader.number + 1
        part = reader.give(flight)
        if part is None:
            return 0
        self.given.append((reader, first, part))
        self.left -= part.count
        return part.count

    def _force(self, reader: Reader, flight: Flight) -> None:
        """Give a reader something, also without room."""
        self.given.append((reader, reader.number + 1, flight))
        reader.force(flight)
        self.left -= flight.count

    def give_page(
        self, feed: Feed, reader: Reader, page: Slice, *, is_exact: bool = False, is_copy: bool = False
    ) -> bool:
        """Give a page to one reader, and move its cursor; return False if it has no room for all of it.

        If the page `is_exact`, the reader wants all of it. A copy is of the log of a history.
        """
        size = page.average_size
        if page.events and is_exact and not is_copy and self._is_new(feed, reader, page.events):
            many = len(page.events)
            if isinstance(page, PackedSlice):
                flight = of_packed(page.packed, feed.origin)
            else:
                flight = together(page.events, [size] * many, feed.origin)
            count = self._give(reader, flight)
            if count < many:
                feed.advance(page.events[count].seq or 0)
            return count == many
        for placed in page.placed():
            if not self.give_read(feed, reader, placed, size, is_wanted=is_exact, is_copy=is_copy):
                feed.advance(placed.offset)
                return False
            feed.advance(placed.offset + 1)
        return True

    def _is_new(self, feed: Feed, reader: Reader, events: Sequence[Event]) -> bool:
        """Return whether a reader gets all these events, each for the first time, and its cursor tells that later."""
        if reader.is_young or reader.remembered is not None or reader.earlier or reader.ends:
            return False
        if feed.past is not None or any(event.seldom is not None for event in events):
            return False
        return self.repeats.are_first(feed.origin, events, reader.began)

    def give_read(
        self, feed: Feed, reader: Reader, placed: Placed, size: int, *, is_wanted: bool = False, is_copy: bool = False
    ) -> bool:
        """Give an event of a page to one reader, if it wants it; return False if it has no room.

        A copy is of the log of a history.
        """
        event, is_past = placed.event, is_copy or feed.is_past(placed.offset)
        if not (is_wanted or self._wants(feed.origin, reader, placed)) or (is_past and reader.is_before_past(placed)):
            return True
        if (reader.earlier and not reader.may_have(placed)) or (reader.ends and not is_past):
            return True
        return self.give(reader, feed.origin, event, size, is_replayed=is_past)

    def _wants(self, origin: Origin, reader: Reader, placed: Placed) -> bool:
        known = self._tail.wants(reader, placed.offset) if origin == self._own else None
        return reader.filter.matches(placed.event) if known is None else known

    def give(
        self,
        reader: Reader,
        origin: Origin,
        event: Event,
        size: int,
        *,
        is_replayed: bool = False,
        force: bool = False,
    ) -> bool:
        """Give an event of a page to a reader, once and unless it has expired; return False if it has no room."""
        if self._has_expired(event):
            return True
        pair = event.source, event.id
        first = self.repeats.first(pair)
        twin = first if first is not None and first.origin != origin else None
        if self._has(reader, event, twin):
            return True
        if reader.room <= 0 and not force:
            return False
        if event.seq is None and is_reserved(event.type):  # the copy in a history of an event of a broker
            self.announce(reader, event, size, is_past=is_replayed)
            return True
        if first is None or twin is not None or reader.is_young or first.serial <= reader.began:
            reader.remember(pair, self.repeats)  # its cursor will not tell that it has this event
        self._force(reader, single(event, size, origin, is_replayed=is_replayed))
        return True

    def _has(self, reader: Reader, event: Event, twin: Twin | None) -> bool:
        """Return whether a reader was given the same event of another log."""
        if reader.remembers((event.source, event.id), self.repeats):
            return True
        if twin is None or reader.missed(twin):
            return False
        if reader.is_young or twin.serial <= reader.began:
            return reader.had_before(event, twin)
        return self._cursor_of(reader.key, twin.origin) > twin.offset

    def tell(self, reader: Reader, gap: Gap, *, force: bool = False) -> bool:
        """Tell a reader of a gap; return False if it has no room."""
        if reader.room <= 0 and not force:
            return False
        self.given.append((reader, reader.number + 1, reader.tell(gap)))
        return True

    def announce(self, reader: Reader, event: Event, size: int, *, is_past: bool) -> None:
        """Give a reader an event of a broker, which is in no log but those of histories, once."""
        if not reader.is_announced(event.id):
            self._force(reader, single(event, size, None, is_replayed=is_past))
