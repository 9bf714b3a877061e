"""Chooses which pages of logs are read next for the feeds that lag."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from vestnik.model.filters import Filter
from vestnik.recovery.arrivals import Arrivals
from vestnik.recovery.feed import Feed
from vestnik.recovery.reads import (
    PAGE,
    PageRequest,
    Requests,
    neighbours,
    no_answer,
    past_start,
    terms_of,
)
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.roster import Roster
from vestnik.wire.origins import Origin


class Reading:
    """Reads for the feeds of one broker; `arrivals` takes in the pages."""

    def __init__(self, roster: Roster, requests: Requests, replaying: Replaying, arrivals: Arrivals) -> None:
        self._roster = roster
        self._requests = requests
        self._replaying = replaying
        self._arrivals = arrivals

    def next_reads(self, most: int) -> list[PageRequest]:
        """Return the pages that are wanted next, which have about `most` notifications together.

        Feeds take turns. There is one page for readers that wait at about the same place of a log.
        """
        due = self._take_due(most)
        share = max(1, most // len(due)) if due else most
        reads: list[PageRequest] = []
        alike: dict[Origin, list[Feed]] = {}
        for feed in due:
            key, origin = feed.reader, feed.origin
            if key is None:
                reads.append(self._ask([feed], [reader.filter for reader in self._roster.sharing(origin)], PAGE))
            elif feed.since is not None or self._replaying.merges(key, origin) or origin in self._roster.histories:
                reads.append(self._ask([feed], [self._roster.readers[key].filter], min(PAGE, share)))
            else:
                alike.setdefault(origin, []).append(feed)
        for feeds in alike.values():
            for group in neighbours(feeds):
                readers = [self._roster.readers[feed.reader] for feed in group if feed.reader is not None]
                limit = min(PAGE, share, max([reader.room for reader in readers]))
                reads.append(self._ask(group, [reader.filter for reader in readers], limit, are_known=True))
        return reads

    def _take_due(self, most: int) -> list[Feed]:
        """Take the feeds whose turn it is; those that cannot read now are due again when they can."""
        return [feed for feed in self._roster.take_due(most) if self._can_read(feed)]

    def _can_read(self, feed: Feed) -> bool:
        """Return whether a page is wanted: the feed waits for none, and its reader has room."""
        if not self._roster.has(feed) or not feed.is_fetching or feed.request is not None:
            return False
        key = feed.reader
        if key is None:
            return True
        is_held = self._replaying.picks(key) or self._replaying.holds(key, feed.origin)
        return not is_held and self._roster.readers[key].room > 0

    def _ask(self, feeds: list[Feed], filters: Iterable[Filter], limit: int, *, are_known: bool = False) -> PageRequest:
        """Ask for a page. If the readers of the feeds `are_known`, nobody else reads it."""
        first, readers = feeds[0], self._roster.readers
        terms = terms_of(first, filters, limit)
        if first.reader is not None and first.origin in self._roster.histories:  # it answers each page by itself
            terms = replace(terms, since=past_start(readers[first.reader].past_since))
        when_read, late = partial(self._arrivals.read, feeds), partial(self._late, feeds)
        alone = {readers[feed.reader] for feed in feeds if are_known and feed.reader is not None}
        read = self._requests.new(first.origin, terms, when_read, feed=first.number, readers=alone, late=late)
        for feed in feeds:
            feed.ask(read.request)
        return read

    def _late(self, feeds: list[Feed], request: int) -> bool:
        """Let readers that end or merge go on without an origin; return whether its page is still wanted."""
        waiting = [feed for feed in feeds if feed.request == request and self._roster.has(feed)]
        for feed in waiting:
            feed.wait_no_longer()
            key = feed.reader
            if key is not None and self._roster.readers[key].ends:
                self._replaying.miss(key, no_answer(feed.origin))
                self._replaying.finish(key, feed.origin, is_read=False)
            elif key is not None:
                self._replaying.give_merged(key)
        return any(self._roster.has(feed) for feed in waiting)
