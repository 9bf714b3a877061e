"""The readers of a broker, the feeds by which they read, and the logs that can be reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Final, TypeVar

from vestnik.model.filters import Filter
from vestnik.recovery.allowance import Allowance
from vestnik.recovery.feed import Feed
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.repeats import Repeats
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Origin

Outer = TypeVar("Outer")
Inner = TypeVar("Inner")

SUPERSEDED: Final = "its broker has begun another log: what it had accepted and not sent, if anything, is gone"
"""Why readers miss the end of a log that is over."""
COMPARING: Final = 5_000
"""Steps that comparing filters may cost at a time. Beyond it, more is fetched than has to be, and nothing is missed."""
COMPARED: Final = 32
"""Readers with which a new one is compared, to find one that covers it."""


class Roster:
    """The readers and feeds of a broker whose `own` log ends at an `edge`.

    Readers share the `main` feed of an origin unless they have one of their own. `histories` are logs of
    copies, which replays read, each with a feed of its own. `repeats` numbers the events that came, by which readers
    know what they had.
    """

    def __init__(self, own: Origin, edge: int, repeats: Repeats, allowance: Allowance) -> None:
        self.readers: dict[ReaderKey, Reader] = {}
        self.changes = 0  # how often a reader has come or gone
        self.main: dict[Origin, Feed] = {own: Feed(own, edge)}
        self.reachable = {own}
        self.histories: set[Origin] = set()
        self.due: dict[Feed, None] = {}  # feeds that may want a page, in the order of their turns
        self._own_log = own
        self._new: set[Origin] = set()  # those whose shared feed was never at the edge
        self._repeats = repeats
        self._allowance = allowance
        self._numbers = count(1)
        self._by_origin: dict[Origin, dict[ReaderKey, Feed]] = {}
        self._by_reader: dict[ReaderKey, dict[Origin, Feed]] = {}
        self._alike: dict[Filter, dict[ReaderKey, None]] = {}  # readers by their filter
        self.main[own].catch_up()
        self.main[own].go_live(edge)

    # --- readers ---

    def enter(self, reader: Reader) -> None:
        """Add a reader, which shares all feeds."""
        self.changes += 1
        self.readers[reader.key] = reader
        reader.join(self._allowance)
        self._alike.setdefault(reader.filter, {})[reader.key] = None

    def leave(self, key: ReaderKey) -> None:
        """Remove a reader and its feeds."""
        reader = self.readers.pop(key, None)
        if reader is not None:
            self.changes += 1
            reader.leave()
            _remove(self._alike, reader.filter, key)
        for origin in list(self.own(key)):
            self._drop(key, origin)

    def change(self, reader: Reader, wanted: Filter) -> None:
        """Change the filter of a reader."""
        _remove(self._alike, reader.filter, reader.key)
        reader.note_had(self._repeats.serial, self._lagging(reader.key))
        reader.want(wanted, self.main[self._own_log].cursor)
        self._alike.setdefault(wanted, {})[reader.key] = None

    def sharing(self, origin: Origin) -> list[Reader]:
        """Return the readers that share the feed of an origin."""
        apart = self.apart(origin)
        return [reader for key, reader in self.readers.items() if key not in apart and not reader.ends]

    def is_covered(self, reader: Reader, origin: Origin) -> bool:
        """Return whether the path for a new reader is in place: its own log, or one that a wider reader follows."""
        if not self.main[origin].is_live:
            return False
        if origin == self._own_log:
            return True
        apart, alike = self.apart(origin), self._alike.get(reader.filter, {})
        some = [*islice(alike, COMPARED), *islice(self.readers, COMPARED)]
        others = [self.readers[key] for key in some if key not in apart and key != reader.key]
        return any(one.filter.covers(reader.filter) for one in others if not one.ends)

    # --- feeds ---

    def of(self, reader: ReaderKey, origin: Origin) -> Feed | None:
        """Return the feed by which a reader reads an origin."""
        return self._by_origin.get(origin, {}).get(reader) or self.main.get(origin)

    def own(self, reader: ReaderKey) -> Mapping[Origin, Feed]:
        """Return the feeds that a reader has to itself."""
        return self._by_reader.get(reader, {})

    def apart_readers(self) -> list[ReaderKey]:
        """Return the readers that have a feed to themselves."""
        return list(self._by_reader)

    def apart(self, origin: Origin) -> Mapping[ReaderKey, Feed]:
        """Return the feeds of single readers at an origin."""
        return self._by_origin.get(origin, {})

    def all(self, origin: Origin) -> Iterator[Feed]:
        """Yield the feeds at an origin, the shared one first."""
        if origin in self.main:
            yield self.main[origin]
        yield from list(self.apart(origin).values())

    def origins(self, reader: ReaderKey) -> list[Origin]:
        """Return the origins that a reader reads."""
        return list(dict.fromkeys([*self.main, *self.own(reader)]))

    def logs_of(self, broker: NodeId) -> list[Origin]:
        """Return the logs of a broker that any reader reads."""
        return [origin for origin in dict.fromkeys([*self.main, *self._by_origin]) if origin.broker == broker]

    def pasts(self) -> list[Origin]:
        """Return the logs that can be reached and have past events."""
        return [*[origin for origin in self.main if origin in self.reachable], *sorted(self.histories)]

    def is_over(self, origin: Origin) -> bool:
        """Return whether the broker of a log has begun another: it or a neighbour said so, not just a client."""
        announced = (*self.main, *self.histories)
        return any(one.broker == origin.broker and one.log > origin.log for one in announced)

    def has(self, feed: Feed) -> bool:
        """Return whether a feed is still in use."""
        found = self.main.get(feed.origin) if feed.reader is None else self.apart(feed.origin).get(feed.reader)
        return found is feed

    def part(
        self, key: ReaderKey, origin: Origin, cursor: int, since: int | None = None, *, replays: bool = False
    ) -> Feed:
        """Give a reader a feed of its own."""
        if since is not None or replays:
            self.look_back(self.readers[key])
        feed = Feed(origin, cursor, since, key, replays=replays, number=next(self._numbers))
        self._by_origin.setdefault(origin, {})[key] = feed
        self._by_reader.setdefault(key, {})[origin] = feed
        return feed

    def meet(self, origin: Origin, readers: Sequence[Reader]) -> None:
        """Add an origin that was never seen, whose shared feed these readers use from when they were made."""
        self.main[origin] = Feed(origin, 0, min([reader.made for reader in readers], default=None))
        self._new.add(origin)
        for reader in readers:
            self.look_back(reader)

    def look_back(self, reader: Reader) -> None:
        """Note that a reader does not have all that is below its cursors: it is not in the present."""
        if not reader.is_young:
            reader.look_back(self._repeats.serial, self._lagging(reader.key))

    def forget(self, origin: Origin) -> None:
        """Remove a log, which is over."""
        for key in list(self.apart(origin)):
            self.share(key, origin)
        self.main.pop(origin, None)
        self.reachable.discard(origin)
        self.met(origin)

    def met(self, origin: Origin) -> bool:
        """Note that the shared feed of an origin is at the edge: those who share it have come to the present.

        Return whether that was news.
        """
        is_news = origin in self._new
        self._new.discard(origin)
        if is_news:
            for key in self.readers:
                self._arrive(key)
        return is_news

    def share(self, key: ReaderKey, origin: Origin) -> None:
        """Let a reader use the shared feed of an origin. With its last own feed it comes to the present."""
        self._drop(key, origin)
        self._arrive(key)

    def _arrive(self, key: ReaderKey) -> None:
        """Let a reader come to the present, if it has no feed of its own and shares none that is not there."""
        if not self._new and not self.own(key) and key in self.readers:
            self.readers[key].come_to_present(self._repeats)

    def _drop(self, key: ReaderKey, origin: Origin) -> None:
        _remove(self._by_origin, origin, key)
        _remove(self._by_reader, key, origin)

    def reach(self, origin: Origin, *, is_history: bool) -> None:
        """Note that an origin can be reached."""
        self.reachable.add(origin)
        if is_history:
            self.histories.add(origin)

    def lose(self, origin: Origin) -> None:
        """Note that an origin cannot be reached any more."""
        self.reachable.discard(origin)
        self.histories.discard(origin)

    # --- turns ---

    def enqueue(self, feed: Feed) -> None:
        """Give a feed a turn: it may want a page."""
        self.due[feed] = None

    def take_due(self, most: int) -> list[Feed]:
        """Return the feeds whose turn it is, in order."""
        turns = list(islice(self.due, most))
        for feed in turns:
            del self.due[feed]
        return turns

    def catch_up(self, feed: Feed) -> None:
        """Let a feed read pages, if its origin can be reached."""
        if feed.origin in self.reachable:
            feed.catch_up()
            self.enqueue(feed)

    def part_from(self, feed: Feed, reader: Reader) -> Feed:
        """Give a reader a feed of its own that starts where the shared one is."""
        return self.part(reader.key, feed.origin, feed.cursor, reader.made if feed.is_in_past else None)

    def lag(self, key: ReaderKey, origin: Origin, offset: int) -> None:
        """Let a reader without room go on by itself from an offset, when it has taken something."""
        self.catch_up(self.part(key, origin, offset))

    # --- cursors ---

    def cursor_of(self, key: ReaderKey, origin: Origin) -> int:
        feed = self.of(key, origin)
        return 0 if feed is None or feed.since is not None else feed.cursor

    def cursors(self, key: ReaderKey) -> dict[Origin, int]:
        """Return how far a reader has come in the logs in which that is known."""
        feeds = [self.of(key, origin) for origin in self.origins(key)]
        known = [feed for feed in feeds if feed is not None and feed.since is None and not feed.is_in_past]
        return {feed.origin: feed.cursor for feed in known}

    def _lagging(self, key: ReaderKey) -> dict[Origin, int]:
        """Return how far a reader has come in logs of which it does not get live events."""
        feeds = [self.of(key, origin) for origin in self.origins(key)]
        return {one.origin: self.cursor_of(key, one.origin) for one in feeds if one is not None and not one.is_live}


def _remove(held: dict[Outer, dict[Inner, Feed]] | dict[Outer, dict[Inner, None]], outer: Outer, inner: Inner) -> None:
    """Remove an entry, and the dictionary that holds it if it was the last."""
    inside = held.get(outer)
    if inside is not None:
        inside.pop(inner, None)
        if not inside:
            del held[outer]
