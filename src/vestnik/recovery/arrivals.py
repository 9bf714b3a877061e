"""Takes in pages of logs: gives them to the readers of the feeds that waited for them, and moves these feeds on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from vestnik.model.events import Event
from vestnik.recovery.feed import Feed
from vestnik.recovery.flight import single
from vestnik.recovery.reader import ReaderKey
from vestnik.recovery.replaying import Replaying
from vestnik.wire.messages import Gap
from vestnik.wire.origins import Origin, Slice
from vestnik.wire.packing import pack

BEYOND: Final = (
    "the log ends before the place from which it is to be read: "
    "it has lost its end, and what it accepted since then may be missing"
)


class Arrivals:
    """Takes in pages for the feeds of one broker. `matching` finds the readers that want an event."""

    def __init__(self, replaying: Replaying, matching: Callable[[Event], Iterable[ReaderKey]]) -> None:
        self._roster = replaying.roster
        self._giving = replaying.giving
        self._replaying = replaying
        self._matching = matching

    def read(self, feeds: Sequence[Feed], request: int, page: Slice, edge: int) -> None:
        """Take in the page of a request for the feeds that still wait for it."""
        for feed in feeds:
            if feed.request == request and self._roster.has(feed):
                self._read(feed, page, edge, is_exact=len(feeds) == 1)

    def _read(self, feed: Feed, page: Slice, edge: int, *, is_exact: bool) -> None:
        """Take in a page. If it `is_exact`, it was read for this feed alone, and its reader wants all of it."""
        if feed.since is not None and feed.reader is not None:
            self._giving.resolve([feed.reader])
        if feed.reader is not None:
            self._replaying.covered(feed.reader, feed.origin, page.covers)
        if feed.reader is None and feed.since is not None and page.gap is not None:
            self._split(feed)
        part = feed.part_of(page, edge)
        if part is None and page.upto >= edge:
            self._go_back(feed, edge)
        elif part is None:
            self._roster.enqueue(feed)
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
            self._replaying.tell(reader, Gap(str(feed.origin), edge, feed.cursor, BEYOND, rewinds=True), force=True)
        feed.start_at(edge)
        self._roster.enqueue(feed)

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
                roster.enqueue(feed)
                return False
            keys = [key for key in self._matching(event) if key in roster.readers and key not in apart]
            if feed.is_past(offset):
                keys = [key for key in keys if accepted >= roster.readers[key].made]
            if keys:
                flight, twins = single(event, len(pack(event)), origin), self._giving.repeats.add(origin, [event])
                for reader, _ in self._giving.live([event], flight, twins, [roster.readers[key] for key in keys]):
                    roster.lag(reader.key, origin, offset)
            feed.advance(offset + 1)
        return True

    def _give_apart(self, feed: Feed, key: ReaderKey, page: Slice, *, is_exact: bool) -> bool:
        """Give a page to one reader; return whether it has all of it. If not, the cursor stays before the rest."""
        reader, origin = self._roster.readers[key], feed.origin
        if page.gap is not None:
            is_start = feed.replays and feed.cursor <= 1 and origin in self._roster.main
            tell = self._replaying.tell_start if is_start else self._replaying.tell
            if not tell(reader, _gap_in(origin, page)):
                return False
            feed.advance(page.gap.end)
        if page.events and self._replaying.merges(key, origin):
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
                self._replaying.finish(feed.reader, origin)
            else:
                roster.enqueue(feed)
            return
        if not feed.go_live(edge):
            roster.enqueue(feed)
            if feed.reader is not None:
                self._replaying.give_merged(feed.reader)
            return
        if feed is main and roster.met(origin):
            self._giving.resolve([reader.key for reader in roster.sharing(origin)])
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


def _gap_in(origin: Origin, page: Slice) -> Gap:
    """Return the gap of a page. An answer of a client has no offsets that mean anything to others."""
    if origin.is_of_client:
        return Gap("", 0, 0, f"{origin.title}: {page.reason}")
    return Gap(str(origin), *(page.gap or (0, 0)), page.reason)
