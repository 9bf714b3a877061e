"""Moves the feeds of one broker: what happens to them when origins, events, pages and readers come and go.

Each method is one thing that can happen. What readers are given is in `given` then, and `due_reads` says which pages
are wanted next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import others
from vestnik.model.times import MICROS
from vestnik.model.work import together
from vestnik.recovery.feed import Feed
from vestnik.recovery.giving import Giving
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import (
    PAGE,
    PageRequest,
    Requests,
    WhenNotRead,
    WhenRead,
    neighbours,
    no_answer,
    widest,
)
from vestnik.recovery.repeats import REPEAT_WINDOW
from vestnik.recovery.replays import Merge, Picks, out_of_reach
from vestnik.recovery.roster import Roster
from vestnik.wire.messages import Gap
from vestnik.wire.origins import ENDLESS, Offer, Origin, Placed, ReadTerms, Slice
from vestnik.wire.packing import pack
from vestnik.wire.replays import Replay

FUTURE: Final = 60 * MICROS
"""Microseconds by which the time of an event may be later than when it was accepted, for replays since a time."""
SUPERSEDED: Final = "its broker has begun another log: what it had accepted and not sent, if anything, is gone"
BEYOND: Final = "the log ends before the place from which it is to be read: it has lost its end"
COMPARED: Final = 32
"""Readers with which a new one is compared, to find one that covers it."""
COMPARING: Final = 5_000
"""Steps that comparing filters may cost at a time. Beyond it, more is fetched than has to be, and nothing is missed."""


class Start(NamedTuple):
    """Where a reader starts: at a time in microseconds, at the cursors that its client had elsewhere, or with a replay.

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
    """All feeds of one broker, whose own log is `own`. `matching` finds the readers that want an event."""

    def __init__(self, own: Origin, routed: int, matching: Callable[[Event], Iterable[ReaderKey]]) -> None:
        self.readers: dict[ReaderKey, Reader] = {}
        self.giving = Giving(self._cursor_of)
        self.resolved: dict[ReaderKey, None] = {}  # readers of which a cursor is known now
        self.finished: list[tuple[Reader, list[str]]] = []  # readers that have read all, and what they miss
        self.roster = Roster()
        self.requests = Requests(lambda: self.giving.now)
        self._own = own
        self._matching = matching
        self._reachable = {own}
        self._histories: set[Origin] = set()  # logs of copies, which are read by replays only
        self._alike: dict[Filter, dict[ReaderKey, None]] = {}  # readers by their filter
        self._merges: dict[ReaderKey, Merge] = {}
        self._picks: dict[ReaderKey, Picks] = {}
        self._missing: dict[ReaderKey, list[str]] = {}  # of readers that end
        self._due: dict[Feed, None] = {}
        self._due_picks: dict[ReaderKey, None] = {}
        main = self.roster.main[own] = Feed(own, routed)
        main.catch_up()
        main.go_live(routed)

    # --- origins ---

    def is_reachable(self, origin: Origin) -> bool:
        return origin in self._reachable

    @property
    def reachable(self) -> list[Origin]:
        """The logs of brokers that can be reached, without those of histories."""
        return [origin for origin in self.roster.main if origin in self._reachable]

    @property
    def _pasts(self) -> list[Origin]:
        """The logs that can be reached and have past events."""
        return [*self.reachable, *sorted(self._histories)]

    def lost(self, origin: Origin) -> None:
        """Handle the loss of the way to an origin."""
        self._reachable.discard(origin)
        self._histories.discard(origin)
        for when_lost in self.requests.drop(origin):
            when_lost()
        for feed in self.roster.all(origin):
            feed.break_off()
            if feed.since is not None and feed.reader is not None:
                feed.since = min(feed.since, self.readers[feed.reader].made)
            if feed.reader is not None and (self.readers[feed.reader].ends or origin not in self.roster.main):
                self._missing.get(feed.reader, []).append(out_of_reach(origin))
                self._finish(feed)
        for key, picks in list(self._picks.items()):
            picks.drop(origin, out_of_reach(origin))
            self._finish_picks(key)
        for key, merge in list(self._merges.items()):
            merge.drop(origin)
            self._give_merged(key)

    def found(self, origin: Origin, *, is_history: bool = False) -> None:
        """Handle a way to an origin. One that was never seen is read from when each reader was made."""
        self._reachable.add(origin)
        if is_history:
            self._histories.add(origin)
            return
        if origin not in self.roster.main:
            self.roster.main[origin] = Feed(origin)
            for key, reader in self.readers.items():
                if origin not in self.roster.own(key) and not reader.ends:
                    self._part(key, origin, 0, reader.made, replays=reader.replays)
        for feed in self.roster.all(origin):
            self._catch_up(feed)

    def superseded(self, origin: Origin) -> None:
        """Give up a log whose broker has begun another: nobody knows what it had above the cursors."""
        for key, reader in self.readers.items():
            feed = self.roster.of(key, origin)
            if feed is not None and not reader.ends:
                self._tell(reader, Gap(str(origin), feed.cursor, ENDLESS, SUPERSEDED), force=True)
        self._reachable.discard(origin)
        for key in list(self.roster.apart(origin)):
            self._share(key, origin)
        self.roster.main.pop(origin, None)

    @together(COMPARING)
    def offered(self, origin: Origin, before: frozenset[Offer], after: frozenset[Offer]) -> None:
        """Handle new advertisements: readers that overlapped none of the others were not known at the origin."""
        fresh, kept = after - before, after & before
        for key, reader in self.readers.items():
            if _overlaps(reader.filter, fresh) and not _overlaps(reader.filter, kept):
                feed = self.roster.of(key, origin)
                if feed is not None and origin in self._reachable and not reader.ends:
                    if feed.reader is None:
                        feed = self._part(key, origin, feed.cursor)
                        self._catch_up(feed)
                    feed.doubt()
                    self._due[feed] = None

    # --- events ---

    def live(self, origin: Origin, event: Event, wanting: Iterable[Reader], size: int = 0) -> None:
        """Give a live event to the readers that want it, and whose feed is LIVE and has not passed it."""
        main, apart = self.roster.main.get(origin), self.roster.apart(origin)
        if main is None:
            return  # the log is over: its broker has begun another
        offset = event.seq or 0
        is_main = main.is_live and offset >= main.cursor
        if wanting:
            if apart:
                wanting = [one for one in wanting if self._is_due(apart.get(one.key, main), offset)]
            elif not is_main:
                return
            size = size or len(pack(event))
            for reader in self.giving.live(origin, event, size, wanting):
                self._lag(reader.key, origin, offset)
            if apart:
                for reader in wanting:
                    feed = apart.get(reader.key)
                    if feed is not None and feed.is_live:
                        feed.advance(offset + 1)
        if is_main:
            main.advance(offset + 1)

    def _is_due(self, feed: Feed, offset: int) -> bool:
        return feed.is_live and offset >= feed.cursor

    def frontier(self, origin: Origin, offset: int) -> None:
        for feed in self.roster.all(origin):
            feed.pass_frontier(offset)

    def _read_all(self, feeds: Sequence[Feed], request: int, page: Slice, edge: int) -> None:
        for feed in feeds:
            if feed.request == request and self.roster.has(feed):
                self._read(feed, page, edge, is_exact=len(feeds) == 1)

    def _read(self, feed: Feed, page: Slice, edge: int, *, is_exact: bool) -> None:
        """Take in a page. If it `is_exact`, it was read for this feed alone, and its reader wants all of it."""
        if feed.since is not None and feed.reader is not None:
            self.resolved[feed.reader] = None
        part = feed.part_of(page, edge)
        if part is None and page.upto >= edge:
            self._beyond(feed, edge)
        elif part is None:
            self._due[feed] = None
        elif (
            self._give_shared(feed, part)
            if feed.reader is None
            else self._give_apart(feed, feed.reader, part, is_exact=is_exact)
        ):
            feed.advance(part.upto)
            self._settle(feed, edge)

    def _beyond(self, feed: Feed, edge: int) -> None:
        """Go back to the edge of a log that ends before a cursor: nobody knows what it has lost."""
        for reader in self._sharing(feed.origin) if feed.reader is None else [self.readers[feed.reader]]:
            self._tell(reader, Gap(str(feed.origin), edge, feed.cursor, BEYOND), force=True)
        feed.start_at(edge)
        self._due[feed] = None

    def _give_shared(self, feed: Feed, page: Slice) -> bool:
        """Give a page to all readers that share a feed. One without room goes on with a feed of its own."""
        origin = feed.origin
        if page.gap is not None:
            for reader in self._sharing(origin):
                if not self._tell(reader, Gap(str(origin), *page.gap, page.reason)):
                    self._lag(reader.key, origin, page.gap.first)
            feed.advance(page.gap.end)
        for event in page.events:
            offset, apart = event.seq or 0, self.roster.apart(origin)
            wanting = [self.readers[key] for key in self._matching(event) if key in self.readers and key not in apart]
            for reader in self.giving.live(origin, event, len(pack(event)), wanting) if wanting else ():
                self._lag(reader.key, origin, offset)
            feed.advance(offset + 1)
        return True

    def _give_apart(self, feed: Feed, key: ReaderKey, page: Slice, *, is_exact: bool) -> bool:
        """Give a page to one reader; return whether it has all of it. If not, the cursor stays before the rest."""
        reader, origin = self.readers[key], feed.origin
        if page.gap is not None:
            is_elsewhere = feed.replays and feed.cursor <= 1 and self._histories  # a history may have it
            if not is_elsewhere and not self._tell(reader, Gap(str(origin), *page.gap, page.reason)):
                return False
            feed.advance(page.gap.end)
        if key in self._merges and page.events:
            self._merges[key].hold(origin, page)
            self._give_merged(key)
            return False
        size = page.average_size
        for placed in page.placed():
            if not self._give_read(feed, reader, placed, size, is_wanted=is_exact):
                feed.advance(placed.offset)
                return False
            feed.advance(placed.offset + 1)
        return True

    def _give_read(self, feed: Feed, reader: Reader, placed: Placed, size: int, *, is_wanted: bool = False) -> bool:
        """Give an event of a page to one reader, if it wants it; return False if it has no room."""
        event, is_past = placed.event, feed.is_past(placed.offset) or feed.origin not in self.roster.main
        if not (is_wanted or reader.filter.matches(event)) or (is_past and reader.is_before_past(placed)):
            return True
        if (reader.earlier and not reader.may_have(placed)) or (reader.ends and not is_past):
            return True
        return self.giving.give(reader, feed.origin, event, size, is_replayed=is_past)

    def _settle(self, feed: Feed, edge: int) -> None:
        """Let a feed that has reached the edge be LIVE, and readers share the feed again if both are."""
        origin, main = feed.origin, self.roster.main.get(feed.origin)
        if feed.reader is not None and (main is None or self.readers[feed.reader].ends):
            if feed.cursor >= (feed.past or 0):
                self._finish(feed)
            else:
                self._due[feed] = None
            return
        if not feed.go_live(edge):
            self._due[feed] = None
            return
        assert all(one.cursor <= feed.cursor for one in self.roster.all(origin) if one.is_live), "beyond the edge"
        if main is not None and main.is_live:
            main.advance(max(main.cursor, feed.cursor))
            for key, one in list(self.roster.apart(origin).items()):
                if one.is_live:
                    self._share(key, origin)
        if feed.reader is not None:
            self._give_merged(feed.reader)

    def _tell(self, reader: Reader, gap: Gap, *, force: bool = False) -> bool:
        """Tell a reader of a gap; return False if it has no room. One that ends is told at its end."""
        if reader.ends:
            self._missing[reader.key].append(f"{gap.log}: {gap.reason}" if gap.log else gap.reason)
            return True
        return self.giving.tell(reader, gap, force=force)

    def announce(self, key: ReaderKey, event: Event, *, is_past: bool) -> None:
        """Give a reader an event of a broker, which is in no log, once."""
        if key in self.readers:
            self.giving.announce(self.readers[key], event, len(pack(event)), is_past=is_past)

    def opened(self, key: ReaderKey, events: Iterable[Event], missing: Iterable[str]) -> None:
        """Give a reader that ends what is open at all brokers; `missing` says of which ones this is not known."""
        reader = self.readers.get(key)
        if reader is None or not reader.waits_for_open:
            return
        for event in events:
            self.announce(key, event, is_past=True)
        self._missing[key] += missing
        reader.waits_for_open = False
        self._end_fetch(key)

    def _lag(self, key: ReaderKey, origin: Origin, offset: int) -> None:
        """Let a reader without room go on by itself from an offset, when it has taken something."""
        self._catch_up(self._part(key, origin, offset))

    def _catch_up(self, feed: Feed) -> None:
        if feed.origin in self._reachable:
            feed.catch_up()
            self._due[feed] = None

    def _part(
        self, key: ReaderKey, origin: Origin, cursor: int, since: int | None = None, *, replays: bool = False
    ) -> Feed:
        """Give a reader a feed of its own."""
        reader = self.readers[key]
        if (since is not None or replays) and not reader.is_young:
            reader.note_had(self.giving.repeats.serial, self._lagging(key))
            reader.is_young = True
        return self.roster.add(key, origin, cursor, since, replays=replays)

    def _share(self, key: ReaderKey, origin: Origin) -> None:
        """Let a reader use the shared feed of an origin."""
        self.roster.share(key, origin)
        if not self.roster.own(key) and key in self.readers:
            self._grown_up(self.readers[key])

    # --- replays ---

    def _give_merged(self, key: ReaderKey) -> None:
        """Give the earliest event while each origin that is fetched has one here: so a replay is in order of time."""
        merge, reader = self._merges.get(key), self.readers.get(key)
        while merge is not None and reader is not None:
            own = self.roster.own(key)
            late = [origin for origin, feed in own.items() if feed.is_late and not merge.holds(origin)]
            fetching = [origin for origin, feed in own.items() if feed.is_fetching and origin not in late]
            if not own:
                self._merges.pop(key, None)
                return
            if not fetching or not all(merge.holds(origin) for origin in fetching):
                return
            origin, placed = merge.earliest(fetching)
            feed = own[origin]
            if not self._give_read(feed, reader, placed, merge.size_at(origin)):
                return
            upto = merge.pop(origin)
            feed.advance(placed.offset + 1)
            if upto is not None:
                feed.advance(upto)
                if reader.ends and origin in self.roster.main and feed.is_past_over:
                    self._finish(feed)
                else:
                    self._due[feed] = None

    def _begin_picks(self, reader: Reader, replay: Replay, until: int | None) -> None:
        picks = self._picks[reader.key] = Picks(replay, self._pasts, until)
        picks.reasons += [out_of_reach(one) for one in self.roster.main if one not in self._reachable]
        self._due_picks[reader.key] = None

    def _picked(self, key: ReaderKey, picks: Picks, origin: Origin, page: Slice, edge: int) -> None:
        if self._picks.get(key) is picks:
            picks.found(origin, page)
            self._finish_picks(key)

    def _picks_late(self, key: ReaderKey, picks: Picks, origin: Origin, request: int) -> bool:
        """Go on with a replay that picks without an origin that does not answer."""
        if self._picks.get(key) is picks:
            picks.drop(origin, no_answer(origin))
            self._finish_picks(key)
        return False

    def _finish_picks(self, key: ReaderKey) -> None:
        """When all origins have answered, give what is picked of them together, and go on from there."""
        picks, reader = self._picks.get(key), self.readers.get(key)
        if picks is None or reader is None or not picks.is_complete:
            return
        del self._picks[key]
        for reason in dict.fromkeys(picks.reasons):
            self._tell(reader, Gap("", 0, 0, reason), force=True)
        for origin, event in picks.picked(reader.filter):
            self.giving.give(reader, origin, event, len(pack(event)), is_replayed=True, force=True)
        self.resolved[key] = None
        ends = picks.ends()
        for origin, feed in list(self.roster.own(key).items()):
            if reader.ends:
                self._finish(feed)
            elif origin in ends:
                feed.start_at(ends[origin])
            self._due[feed] = None

    def _finish(self, feed: Feed) -> None:
        """End a feed of a history, or of a reader that ends; with the last one such a reader is done."""
        key, origin = feed.reader, feed.origin
        assert key is not None
        if key in self._merges:
            self._merges[key].drop(origin)
        self._share(key, origin)
        if not self._end_fetch(key):
            self._give_merged(key)

    def _end_fetch(self, key: ReaderKey) -> bool:
        """End a reader that ends if it waits for nothing more; return whether it does not."""
        reader = self.readers[key]
        if not reader.ends or reader.waits_for_open or self.roster.own(key):
            return False
        self.finished.append((reader, self._missing.get(key, [])))
        self._remove(key)
        return True

    # --- readers ---

    @together(COMPARING)
    def begin(self, reader: Reader, start: Start = Start()) -> None:  # noqa: B008  # a frozen value
        """Add a reader; it takes the place of one with the same key."""
        key = reader.key
        self.end(key)
        self.readers[key] = reader
        self._alike.setdefault(reader.filter, {})[key] = None
        reader.began = self.giving.repeats.serial
        cursors, replay = start.cursors, start.replay
        reader.from_past = cursors is not None or replay is not None
        if reader.ends:
            self._missing[key] = [out_of_reach(one) for one in self.roster.main if one not in self._reachable]
            if not others(reader.filter).region and not self._histories:  # only these have events of brokers
                self._end_fetch(key)
                return
        origins = self._pasts if reader.ends else [*dict.fromkeys([*self.roster.main, *(cursors or {})])]
        if replay is not None and not replay.picks and not reader.ends:
            origins += self._histories
        for origin in origins:
            if cursors is not None and self.is_over(origin):
                if origin in cursors:
                    self._tell(reader, Gap(str(origin), cursors[origin], ENDLESS, SUPERSEDED), force=True)
            elif cursors is not None:
                reader.is_young = True
                is_new = origin not in cursors
                since = reader.made if is_new else None
                self._part(key, origin, cursors.get(origin, 0), since, replays=is_new and reader.replays)
            elif replay is not None and not replay.picks:
                since = None if replay.since is None else max(0, replay.since - FUTURE)
                self._part(key, origin, 0, since, replays=True)
            elif origin in self._histories:
                self._part(key, origin, 0)
            elif replay is not None or not self._is_covered(reader, origin):
                since = start.at if origin in self._reachable else reader.made
                self._part(key, origin, 0 if start.is_again else self.roster.main[origin].cursor, since)
        if replay is not None and replay.picks:
            self._begin_picks(reader, replay, start.until)
        elif replay is not None:
            self._merges[key] = Merge()
        for feed in list(self.roster.own(key).values()):
            self._catch_up(feed)

    def is_over(self, origin: Origin) -> bool:
        """Return whether the broker of a log has begun another."""
        return any(one.log > origin.log for one in self.roster.logs_of(origin.broker))

    def end(self, key: ReaderKey) -> None:
        """Remove a reader, and what it was given and not sent yet."""
        reader = self.readers.get(key)
        if reader is not None:
            self.giving.forget(reader)
        self._remove(key)

    def _remove(self, key: ReaderKey) -> None:
        reader = self.readers.pop(key, None)
        if reader is not None:
            self._forget_filter(reader)
        self.roster.drop_reader(key)
        self._merges.pop(key, None)
        self._picks.pop(key, None)
        self._missing.pop(key, None)

    @together(COMPARING)
    def change(self, key: ReaderKey, wanted: Filter, since: int | None = None) -> None:
        """Change a filter at the cursors. Unless it is narrower, each origin is asked once more from there.

        With `since`, what was accepted before that time is given only if the filter before wanted it, too.
        """
        reader = self.readers[key]
        before, is_narrower = reader.filter, reader.filter.covers(wanted)
        self._forget_filter(reader)
        reader.note_had(self.giving.repeats.serial, self._lagging(key))
        reader.filter = wanted
        self._alike.setdefault(wanted, {})[key] = None
        if key in self._picks:
            self._begin_picks(reader, self._picks[key].replay, self._picks[key].until)
            return
        for origin in self.roster.origins(key):
            feed = self.roster.of(key, origin)
            assert feed is not None
            if feed.reader is None:
                if feed.is_live and (is_narrower or origin == self._own):
                    continue
                feed = self._part(key, origin, feed.cursor)
            if key in self._merges:
                self._merges[key].drop(origin)
            self._catch_up(feed)
        if since is not None and not is_narrower and self.roster.own(key):
            reader.earlier.append((since, before))

    def _forget_filter(self, reader: Reader) -> None:
        alike = self._alike[reader.filter]
        del alike[reader.key]
        if not alike:
            del self._alike[reader.filter]

    def made_room(self, key: ReaderKey) -> None:
        """Go on with a reader that has taken something, or takes again."""
        for feed in self.roster.own(key).values():
            if feed.is_fetching and feed.request is None:
                self._due[feed] = None
        self._give_merged(key)

    def cursors(self, key: ReaderKey) -> dict[Origin, int]:
        """Return how far a reader has come: a client that hands this over elsewhere misses and repeats nothing."""
        if key in self._picks:
            return {}
        feeds = [self.roster.of(key, origin) for origin in self.roster.origins(key)]
        return {feed.origin: feed.cursor for feed in feeds if feed is not None and feed.since is None}

    def _grown_up(self, reader: Reader) -> None:
        """Note that a reader has come to the present in all logs."""
        reader.from_past = False
        reader.earlier.clear()
        if reader.is_young:
            reader.is_young, reader.began = False, self.giving.repeats.serial
            reader.forgets = reader.began + REPEAT_WINDOW

    def _lagging(self, key: ReaderKey) -> dict[Origin, int]:
        """Return how far a reader has come in logs of which it does not get live events."""
        feeds = [self.roster.of(key, origin) for origin in self.roster.origins(key)]
        return {one.origin: self._cursor_of(key, one.origin) for one in feeds if one is not None and not one.is_live}

    def _cursor_of(self, key: ReaderKey, origin: Origin) -> int:
        feed = self.roster.of(key, origin)
        return 0 if feed is None or feed.since is not None else feed.cursor

    def is_in_past(self, key: ReaderKey) -> bool:
        """Return whether a reader that started in the past has not come to the present yet."""
        return key in self.readers and self.readers[key].from_past

    def _is_covered(self, reader: Reader, origin: Origin) -> bool:
        """Return whether the path for a new reader is in place: its own log, or one that a wider reader follows."""
        if not self.roster.main[origin].is_live:
            return False
        if origin == self._own:
            return True
        apart, alike = self.roster.apart(origin), self._alike.get(reader.filter, {})
        some = [*islice(alike, COMPARED), *islice(self.readers, COMPARED)]
        others = [self.readers[key] for key in some if key not in apart and key != reader.key]
        return any(one.filter.covers(reader.filter) for one in others if not one.ends)

    # --- reads ---

    @together(COMPARING)
    def due_reads(self) -> list[PageRequest]:
        """Return the pages that are wanted now, one for readers that wait at about the same place of a log."""
        due, self._due = [feed for feed in self._due if self._can_read(feed)], {}
        reads = [read for key in self._due_picks if key in self._picks for read in self._pick_reads(key)]
        self._due_picks = {}
        alike: dict[Origin, list[Feed]] = {}
        for feed in due:
            if feed.reader is None:
                reads.append(self._ask([feed], [reader.filter for reader in self._sharing(feed.origin)], PAGE))
            elif feed.since is not None or feed.reader in self._merges:
                reads.append(self._ask([feed], [self.readers[feed.reader].filter], PAGE))
            else:
                alike.setdefault(feed.origin, []).append(feed)
        for feeds in alike.values():
            for group in neighbours(feeds):
                readers = [self.readers[feed.reader] for feed in group if feed.reader is not None]
                most = max([reader.room for reader in readers])
                reads.append(self._ask(group, [reader.filter for reader in readers], min(PAGE, most)))
        return reads

    def _can_read(self, feed: Feed) -> bool:
        """Return whether a page is wanted: the feed waits for none, and its reader has room."""
        if not self.roster.has(feed) or not feed.is_fetching or feed.request is not None:
            return False
        key = feed.reader
        if key is None:
            return True
        merge = self._merges.get(key)
        return key not in self._picks and self.readers[key].room > 0 and not (merge and merge.holds(feed.origin))

    def _ask(self, feeds: list[Feed], filters: Iterable[Filter], limit: int) -> PageRequest:
        first = feeds[0]
        told = WhenNotRead(late=partial(self._late, feeds))
        request = self.requests.new(first.origin, lambda number: partial(self._read_all, feeds, number), told)
        for feed in feeds:
            feed.ask(request)
        terms = ReadTerms(first.cursor, widest(filters), limit, first.since)
        return PageRequest(first.origin, request, terms, first.number)

    def _late(self, feeds: list[Feed], request: int) -> bool:
        """Let readers that end or merge go on without an origin; return whether its page is still wanted."""
        waiting = [feed for feed in feeds if feed.request == request and self.roster.has(feed)]
        for feed in waiting:
            feed.is_late = True
            key = feed.reader
            if key is not None and self.readers[key].ends:
                self._missing[key].append(no_answer(feed.origin))
                self._finish(feed)
            elif key is not None:
                self._give_merged(key)
        return any(self.roster.has(feed) for feed in waiting)

    def _pick_reads(self, key: ReaderKey) -> list[PageRequest]:
        """Return the reads of what is picked at all origins that can be reached, before the start."""
        picks, reader, reads = self._picks[key], self.readers[key], []
        for origin in picks.origins():
            feed, start, until = self.roster.own(key).get(origin), ENDLESS, None
            if picks.until is not None and feed is not None and origin not in self._histories:
                start, until = feed.cursor, picks.until
            when_read = partial(self._picked, key, picks, origin)
            told = WhenNotRead(late=partial(self._picks_late, key, picks, origin))
            request = self.requests.new(origin, partial(_always, when_read), told)
            terms = ReadTerms(start, (reader.filter,), PAGE, until, picks.replay)
            reads.append(PageRequest(origin, request, terms))
        return reads

    def _sharing(self, origin: Origin) -> Iterable[Reader]:
        apart = self.roster.apart(origin)
        return [reader for key, reader in self.readers.items() if key not in apart and not reader.ends]


def _always(when_read: WhenRead, number: int) -> WhenRead:
    return when_read


def _overlaps(wanted: Filter, offers: Iterable[Offer]) -> bool:
    return any(wanted.overlaps(offer.filter) for offer in offers)
