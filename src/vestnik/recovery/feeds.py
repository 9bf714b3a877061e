"""Gives readers the live events of logs, as far as their feeds are LIVE and have not passed them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.recovery.feed import Feed
from vestnik.recovery.flight import Flight, of_packed
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.repeats import Twin
from vestnik.recovery.replaying import Replaying
from vestnik.wire.messages import NodeId
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
        live = _Live(origin, events, packed, twins)
        # For each client, one reader that alone wants some events, and their places, until another is given something.
        alone: dict[NodeId, tuple[Reader, list[range]]] = {}
        for run, readers in _runs(wanting):
            only = next(iter(readers)) if len(readers) == 1 else None
            for client in [reader.key[0] for reader in readers] if alone else ():
                if client in alone and alone[client][0] is not only:
                    reader, runs = alone.pop(client)
                    self._give_run(main, live, runs, (reader,))
            if only is None:
                self._give_run(main, live, [run], readers)
            else:
                alone.setdefault(only.key[0], (only, []))[1].append(run)
        for reader, runs in alone.values():
            self._give_run(main, live, runs, (reader,))
        if main.is_live:
            main.advance(max(main.cursor, _offset(events[-1]) + 1))

    def _give_run(self, main: Feed, live: _Live, runs: list[range], wanting: Collection[Reader]) -> None:
        """Give live events to readers that want all of them."""
        apart = self.roster.apart(main.origin)
        sharing = [reader for reader in wanting if reader.key not in apart] if apart else wanting
        parted = [(reader, feed) for reader in wanting if (feed := apart.get(reader.key)) is not None] if apart else ()
        if not parted and not main.is_live:
            return
        events, flight = live.part(runs)
        if sharing and main.is_live:
            self._give_live(main, events, flight, live.twins, sharing)
        for reader, feed in parted:
            if feed.is_live:
                self._give_live(feed, events, flight, live.twins, [reader])

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


class _Live(NamedTuple):
    """The live events of a log that came together, each also packed, and the twins of some by their offsets."""

    origin: Origin
    events: Sequence[Event]
    packed: Sequence[bytes]
    twins: Mapping[int, Twin]

    def part(self, runs: Sequence[range]) -> tuple[Sequence[Event], Flight]:
        """Return the events at some places, and a flight of them."""
        if len(runs) == 1:
            (run,) = runs
            return self.events[run.start : run.stop], of_packed(self.packed[run.start : run.stop], self.origin)
        places = list(chain.from_iterable(runs))
        return [self.events[one] for one in places], of_packed([self.packed[one] for one in places], self.origin)


def _runs(wanting: Sequence[Collection[Reader]]) -> Iterator[tuple[range, Collection[Reader]]]:
    """Yield the places of consecutive events that the same readers want, if there are any."""
    start, readers = 0, wanting[0]
    for end in (*[place for place, one in enumerate(wanting) if one is not wanting[place - 1]], len(wanting)):
        if readers and end > start:
            yield range(start, end), readers
        start, readers = end, wanting[end] if end < len(wanting) else ()


def _offset(event: Event) -> int:
    return event.seq or 0
