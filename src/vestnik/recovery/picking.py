"""Asks the logs within reach for what replays pick of them, before the feeds of their readers start."""

from __future__ import annotations

from functools import partial

from vestnik.recovery.reader import ReaderKey
from vestnik.recovery.reads import PAGE, PageRequest, Requests
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.replays import Picks
from vestnik.recovery.roster import Roster
from vestnik.wire.origins import ENDLESS, PLACES, Origin, ReadTerms, Slice


class Picking:
    """The reads of what the replays of one broker pick."""

    def __init__(self, roster: Roster, requests: Requests, replaying: Replaying) -> None:
        self._roster = roster
        self._requests = requests
        self._replaying = replaying

    def next_reads(self) -> list[PageRequest]:
        """Return the reads of what is picked at all origins that can be reached."""
        return [read for key, picks in self._replaying.take_due_picks() for read in self._reads_of(key, picks)]

    def _reads_of(self, key: ReaderKey, picks: Picks) -> list[PageRequest]:
        reads: list[PageRequest] = []
        for origin in picks.origins():
            feed, start, until = self._roster.own(key).get(origin), ENDLESS, None
            if picks.until is not None and feed is not None and origin not in self._roster.histories:
                start, until = feed.cursor, picks.until
            limit, wanted = PLACES if picks.are_many else PAGE, self._roster.readers[key].filter
            terms = ReadTerms(start, (wanted,), limit, until, picks.replay)
            when_read, late = partial(self._read, key, picks, origin), partial(self._late, key, picks, origin)
            reads.append(self._requests.new(origin, terms, when_read, late=late))
        return reads

    def _read(self, key: ReaderKey, picks: Picks, origin: Origin, request: int, page: Slice, edge: int) -> None:
        self._replaying.picked(key, picks, origin, page)

    def _late(self, key: ReaderKey, picks: Picks, origin: Origin, request: int) -> bool:
        self._replaying.not_picked(key, picks, origin)
        return False
