"""Moves the feeds of one broker: what happens to them when origins, events, pages and readers come and go.

Each method is one thing that can happen. What readers are given is in `given` then, and `due_reads` says which pages
are wanted next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.recovery.feed import Feed
from vestnik.recovery.reader import Given, Reader, ReaderKey
from vestnik.recovery.reads import PAGE, PageRequest, neighbours, widest
from vestnik.recovery.replays import Merge, Tails
from vestnik.recovery.roster import Roster
from vestnik.wire.origins import ENDLESS, Offer, Origin, ReadTerms, Slice, Span


class Start(NamedTuple):
    """Where a reader starts: now, in the past, or at the cursors that its client had elsewhere.

    `replays` starts at the first event that was accepted `since` a time, or of all; `last` replays the last events.
    """

    cursors: Mapping[Origin, int] | None = None
    replays: bool = False
    since: int | None = None
    last: int = 0


WhenRead: TypeAlias = Callable[[Slice, int], None]
"""Takes in a page, with the edge of its origin."""


class Feeds:
    """All feeds of one broker, whose own log is `own`. `matching` finds the readers that want an event."""

    def __init__(self, own: Origin, routed: int, matching: Callable[[Event], Iterable[ReaderKey]]) -> None:
        self.readers: dict[ReaderKey, Reader] = {}
        self.given: list[Given] = []
        self.roster = Roster()
        self._own = own
        self._matching = matching
        self._reachable = {own}
        self._merges: dict[ReaderKey, Merge] = {}
        self._tails: dict[ReaderKey, Tails] = {}
        self._due: dict[Feed, None] = {}
        self._due_tails: dict[ReaderKey, None] = {}
        self._requests = count(1)
        self._asked: dict[int, tuple[Origin, WhenRead]] = {}
        main = self.roster.main[own] = Feed(own, routed)
        main.catch_up()
        main.go_live(routed)

    # --- origins ---

    def lost(self, origin: Origin) -> None:
        """Handle the loss of the way to an origin."""
        self._reachable.discard(origin)
        self._asked = {request: asked for request, asked in self._asked.items() if asked[0] != origin}
        for feed in self.roster.all(origin):
            feed.break_off()
        for key, tails in list(self._tails.items()):
            tails.drop(origin)
            self._finish_tails(key)
        for key, merge in list(self._merges.items()):
            merge.drop(origin)
            self._give_merged(key)

    def found(self, origin: Origin) -> None:
        """Handle a way to an origin. One that was never seen is read from when each reader was made."""
        self._reachable.add(origin)
        if origin not in self.roster.main:
            self.roster.main[origin] = Feed(origin)
            for key, reader in self.readers.items():
                if origin not in self.roster.own(key):
                    self.roster.add(key, origin, 0, reader.made)
        for feed in self.roster.all(origin):
            self._catch_up(feed)

    def superseded(self, origin: Origin) -> None:
        """Give up a log whose broker has begun another: nobody knows what it had above the cursors."""
        for key, reader in self.readers.items():
            feed = self.roster.of(key, origin)
            if feed is not None:
                self._tell(reader, origin, Span(feed.cursor, ENDLESS), force=True)
        self._reachable.discard(origin)
        self.roster.drop_origin(origin)

    def offered(self, origin: Origin, before: frozenset[Offer], after: frozenset[Offer]) -> None:
        """Handle new advertisements: readers that overlapped none of the others were not known at the origin."""
        fresh, kept = after - before, after & before
        for key, reader in self.readers.items():
            if _overlaps(reader.filter, fresh) and not _overlaps(reader.filter, kept):
                feed = self.roster.of(key, origin)
                if feed is not None and origin in self._reachable:
                    if feed.reader is None:
                        feed = self.roster.add(key, origin, feed.cursor)
                        self._catch_up(feed)
                    feed.doubt()
                    self._due[feed] = None

    # --- events ---

    def live(self, origin: Origin, event: Event, wanting: Iterable[ReaderKey]) -> None:
        """Give a live event to the readers that want it, and whose feed is LIVE and has not passed it."""
        main, apart = self.roster.main[origin], self.roster.apart(origin)
        offset = event.seq or 0
        for key in wanting:
            feed = apart.get(key, main)
            if feed.is_live and offset >= feed.cursor:
                if not self._give(self.readers[key], origin, event):
                    self._lag(key, origin, offset)
                elif feed is not main:
                    feed.advance(offset + 1)
        if main.is_live and offset >= main.cursor:
            main.advance(offset + 1)

    def frontier(self, origin: Origin, offset: int) -> None:
        for feed in self.roster.all(origin):
            feed.pass_frontier(offset)

    def page(self, request: int, page: Slice, edge: int) -> None:
        """Take in the page of a request. One that came too late is ignored."""
        if request in self._asked:
            _, when_read = self._asked.pop(request)
            when_read(page, edge)

    def _read_all(self, feeds: Iterable[Feed], request: int, page: Slice, edge: int) -> None:
        for feed in feeds:
            if feed.request == request and self.roster.has(feed):
                self._read(feed, page, edge)

    def _read(self, feed: Feed, page: Slice, edge: int) -> None:
        part = feed.part_of(page)
        if part is None:
            self._due[feed] = None
        elif self._give_shared(feed, part) if feed.reader is None else self._give_apart(feed, feed.reader, part):
            feed.advance(part.upto)
            self._settle(feed, edge)

    def _give_shared(self, feed: Feed, page: Slice) -> bool:
        """Give a page to all readers that share a feed. One without room goes on with a feed of its own."""
        origin = feed.origin
        if page.gap is not None:
            for reader in self._sharing(origin):
                if not self._tell(reader, origin, page.gap):
                    self._lag(reader.key, origin, page.gap.first)
            feed.advance(page.gap.end)
        for event in page.events:
            offset = event.seq or 0
            for key in self._matching(event):
                if key not in self.roster.apart(origin) and not self._give(self.readers[key], origin, event):
                    self._lag(key, origin, offset)
            feed.advance(offset + 1)
        return True

    def _give_apart(self, feed: Feed, key: ReaderKey, page: Slice) -> bool:
        """Give a page to one reader; return whether it has all of it. If not, the cursor stays before the rest."""
        reader, origin = self.readers[key], feed.origin
        if page.gap is not None:
            if not self._tell(reader, origin, page.gap):
                return False
            feed.advance(page.gap.end)
        if key in self._merges and page.events:
            self._merges[key].hold(origin, page)
            self._give_merged(key)
            return False
        for event in page.events:
            offset = event.seq or 0
            if reader.filter.matches(event) and not self._give(reader, origin, event):
                feed.advance(offset)
                return False
            feed.advance(offset + 1)
        return True

    def _settle(self, feed: Feed, edge: int) -> None:
        """Let a feed that has reached the edge be LIVE, and readers share the feed again if both are."""
        origin, main = feed.origin, self.roster.main[feed.origin]
        if not feed.go_live(edge):
            self._due[feed] = None
            return
        assert all(one.cursor <= feed.cursor for one in self.roster.all(origin) if one.is_live), "beyond the edge"
        if main.is_live:
            main.advance(max(main.cursor, feed.cursor))
            for key, one in list(self.roster.apart(origin).items()):
                if one.is_live:
                    self.roster.share(key, origin)
        if feed.reader is not None:
            self._give_merged(feed.reader)

    def _give(self, reader: Reader, origin: Origin, event: Event, *, force: bool = False) -> bool:
        """Give an event to a reader, once; return False if it has no room."""
        if reader.repeats(origin, event):
            return True
        if reader.room <= 0 and not force:
            return False
        self.given.append(reader.give(origin, event))
        return True

    def _tell(self, reader: Reader, origin: Origin, gap: Span, *, force: bool = False) -> bool:
        """Tell a reader of a gap; return False if it has no room."""
        if force and not reader.is_here:
            reader.unsaid.append((origin, gap))
            return True
        if reader.room <= 0 and not force:
            return False
        self.given.append(reader.tell(origin, gap))
        return True

    def _lag(self, key: ReaderKey, origin: Origin, offset: int) -> None:
        """Let a reader without room go on by itself from an offset, when it has taken something."""
        self._catch_up(self.roster.add(key, origin, offset))

    def _catch_up(self, feed: Feed) -> None:
        if feed.origin in self._reachable:
            feed.catch_up()
            self._due[feed] = None

    # --- replays ---

    def _give_merged(self, key: ReaderKey) -> None:
        """Give the earliest event while each origin that is fetched has one here: so a replay is in order of time."""
        merge, reader = self._merges.get(key), self.readers.get(key)
        while merge is not None and reader is not None:
            own = self.roster.own(key)
            fetching = [origin for origin, feed in own.items() if feed.is_fetching]
            if not own:
                del self._merges[key]
                return
            if not fetching or not all(merge.holds(origin) for origin in fetching):
                return
            origin, event = merge.earliest(fetching)
            if reader.filter.matches(event) and not self._give(reader, origin, event):
                return
            feed, upto = own[origin], merge.pop(origin)
            feed.advance((event.seq or 0) + 1)
            if upto is not None:
                feed.advance(upto)
                self._due[feed] = None

    def _begin_tails(self, reader: Reader, last: int, own_end: int) -> None:
        self._tails[reader.key] = Tails(last, own_end, [one for one in self.roster.main if one in self._reachable])
        self._due_tails[reader.key] = None

    def _tail_found(self, key: ReaderKey, tails: Tails, origin: Origin, page: Slice, edge: int) -> None:
        if self._tails.get(key) is tails:
            tails.found(origin, page)
            self._finish_tails(key)

    def _finish_tails(self, key: ReaderKey) -> None:
        """When all origins have answered, give the last events of them together, and go on from there."""
        tails, reader = self._tails.get(key), self.readers.get(key)
        if tails is None or reader is None or not tails.is_complete:
            return
        del self._tails[key]
        for origin, event in tails.latest():
            self._give(reader, origin, event, force=True)
        for origin, upto in tails.ends().items():
            feed = self.roster.own(key).get(origin)
            if feed is not None:
                feed.start_at(upto)
        for feed in self.roster.own(key).values():
            self._due[feed] = None

    # --- readers ---

    def begin(self, reader: Reader, start: Start = Start()) -> None:  # noqa: B008  # a frozen value
        """Add a reader; it takes the place of one with the same key."""
        key, unsaid = reader.key, self.end(reader.key)
        self.readers[key] = reader
        cursors = start.cursors
        for origin in dict.fromkeys([*self.roster.main, *(cursors or {})]):
            if cursors is not None and self.is_over(origin):
                self._tell(reader, origin, Span(cursors[origin], ENDLESS), force=True)
            elif cursors is not None and origin in cursors:
                self.roster.add(key, origin, cursors[origin])
            elif cursors is not None:
                self.roster.add(key, origin, 0, reader.made)
            elif start.replays:
                self.roster.add(key, origin, 0, start.since)
            elif start.last or not self._is_covered(reader, origin):
                self.roster.add(key, origin, self.roster.main[origin].cursor, reader.made)
        if start.replays:
            self._merges[key] = Merge()
        if start.last:
            self._begin_tails(reader, start.last, self.roster.main[self._own].cursor)
        for feed in self.roster.own(key).values():
            self._catch_up(feed)
        for origin, gap in unsaid:
            if origin not in (cursors or {}):
                self._tell(reader, origin, gap, force=True)

    def is_over(self, origin: Origin) -> bool:
        """Return whether the broker of a log has begun another."""
        return any(one.log > origin.log for one in self.roster.logs_of(origin.broker))

    def end(self, key: ReaderKey) -> list[tuple[Origin, Span]]:
        """Remove a reader; return the gaps that it could not be told."""
        reader = self.readers.pop(key, None)
        self.roster.drop_reader(key)
        self._merges.pop(key, None)
        self._tails.pop(key, None)
        return [] if reader is None else reader.unsaid

    def change(self, key: ReaderKey, wanted: Filter) -> None:
        """Change a filter at the cursors. Unless it is narrower, each origin is asked once more from there."""
        reader = self.readers[key]
        is_narrower = reader.filter.covers(wanted)
        reader.filter = wanted
        if key in self._tails:
            self._begin_tails(reader, self._tails[key].last, self._tails[key].own_end)
            return
        for origin in self.roster.origins(key):
            feed = self.roster.of(key, origin)
            assert feed is not None
            if feed.reader is None:
                if feed.is_live and (is_narrower or origin == self._own):
                    continue
                feed = self.roster.add(key, origin, feed.cursor)
            if key in self._merges:
                self._merges[key].drop(origin)
            self._catch_up(feed)

    def took(self, key: ReaderKey, number: int) -> None:
        """Note that a client has taken everything up to a number, so that there is room for more."""
        self.readers[key].take(number)
        for feed in self.roster.own(key).values():
            if feed.is_fetching and feed.request is None:
                self._due[feed] = None
        self._give_merged(key)

    def cursors(self, key: ReaderKey) -> dict[Origin, int]:
        """Return how far a reader has come: a client that hands this over elsewhere misses and repeats nothing."""
        feeds = [self.roster.of(key, origin) for origin in self.roster.origins(key)]
        before_gaps = {origin: gap.first for origin, gap in self.readers[key].unsaid}
        return before_gaps | {feed.origin: feed.cursor for feed in feeds if feed is not None and feed.since is None}

    def _is_covered(self, reader: Reader, origin: Origin) -> bool:
        """Return whether the path for a new reader is in place: its own log, or one that a wider reader follows."""
        if not self.roster.main[origin].is_live:
            return False
        others = (one for one in self._sharing(origin) if one is not reader)
        return origin == self._own or any(one.filter.covers(reader.filter) for one in others)

    # --- reads ---

    def due_reads(self) -> list[PageRequest]:
        """Return the pages that are wanted now, one for readers that wait at about the same place of a log."""
        due, self._due = [feed for feed in self._due if self._can_read(feed)], {}
        reads = [read for key in self._due_tails if key in self._tails for read in self._tail_reads(key)]
        self._due_tails = {}
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
        return key not in self._tails and self.readers[key].room > 0 and not (merge and merge.holds(feed.origin))

    def _ask(self, feeds: list[Feed], filters: Iterable[Filter], limit: int) -> PageRequest:
        request, first = next(self._requests), feeds[0]
        for feed in feeds:
            feed.ask(request)
        self._asked[request] = first.origin, partial(self._read_all, feeds, request)
        return PageRequest(first.origin, request, ReadTerms(first.cursor, widest(filters), limit, first.since))

    def _tail_reads(self, key: ReaderKey) -> list[PageRequest]:
        """Return the reads of the last events before a reader was made, at all origins that are reachable."""
        tails, reader, reads = self._tails[key], self.readers[key], []
        for origin in tails.origins():
            request, is_own = next(self._requests), origin == self._own
            start, since = (tails.own_end, None) if is_own else (0, reader.made)
            self._asked[request] = origin, partial(self._tail_found, key, tails, origin)
            terms = ReadTerms(start, (reader.filter,), PAGE, since, tails.last)
            reads.append(PageRequest(origin, request, terms))
        return reads

    def _sharing(self, origin: Origin) -> Iterable[Reader]:
        apart = self.roster.apart(origin)
        return [reader for key, reader in self.readers.items() if key not in apart]


def _overlaps(wanted: Filter, offers: Iterable[Offer]) -> bool:
    return any(wanted.overlaps(offer.filter) for offer in offers)
