"""Gives readers what they want: events and gaps, numbered, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from vestnik.model.events import Event
from vestnik.model.times import MICROS
from vestnik.recovery.feed import Feed
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.repeats import Repeats, Twin
from vestnik.wire.messages import Delivery, Gap
from vestnik.wire.origins import Origin, Placed

STEPS: Final = 5_000
"""Notifications that are given in one turn, roughly; some milliseconds."""

Given: TypeAlias = tuple[Reader, Delivery, Origin | None]
"""A notification for a reader, and the log that its event is of."""


class Giving:
    """What readers of one broker are given. `given` is what was given since it was taken last, in order.

    `now` is the time of what is being handled, and `left` is how much more may be given in this turn. `resolved` are
    readers of which a cursor is known now, and `finished` those that have read all, with what they miss. `cursor_of`
    says how far a reader has come in a log.
    """

    def __init__(self, repeats: Repeats, cursor_of: Callable[[ReaderKey, Origin], int]) -> None:
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

    def take_given(self) -> list[Given]:
        given, self.given = self.given, []
        return given

    def take_resolved(self) -> dict[ReaderKey, None]:
        resolved, self.resolved = self.resolved, {}
        return resolved

    def take_finished(self) -> list[tuple[Reader, list[str]]]:
        finished, self.finished = self.finished, []
        return finished

    def forget(self, reader: Reader) -> None:
        """Drop what a reader that has ended was given and not sent."""
        if self.given:
            self.given = [one for one in self.given if one[0] is not reader]

    def live(self, origin: Origin, event: Event, size: int, readers: Iterable[Reader]) -> list[Reader]:
        """Give an event to readers; return those that have no room for it."""
        pair, expires = (event.source, event.id), event.expires
        twin = self.repeats.add(pair, origin, event.seq or 0)
        if expires is not None and expires <= self.now * MICROS:
            return []
        without_room: list[Reader] = []
        for reader in readers:
            if (twin is not None or reader.remembered is not None) and self._has(reader, event, twin):
                continue
            if reader.room <= 0:
                without_room.append(reader)
                continue
            if twin is not None or reader.is_young:
                reader.remember(pair, self.repeats.serial)
            self.given.append((reader, reader.give(origin, event, size), origin))
            self.left -= 1
        return without_room

    def give_read(
        self, feed: Feed, reader: Reader, placed: Placed, size: int, *, is_wanted: bool = False, is_copy: bool = False
    ) -> bool:
        """Give an event of a page to one reader, if it wants it; return False if it has no room.

        A copy is of the log of a history.
        """
        event, is_past = placed.event, is_copy or feed.is_past(placed.offset)
        if not (is_wanted or reader.filter.matches(event)) or (is_past and reader.is_before_past(placed)):
            return True
        if (reader.earlier and not reader.may_have(placed)) or (reader.ends and not is_past):
            return True
        return self.give(reader, feed.origin, event, size, is_replayed=is_past)

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
        if event.expires is not None and event.expires <= self.now * MICROS:
            return True
        pair = event.source, event.id
        first = self.repeats.first(pair)
        twin = first if first is not None and first.origin != origin else None
        if self._has(reader, event, twin):
            return True
        if reader.room <= 0 and not force:
            return False
        if event.seq is None:  # the copy in a history of an event of a broker
            self.announce(reader, event, size, is_past=is_replayed)
            return True
        if first is None or twin is not None or reader.is_young or first.serial <= reader.began:
            reader.remember(pair, self.repeats.serial)  # its cursor will not tell that it has this event
        self.given.append((reader, reader.give(origin, event, size, is_replayed=is_replayed), origin))
        self.left -= 1
        return True

    def _has(self, reader: Reader, event: Event, twin: Twin | None) -> bool:
        """Return whether a reader was given the same event of another log."""
        if reader.remembered is not None:
            if not reader.is_young and self.repeats.serial > reader.forgets:
                reader.remembered = None
            elif (event.source, event.id) in reader.remembered:
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
        self.given.append((reader, reader.tell(gap), None))
        return True

    def announce(self, reader: Reader, event: Event, size: int, *, is_past: bool) -> None:
        """Give a reader an event of a broker, which is in no log but those of histories, once."""
        if reader.announced.get(event.id) is None:
            reader.announced.put(event.id, True)
            self.given.append((reader, reader.give(None, event, size, is_replayed=is_past), None))
