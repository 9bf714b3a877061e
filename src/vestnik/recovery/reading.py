"""Reads pages of logs for the feeds that lag: which pages are wanted next, and what a page means for each feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Final

from msgspec.structs import replace

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.recovery.feed import Feed
from vestnik.recovery.flight import single
from vestnik.recovery.giving import Giving
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import (
    PAGE,
    PageRequest,
    Requests,
    WhenNotRead,
    neighbours,
    no_answer,
    past_start,
    terms_of,
)
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.replays import gap_in
from vestnik.recovery.roster import Roster
from vestnik.wire.messages import Gap
from vestnik.wire.origins import Origin, Slice
from vestnik.wire.packing import pack

BEYOND: Final = "the log ends before the place from which it is to be read: it has lost its end"


class Reading:
    """Reads for the feeds of one broker. `matching` finds the readers that want an event."""

    def __init__(
        self,
        roster: Roster,
        giving: Giving,
        requests: Requests,
        replaying: Replaying,
        matching: Callable[[Event], Iterable[ReaderKey]],
    ) -> None:
        self._roster = roster
        self._giving = giving
        self._requests = requests
        self._replaying = replaying
        self._matching = matching

    # --- which pages are wanted ---

    def next_reads(self, most: int) -> list[PageRequest]:
        """Return the pages that are wanted next, which have about `most` notifications together.

        Feeds take turns. There is one page for readers that wait at about the same place of a log.
        """
        due = self._take_due(most)
        share = max(1, most // len(due)) if due else most
        reads = self._replaying.next_picks()
        alike: dict[Origin, list[Feed]] = {}
        for feed in due:
            key = feed.reader
            if key is None:
                reads.append(self._ask([feed], [reader.filter for reader in self._roster.sharing(feed.origin)], PAGE))
            elif feed.since is not None or self._replaying.merges(feed) or feed.origin in self._roster.histories:
                reads.append(self._ask([feed], [self._roster.readers[key].filter], min(PAGE, share)))
            else:
                alike.setdefault(feed.origin, []).append(feed)
        for feeds in alike.values():
            for group in neighbours(feeds):
                readers = [self._roster.readers[feed.reader] for feed in group if feed.reader is not None]
                limit = min(PAGE, share, max([reader.room for reader in readers]))
                reads.append(self._ask(group, [reader.filter for reader in readers], limit, readers))
        return reads

    def _take_due(self, most: int) -> list[Feed]:
        """Take the feeds whose turn it is; those that cannot read now are due again when they can."""
        due = self._roster.due
        turns = list(islice(due, most))
        for feed in turns:
            del due[feed]
        return [feed for feed in turns if self._can_read(feed)]

    def _can_read(self, feed: Feed) -> bool:
        """Return whether a page is wanted: the feed waits for none, and its reader has room."""
        if not self._roster.has(feed) or not feed.is_fetching or feed.request is not None:
            return False
        key = feed.reader
        if key is None:
            return True
        is_held = self._replaying.picks(key) or self._replaying.holds(key, feed.origin)
        return not is_held and self._roster.readers[key].room > 0

    def _ask(
        self, feeds: list[Feed], filters: Iterable[Filter], limit: int, readers: Iterable[Reader] = ()
    ) -> PageRequest:
        first = feeds[0]
        told = WhenNotRead(late=partial(self._late, feeds))
        request = self._requests.new(first.origin, lambda number: partial(self._read_all, feeds, number), told)
        for feed in feeds:
            feed.ask(request)
        terms = terms_of(first, filters, limit)
        if first.reader is not None and first.origin in self._roster.histories:  # it answers each page by itself
            terms = replace(terms, since=past_start(self._roster.readers[first.reader].past_since))
        return PageRequest(first.origin, request, terms, first.number, set(readers))

    def _late(self, feeds: list[Feed], request: int) -> bool:
        """Let readers that end or merge go on without an origin; return whether its page is still wanted."""
        waiting = [feed for feed in feeds if feed.request == request and self._roster.has(feed)]
        for feed in waiting:
            feed.is_late = True
            key = feed.reader
            if key is not None and self._roster.readers[key].ends:
                self._replaying.miss(key, no_answer(feed.origin))
                self._replaying.finish(feed, is_read=False)
            elif key is not None:
                self._replaying.give_merged(key)
        return any(self._roster.has(feed) for feed in waiting)

    # --- what a page means ---

    def _read_all(self, feeds: Sequence[Feed], request: int, page: Slice, edge: int) -> None:
        for feed in feeds:
            if feed.request == request and self._roster.has(feed):
                self._read(feed, page, edge, is_exact=len(feeds) == 1)

    def _read(self, feed: Feed, page: Slice, edge: int, *, is_exact: bool) -> None:
        """Take in a page. If it `is_exact`, it was read for this feed alone, and its reader wants all of it."""
        if feed.since is not None and feed.reader is not None:
            self._giving.resolved[feed.reader] = None
        if feed.reader is not None:
            self._replaying.covered(feed.reader, feed.origin, page.covers)
        if feed.reader is None and feed.since is not None and page.gap is not None:
            self._split(feed)
        part = feed.part_of(page, edge)
        if part is None and page.upto >= edge:
            self._go_back(feed, edge)
        elif part is None:
            self._roster.due[feed] = None
        elif (
            self._give_shared(feed, part)
            if feed.reader is None
            else self._give_apart(feed, feed.reader, part, is_exact=is_exact)
        ):
            feed.advance(part.upto)
            self._settle(feed, edge)

    def _split(self, feed: Feed) -> None:
        """Let readers of a new log that has dropped events read by themselves: the gap may be before some were made."""
        for reader in self._roster.sharing(feed.origin):
            self._roster.catch_up(self._roster.part_from(feed, reader))

    def _go_back(self, feed: Feed, edge: int) -> None:
        """Go back to the edge of a log that ends before a cursor: nobody knows what it has lost."""
        key = feed.reader
        for reader in self._roster.sharing(feed.origin) if key is None else [self._roster.readers[key]]:
            self._replaying.tell(reader, Gap(str(feed.origin), edge, feed.cursor, BEYOND), force=True)
        feed.start_at(edge)
        self._roster.due[feed] = None

    def _give_shared(self, feed: Feed, page: Slice) -> bool:
        """Give a page to all readers that share a feed. One without room goes on with a feed of its own.

        Return whether that was done for all of the page. It stops when others have their turn.
        """
        origin, roster = feed.origin, self._roster
        if page.gap is not None:
            for reader in roster.sharing(origin):
                if not self._replaying.tell(reader, Gap(str(origin), *page.gap, page.reason)):
                    roster.lag(reader.key, origin, page.gap.first)
            feed.advance(page.gap.end)
        for event, accepted in zip(page.events, page.times, strict=True):
            offset, apart = event.seq or 0, roster.apart(origin)
            if self._giving.left <= 0:
                feed.advance(offset)
                roster.due[feed] = None
                return False
            keys = [key for key in self._matching(event) if key in roster.readers and key not in apart]
            if feed.is_past(offset):
                keys = [key for key in keys if accepted >= roster.readers[key].made]
            if keys:
                flight, twins = single(event, len(pack(event)), origin), self._giving.repeats.add(origin, [event])
                for reader, _ in self._giving.live(flight, twins, [roster.readers[key] for key in keys]):
                    roster.lag(reader.key, origin, offset)
            feed.advance(offset + 1)
        return True

    def _give_apart(self, feed: Feed, key: ReaderKey, page: Slice, *, is_exact: bool) -> bool:
        """Give a page to one reader; return whether it has all of it. If not, the cursor stays before the rest."""
        reader, origin = self._roster.readers[key], feed.origin
        if page.gap is not None:
            is_start = feed.replays and feed.cursor <= 1 and origin in self._roster.main
            tell = self._replaying.tell_start if is_start else self._replaying.tell
            if not tell(reader, gap_in(origin, page)):
                return False
            feed.advance(page.gap.end)
        if page.events and self._replaying.merges(feed):
            self._replaying.hold(key, origin, page)
            return False
        is_copy = origin not in self._roster.main
        return self._giving.give_page(feed, reader, page, is_exact=is_exact, is_copy=is_copy)

    def _settle(self, feed: Feed, edge: int) -> None:
        """Let a feed that has reached the edge be LIVE, and readers share the feed again if both are."""
        roster, origin = self._roster, feed.origin
        main = roster.main.get(origin)
        if feed.reader is not None and (main is None or roster.readers[feed.reader].ends):
            if feed.cursor >= (feed.past or 0) and (main is not None or feed.cursor >= edge):
                self._replaying.finish(feed)
            else:
                roster.due[feed] = None
            return
        if not feed.go_live(edge):
            roster.due[feed] = None
            if feed.reader is not None:
                self._replaying.give_merged(feed.reader)
            return
        if feed is main and roster.met(origin):
            self._giving.resolved.update(dict.fromkeys([reader.key for reader in roster.sharing(origin)]))
        if main is not None and main.is_live:
            assert main.cursor <= feed.cursor, f"{main} is beyond the edge at {feed.cursor}"
            main.advance(feed.cursor)
            ready = [feed] if feed.reader is not None else [one for one in roster.all(origin) if one.is_live]
            for one in ready:
                if one.reader is not None:
                    assert one.cursor <= feed.cursor, f"{one} is beyond the edge at {feed.cursor}"
                    roster.share(one.reader, origin)
        if feed.reader is not None:
            self._replaying.give_merged(feed.reader)
