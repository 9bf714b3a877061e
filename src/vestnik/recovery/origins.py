"""Moves the feeds of one broker when logs come within reach, leave it, end, or offer something else."""

from __future__ import annotations

from collections.abc import Iterable

from vestnik.model.filters import Filter
from vestnik.model.work import together
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import Requests, out_of_reach
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.roster import COMPARING, SUPERSEDED, Roster
from vestnik.wire.messages import Gap
from vestnik.wire.origins import ENDLESS, Offer, Origin


class Origins:
    """The events in the life of a log, as the feeds of one broker see them: one method for each."""

    def __init__(self, roster: Roster, requests: Requests, replaying: Replaying) -> None:
        self._roster = roster
        self._requests = requests
        self._replaying = replaying

    @property
    def reachable(self) -> list[Origin]:
        """The logs of brokers that can be reached, without those of histories."""
        return [origin for origin in self._roster.main if origin in self._roster.reachable]

    def lost(self, origin: Origin) -> None:
        """Handle the loss of the next hop to an origin."""
        self._roster.lose(origin)
        for when_lost in self._requests.drop(origin):
            when_lost()
        for feed in self._roster.all(origin):
            feed.break_off()
            if feed.reader is not None:
                feed.start_since(self._roster.readers[feed.reader].made)
            if feed.reader is not None and (self._roster.readers[feed.reader].ends or origin not in self._roster.main):
                self._finish(feed.reader, origin)
        self._replaying.lost(origin)

    def _finish(self, key: ReaderKey, origin: Origin) -> None:
        """End the feed of a reader that is not to wait for an origin."""
        if origin.is_of_client:  # it may have what no log has
            self._replaying.tell(self._roster.readers[key], Gap("", 0, 0, out_of_reach(origin)), force=True)
        else:
            self._replaying.miss(key, out_of_reach(origin))
        self._replaying.finish(key, origin, is_read=False)

    def found(self, origin: Origin, *, is_history: bool = False) -> None:
        """Handle a new next hop to an origin. An origin that was never seen is read from when each reader was made."""
        self._roster.reach(origin, is_history=is_history)
        if is_history:
            return
        if origin not in self._roster.main:
            sharing: list[Reader] = []
            for key, reader in self._roster.readers.items():
                if origin not in self._roster.own(key) and not reader.ends:
                    if self._replaying.is_replaying(key):
                        self._roster.part(key, origin, 0, reader.made, replays=reader.replays)
                    else:
                        sharing.append(reader)
            self._roster.meet(origin, sharing)
        for feed in self._roster.all(origin):
            self._roster.catch_up(feed)

    def superseded(self, origin: Origin) -> None:
        """Give up a log whose broker has begun another: nobody knows what it had above the cursors."""
        for key, reader in self._roster.readers.items():
            feed = self._roster.of(key, origin)
            if feed is not None and not reader.ends:
                self._replaying.tell(reader, Gap(str(origin), feed.cursor, ENDLESS, SUPERSEDED), force=True)
        self._roster.forget(origin)

    @together(COMPARING)
    def offered(self, origin: Origin, before: frozenset[Offer], after: frozenset[Offer]) -> None:
        """Handle new advertisements: readers that overlapped none of the others were not known at the origin."""
        fresh, kept = after - before, after & before
        for key, reader in self._roster.readers.items():
            if _overlaps(reader.filter, fresh) and not _overlaps(reader.filter, kept):
                feed = self._roster.of(key, origin)
                if feed is not None and origin in self._roster.reachable and not reader.ends:
                    if feed.reader is None:
                        feed = self._roster.part_from(feed, reader)
                        self._roster.catch_up(feed)
                    feed.doubt()
                    self._roster.enqueue(feed)


def _overlaps(wanted: Filter, offers: Iterable[Offer]) -> bool:
    return any(wanted.overlaps(offer.filter) for offer in offers)
