"""Moves the feeds of one broker: what happens to them when origins, events and readers come and go.

Each method is one thing that can happen. `giving` has what readers are given then, and `next_reads` says which pages
are wanted next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import others
from vestnik.model.work import together
from vestnik.recovery.allowance import Allowance
from vestnik.recovery.feed import Feed
from vestnik.recovery.flight import Flight
from vestnik.recovery.flight import together as in_flight
from vestnik.recovery.giving import Giving
from vestnik.recovery.limits import RecoveryLimits
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reading import Reading
from vestnik.recovery.reads import PageRequest, Requests, past_start
from vestnik.recovery.repeats import Repeats, Twin
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.replays import out_of_reach
from vestnik.recovery.roster import Roster
from vestnik.recovery.tail import Tail
from vestnik.wire.messages import Gap
from vestnik.wire.origins import ENDLESS, Offer, Origin
from vestnik.wire.packing import pack
from vestnik.wire.replays import Replay

SUPERSEDED: Final = "its broker has begun another log: what it had accepted and not sent, if anything, is gone"
COMPARING: Final = 5_000
"""Steps that comparing filters may cost at a time. Beyond it, more is fetched than has to be, and nothing is missed."""


class Start(NamedTuple):
    """The place at which a reader starts: a time in microseconds, the cursors of its client, or a replay.

    The time is that of this broker. Origins that are out of reach start when the reader was made, which is earlier:
    their clocks may differ, and nobody could ask them. A replay picks of what was accepted before `until`, if that is
    given. It `is_again` if a broker began it before and has forgotten it: what was accepted since is not in the past.
    """

    at: int = 0
    cursors: Mapping[Origin, int] | None = None
    replay: Replay | None = None
    until: int | None = None
    is_again: bool = False


class Feeds:
    """All feeds of one broker, whose log `own` ends with `tail`. `matching` finds the readers that want an event.

    `unmet` says in words of which brokers it is not known which logs they have.
    """

    def __init__(
        self,
        own: Origin,
        tail: Tail,
        matching: Callable[[Event], Iterable[ReaderKey]],
        unmet: Callable[[], list[str]] = list,
        limits: RecoveryLimits = RecoveryLimits(),  # noqa: B008  # a frozen value
    ) -> None:
        self._own = own
        repeats = Repeats(limits.repeat_window, limits.repeat_window_age)
        self.roster = Roster(own, repeats, Allowance(limits.in_flight))
        self.giving = Giving(own, tail, repeats, self.roster.cursor_of)
        self.requests = Requests(lambda: self.giving.now)
        self.replaying = Replaying(self.roster, self.giving, self.requests, unmet)
        self._reading = Reading(self.roster, self.giving, self.requests, self.replaying, matching)
        self.readers = self.roster.readers
        main = self.roster.main[own] = Feed(own, tail.routed)
        main.catch_up()
        main.go_live(tail.routed)

    # --- origins ---

    @property
    def reachable(self) -> list[Origin]:
        """The logs of brokers that can be reached, without those of histories."""
        return [origin for origin in self.roster.main if origin in self.roster.reachable]

    def lost(self, origin: Origin) -> None:
        """Handle the loss of the next hop to an origin."""
        self.roster.reachable.discard(origin)
        self.roster.histories.discard(origin)
        for when_lost in self.requests.drop(origin):
            when_lost()
        for feed in self.roster.all(origin):
            feed.break_off()
            if feed.since is not None and feed.reader is not None:
                feed.since = min(feed.since, self.readers[feed.reader].made)
            if feed.reader is not None and (self.readers[feed.reader].ends or origin not in self.roster.main):
                if origin.is_of_client:  # it may have what no log has
                    self.replaying.tell(self.readers[feed.reader], Gap("", 0, 0, out_of_reach(origin)), force=True)
                else:
                    self.replaying.miss(feed.reader, out_of_reach(origin))
                self.replaying.finish(feed, is_read=False)
        self.replaying.lost(origin)

    def found(self, origin: Origin, *, is_history: bool = False) -> None:
        """Handle a new next hop to an origin. An origin that was never seen is read from when each reader was made."""
        self.roster.reachable.add(origin)
        if is_history:
            self.roster.histories.add(origin)
            return
        if origin not in self.roster.main:
            sharing: list[Reader] = []
            for key, reader in self.readers.items():
                if origin not in self.roster.own(key) and not reader.ends:
                    if self.replaying.is_replaying(key):
                        self.roster.part(key, origin, 0, reader.made, replays=reader.replays)
                    else:
                        sharing.append(reader)
            self.roster.meet(origin, sharing)
        for feed in self.roster.all(origin):
            self.roster.catch_up(feed)

    def superseded(self, origin: Origin) -> None:
        """Give up a log whose broker has begun another: nobody knows what it had above the cursors."""
        for key, reader in self.readers.items():
            feed = self.roster.of(key, origin)
            if feed is not None and not reader.ends:
                self.replaying.tell(reader, Gap(str(origin), feed.cursor, ENDLESS, SUPERSEDED), force=True)
        self.roster.reachable.discard(origin)
        self.roster.forget(origin)

    @together(COMPARING)
    def offered(self, origin: Origin, before: frozenset[Offer], after: frozenset[Offer]) -> None:
        """Handle new advertisements: readers that overlapped none of the others were not known at the origin."""
        fresh, kept = after - before, after & before
        for key, reader in self.readers.items():
            if _overlaps(reader.filter, fresh) and not _overlaps(reader.filter, kept):
                feed = self.roster.of(key, origin)
                if feed is not None and origin in self.roster.reachable and not reader.ends:
                    if feed.reader is None:
                        feed = self.roster.part_from(feed, reader)
                        self.roster.catch_up(feed)
                    feed.doubt()
                    self.roster.due[feed] = None

    # --- events ---

    def live(
        self,
        origin: Origin,
        events: Sequence[Event],
        wanting: Sequence[Collection[Reader]],
        sizes: Sequence[int] | None = None,
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
                run = tuple(events[start:end])
                of_each = [len(pack(event)) for event in run] if sizes is None else sizes[start:end]
                self._give_run(main, in_flight(run, of_each, origin), twins, readers)
            start, readers = end, wanting[end] if end < len(events) else ()
        if main.is_live:
            main.advance(max(main.cursor, (events[-1].seq or 0) + 1))

    def _give_run(self, main: Feed, flight: Flight, twins: Mapping[int, Twin], wanting: Collection[Reader]) -> None:
        """Give live events to readers that want all of them."""
        apart = self.roster.apart(main.origin)
        if main.is_live:
            sharing = [reader for reader in wanting if reader.key not in apart] if apart else wanting
            if sharing:
                self._give_live(main, flight, twins, sharing)
        for reader in wanting if apart else ():
            feed = apart.get(reader.key)
            if feed is not None and feed.is_live:
                self._give_live(feed, flight, twins, [reader])

    def _give_live(self, feed: Feed, flight: Flight, twins: Mapping[int, Twin], readers: Iterable[Reader]) -> None:
        """Give live events to readers whose feed this is. One without room goes on with a feed of its own."""
        if flight.offset(0) < feed.cursor:
            passed = bisect_left(flight.events, feed.cursor, key=_offset)
            if passed == flight.count:
                return
            flight = flight.part(passed, flight.count)
        for reader, offset in self.giving.live(flight, twins, readers):
            self.roster.lag(reader.key, feed.origin, offset)
            reader.moved_at = self.giving.now
        if feed.reader is not None and self.roster.has(feed):
            feed.advance(flight.offset(-1) + 1)

    def frontier(self, origin: Origin, offset: int) -> None:
        for feed in self.roster.all(origin):
            feed.pass_frontier(offset)

    @property
    def has_due(self) -> bool:
        """Whether pages may be wanted."""
        return bool(self.roster.due) or self.replaying.has_due

    def next_reads(self) -> list[PageRequest]:
        """Return the pages that are wanted next, as long as something may be given in this turn."""
        if not self.has_due or self.giving.left <= 0:
            return []
        with together(COMPARING):
            return self._reading.next_reads(self.giving.left)

    def announce(self, key: ReaderKey, event: Event, *, is_past: bool) -> None:
        """Give a reader an event of a broker, which is in no log, once."""
        if key in self.readers:
            self.giving.announce(self.readers[key], event, len(pack(event)), is_past=is_past)

    # --- readers ---

    @together(COMPARING)
    def begin(self, reader: Reader, start: Start = Start()) -> None:  # noqa: B008  # a frozen value
        """Add a reader; it takes the place of one with the same key. If it picks, `replaying.pick` is to follow."""
        key, roster = reader.key, self.roster
        self.end(key)
        roster.enter(reader)
        reader.moved_at = self.giving.now
        if not reader.ends:
            reader.known_from = roster.main[self._own].cursor
        reader.began = self.giving.repeats.serial
        cursors, replay = start.cursors, start.replay
        reader.from_past = cursors is not None or replay is not None
        if reader.ends:
            self.replaying.begin_fetch(key)
            if not others(reader.filter).region and not roster.histories:  # only these have events of brokers
                self.replaying.end_fetch(key)
                return
        origins = roster.pasts() if reader.ends else [*dict.fromkeys([*roster.main, *(cursors or {})])]
        if replay is not None and not replay.picks and not reader.ends:
            origins += roster.histories
        for origin in origins:
            if cursors is not None and roster.is_over(origin):
                if origin in cursors:
                    gap = Gap(str(origin), cursors[origin], ENDLESS, SUPERSEDED)
                    self.replaying.tell(reader, gap, force=True)
            elif cursors is not None and origin.is_of_client and origin not in roster.reachable:
                self.replaying.tell(reader, Gap("", 0, 0, out_of_reach(origin)), force=True)
            elif cursors is not None:
                reader.is_young = True
                is_new = origin not in cursors
                since = reader.made if is_new else None
                roster.part(key, origin, cursors.get(origin, 0), since, replays=is_new and reader.replays)
            elif replay is not None and not replay.picks:
                roster.part(key, origin, 0, past_start(replay.since), replays=True)
            elif origin in roster.histories:
                roster.part(key, origin, 0)
            elif replay is not None or not roster.is_covered(reader, origin):
                since = start.at if origin in roster.reachable else reader.made
                roster.part(key, origin, 0 if start.is_again else roster.main[origin].cursor, since)
        if replay is not None and replay.picks:
            self.replaying.begin_picks(key, replay, start.until)
        elif replay is not None:
            self.replaying.begin_merge(key)
        for feed in list(roster.own(key).values()):
            roster.catch_up(feed)

    def end(self, key: ReaderKey) -> None:
        """Remove a reader, and what it was given and not sent yet."""
        reader = self.readers.get(key)
        if reader is not None:
            self.giving.forget(reader)
        self.roster.leave(key)
        self.replaying.forget(key)

    @together(COMPARING)
    def change(self, key: ReaderKey, wanted: Filter, since: int | None = None) -> None:
        """Change a filter at the cursors. Unless it is narrower, each origin is asked once more from there.

        With `since`, what was accepted before that time is given only if the filter before wanted it, too.
        """
        reader = self.readers[key]
        before, is_narrower = reader.filter, reader.filter.covers(wanted)
        self.roster.change(reader, wanted)
        reader.known_from = self.roster.main[self._own].cursor
        if self.replaying.picks(key):
            self.replaying.pick_again(key)
            return
        for origin in self.roster.origins(key):
            feed = self.roster.of(key, origin)
            assert feed is not None
            if feed.reader is None:
                if feed.is_live and (is_narrower or origin == self._own):
                    continue
                feed = self.roster.part_from(feed, reader)
            elif origin.is_of_client:
                feed = self.roster.part(key, origin, 0, replays=feed.replays)  # it is another question
            self.replaying.drop_page(key, origin)
            self.roster.catch_up(feed)
        if since is not None and not is_narrower and self.roster.own(key):
            reader.earlier.append((since, before))

    def took(self, reader: Reader, number: int) -> None:
        """Go on with a reader whose client has taken everything up to a number."""
        if number > reader.taken:
            reader.moved_at = self.giving.now
        reader.take(number)
        self.made_room(reader.key)

    def made_room(self, key: ReaderKey) -> None:
        """Go on with a reader that has taken something, or takes again."""
        for feed in self.roster.own(key).values():
            if feed.is_fetching and feed.request is None:
                self.roster.due[feed] = None
        self.replaying.give_merged(key)

    def cursors(self, key: ReaderKey) -> dict[Origin, int]:
        """Return how far a reader has come: a client that hands this over elsewhere misses and repeats nothing."""
        return {} if self.replaying.picks(key) else self.roster.cursors(key)

    def is_in_past(self, key: ReaderKey) -> bool:
        """Return whether a reader that started in the past has not come to the present yet."""
        return key in self.readers and self.readers[key].from_past


def _offset(event: Event) -> int:
    return event.seq or 0


def _overlaps(wanted: Filter, offers: Iterable[Offer]) -> bool:
    return any(wanted.overlaps(offer.filter) for offer in offers)
