"""Gives readers the live events of logs, as far as their feeds are LIVE and have not passed them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress

from vestnik.model.events import Event
from vestnik.recovery.feed import Feed
from vestnik.recovery.flight import Flight, of_packed
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.repeats import Twin
from vestnik.recovery.replaying import Replaying
from vestnik.wire.origins import Origin
from vestnik.wire.packing import pack


class Feeds:
    """The feeds of one broker. `replaying` knows which of them replay."""

    def __init__(self, replaying: Replaying) -> None:
        self.replaying = replaying
        self.roster = replaying.roster
        self.giving = replaying.giving
        self.readers = self.roster.readers

    def live(
        self,
        origin: Origin,
        events: Sequence[Event],
        packed: Sequence[bytes],
        wanting: Sequence[Collection[Reader]],
    ) -> None:
        """Give live events to the readers that want them, and whose feeds are LIVE and have not passed them.

        `wanting` has the readers of each event. Consecutive events that the same readers want have one object for them.
        """
        main, apart = self.roster.main.get(origin), self.roster.apart(origin)
        if main is None or not events:
            return  # the log is over: its broker has begun another
        twins = dict[int, Twin]()
        if main.is_live or apart:
            twins = self.giving.repeats.add(origin, list(compress(events, wanting)))
        start, readers = 0, wanting[0]
        for end in (*[place for place, one in enumerate(wanting) if one is not wanting[place - 1]], len(events)):
            if readers and end > start:
                run = events[start:end]
                flight = of_packed(packed[start:end], origin)
                self._give_run(main, run, flight, twins, readers)
            start, readers = end, wanting[end] if end < len(events) else ()
        if main.is_live:
            main.advance(max(main.cursor, (events[-1].seq or 0) + 1))

    def _give_run(
        self,
        main: Feed,
        events: Sequence[Event],
        flight: Flight,
        twins: Mapping[int, Twin],
        wanting: Collection[Reader],
    ) -> None:
        """Give live events, which are those of a flight, to readers that want all of them."""
        apart = self.roster.apart(main.origin)
        if main.is_live:
            sharing = [reader for reader in wanting if reader.key not in apart] if apart else wanting
            if sharing:
                self._give_live(main, events, flight, twins, sharing)
        for reader in wanting if apart else ():
            feed = apart.get(reader.key)
            if feed is not None and feed.is_live:
                self._give_live(feed, events, flight, twins, [reader])

    def _give_live(
        self,
        feed: Feed,
        events: Sequence[Event],
        flight: Flight,
        twins: Mapping[int, Twin],
        readers: Iterable[Reader],
    ) -> None:
        """Give live events to readers whose feed this is. One without room goes on with a feed of its own."""
        if _offset(events[0]) < feed.cursor:
            passed = bisect_left(events, feed.cursor, key=_offset)
            if passed == flight.count:
                return
            events, flight = events[passed:], flight.part(passed, flight.count)
        for reader, place in self.giving.live(events, flight, twins, readers):
            self.roster.lag(reader.key, feed.origin, _offset(events[place]))
            reader.move(self.giving.now)
        if feed.reader is not None and self.roster.has(feed):
            feed.advance(_offset(events[-1]) + 1)

    def frontier(self, origin: Origin, offset: int) -> None:
        for feed in self.roster.all(origin):
            feed.pass_frontier(offset)

    def announce(self, key: ReaderKey, event: Event, *, is_past: bool) -> None:
        """Give a reader an event of a broker, which is in no log, once."""
        if key in self.readers:
            self.giving.announce(self.readers[key], event, len(pack(event)), is_past=is_past)

    def cursors(self, key: ReaderKey) -> dict[Origin, int]:
        """Return how far a reader has come: a client that hands this over elsewhere misses and repeats nothing."""
        return {} if self.replaying.picks(key) else self.roster.cursors(key)


def _offset(event: Event) -> int:
    return event.seq or 0
