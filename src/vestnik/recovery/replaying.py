"""Replays: readers that start in the past, and those that end when they have read it.

A replay of several logs is given in the order of time: the earliest event is given once each log that is read has a
page here. A replay that picks is given as a whole when all logs have answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from vestnik.model.events import Event
from vestnik.recovery.feed import Feed
from vestnik.recovery.filling import Filling
from vestnik.recovery.giving import Giving
from vestnik.recovery.pages import PLACES
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import PAGE, PageRequest, Requests, WhenNotRead, WhenRead, no_answer
from vestnik.recovery.replays import Merge, Picks, out_of_reach
from vestnik.recovery.roster import Roster
from vestnik.wire.messages import Gap
from vestnik.wire.origins import ENDLESS, Cover, Origin, ReadTerms, Slice
from vestnik.wire.packing import pack
from vestnik.wire.replays import Replay


class Replaying:
    """The replays of one broker: which pages are held to be merged, what is picked, and what is missing.

    `unmet` says in words of which brokers it is not known which logs they have.
    """

    def __init__(self, roster: Roster, giving: Giving, requests: Requests, unmet: Callable[[], list[str]]) -> None:
        self._roster = roster
        self._unmet = unmet
        self._giving = giving
        self._requests = requests
        self._merges: dict[ReaderKey, Merge] = {}
        self._picks: dict[ReaderKey, Picks] = {}
        self._due_picks: dict[ReaderKey, None] = {}
        self._missing: dict[ReaderKey, list[str]] = {}  # of readers that end
        self._filling: dict[ReaderKey, Filling] = {}  # of readers that read histories

    def forget(self, key: ReaderKey) -> None:
        self._filling.pop(key, None)
        self._merges.pop(key, None)
        self._picks.pop(key, None)
        self._missing.pop(key, None)

    def out_of_reach(self) -> list[str]:
        """Return the logs and brokers that cannot be asked, in words."""
        away = [origin for origin in self._roster.main if origin not in self._roster.reachable]
        return [*map(out_of_reach, away), *self._unmet()]

    def lost(self, origin: Origin) -> None:
        """Go on without an origin that cannot be reached."""
        for key, picks in list(self._picks.items()):
            picks.drop(origin, out_of_reach(origin))
            self._finish_picks(key)
        for key, merge in list(self._merges.items()):
            merge.drop(origin)
            self.give_merged(key)

    def is_replaying(self, key: ReaderKey) -> bool:
        """Return whether a reader has a past that is not like that of others."""
        return self._roster.readers[key].replays or key in self._picks or key in self._merges

    # --- merged ---

    def begin_merge(self, key: ReaderKey) -> None:
        self._merges[key] = Merge()
        histories = [origin for origin in self._roster.own(key) if origin not in self._roster.main]
        if histories:
            self._filling[key] = Filling(histories)

    def merges(self, feed: Feed) -> bool:
        """Return whether the pages of a feed are put in the order of time: those of the past that is replayed are.

        Later ones are not held back, because a feed becomes LIVE only with a page that is given as it comes.
        """
        is_over = feed.is_past_over and feed.origin in self._roster.main
        return feed.reader in self._merges and feed.replays and feed.is_fetching and not is_over

    def holds(self, key: ReaderKey, origin: Origin) -> bool:
        """Return whether a page of an origin waits to be given."""
        return key in self._merges and self._merges[key].holds(origin)

    def hold(self, key: ReaderKey, origin: Origin, page: Slice) -> None:
        self._merges[key].hold(origin, page)
        self.give_merged(key)

    def drop_page(self, key: ReaderKey, origin: Origin) -> None:
        """Forget a page that waits; it is fetched again."""
        if key in self._merges:
            self._merges[key].drop(origin)

    def give_merged(self, key: ReaderKey) -> None:
        """Give the earliest event while each origin that is replayed has one here: so a replay is in order of time."""
        merge, reader = self._merges.get(key), self._roster.readers.get(key)
        while merge is not None and reader is not None:
            own = self._roster.own(key)
            awaited = [origin for origin, feed in own.items() if self.merges(feed) and not feed.is_late]
            held = [origin for origin in own if merge.holds(origin)]
            if not own:
                self._merges.pop(key, None)
                self._filling.pop(key, None)
                return
            if not held or not all(merge.holds(origin) for origin in awaited):
                return
            origin, placed = merge.earliest(held)
            feed = own[origin]
            is_copy = origin not in self._roster.main
            if not self._giving.give_read(feed, reader, placed, merge.size_at(origin), is_copy=is_copy):
                return
            upto = merge.pop(origin)
            feed.advance(placed.offset + 1)
            if upto is not None:
                feed.advance(upto)
                if reader.ends and not is_copy and feed.is_past_over:
                    self.finish(feed)
                else:
                    self._roster.due[feed] = None

    # --- histories ---

    def covered(self, key: ReaderKey, history: Origin, covers: tuple[Cover, ...]) -> None:
        """Note which parts of logs a history has that a reader reads."""
        if key in self._filling and history not in self._roster.main:
            self._filling[key].covered(history, covers)
            self._tell_left(key)

    def tell_start(self, reader: Reader, gap: Gap) -> bool:
        """Tell a reader of a gap at the start of a log, unless a history that it reads has those offsets.

        That is known when all histories have said what they have. Return False if there is no room.
        """
        filling = self._filling.get(reader.key)
        if filling is None:
            return self.tell(reader, gap)
        filling.hold(gap)
        self._tell_left(reader.key)
        return True

    def _tell_left(self, key: ReaderKey) -> None:
        """Tell a reader what no history has."""
        for gap in self._filling[key].take_left():
            self.tell(self._roster.readers[key], gap, force=True)

    # --- picked ---

    def begin_picks(self, key: ReaderKey, replay: Replay, until: int | None) -> None:
        """Let a reader wait for what is picked; `pick` asks for it."""
        self._picks[key] = Picks(replay, until)

    def pick(self, key: ReaderKey) -> None:
        """Ask all logs within reach for what a reader picks, if it does."""
        if key in self._picks:
            self._picks[key].ask(self._roster.pasts(), self.out_of_reach())
            self._due_picks[key] = None

    def picks(self, key: ReaderKey) -> bool:
        """Return whether a reader waits for what is picked."""
        return key in self._picks

    def pick_again(self, key: ReaderKey) -> None:
        """Pick by another filter."""
        before = self._picks[key]
        self.begin_picks(key, before.replay, before.until)
        if before.is_asked:
            self.pick(key)

    @property
    def has_due(self) -> bool:
        """Whether something is to be picked that was not asked for yet."""
        return bool(self._due_picks)

    def next_picks(self) -> list[PageRequest]:
        """Return the reads of what is picked at all origins that can be reached, before the start."""
        due, self._due_picks = self._due_picks, {}
        return [read for key in due if key in self._picks for read in self._pick_reads(key)]

    def _pick_reads(self, key: ReaderKey) -> list[PageRequest]:
        picks, reader, reads = self._picks[key], self._roster.readers[key], []
        for origin in picks.origins():
            feed, start, until = self._roster.own(key).get(origin), ENDLESS, None
            if picks.until is not None and feed is not None and origin not in self._roster.histories:
                start, until = feed.cursor, picks.until
            when_read = partial(self._picked, key, picks, origin)
            told = WhenNotRead(late=partial(self._picks_late, key, picks, origin))
            request = self._requests.new(origin, partial(_always, when_read), told)
            limit = PLACES if picks.are_many else PAGE
            terms = ReadTerms(start, (reader.filter,), limit, until, picks.replay)
            reads.append(PageRequest(origin, request, terms))
        return reads

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
        picks, reader = self._picks.get(key), self._roster.readers.get(key)
        if picks is None or reader is None or not picks.is_complete:
            return
        del self._picks[key]
        for reason in dict.fromkeys(picks.reasons):
            self.tell(reader, Gap("", 0, 0, reason), force=True)
        for origin, event in picks.picked(reader.filter):
            self._giving.give(reader, origin, event, len(pack(event)), is_replayed=True, force=True)
        self._giving.resolved[key] = None
        ends, places = picks.ends(), picks.places()
        for origin, feed in list(self._roster.own(key).items()):
            if origin in places:
                feed.replay(places[origin])
            elif reader.ends:
                self.finish(feed)
            elif origin in ends:
                feed.start_at(ends[origin])
            self._roster.due[feed] = None

    # --- readers that end ---

    def begin_fetch(self, key: ReaderKey) -> None:
        """Note what a reader that ends misses from the start."""
        self._missing[key] = self.out_of_reach()

    def miss(self, key: ReaderKey, reason: str) -> None:
        """Note something that a reader that ends will not get."""
        if key in self._missing:
            self._missing[key].append(reason)

    def tell(self, reader: Reader, gap: Gap, *, force: bool = False) -> bool:
        """Tell a reader of a gap; return False if it has no room. One that ends is told at its end."""
        if reader.ends:
            self.miss(reader.key, f"{gap.log}: {gap.reason}" if gap.log else gap.reason)
            return True
        return self._giving.tell(reader, gap, force=force)

    def finish(self, feed: Feed, *, is_read: bool = True) -> None:
        """End a feed of a history, or of a reader that ends; with the last one such a reader is done.

        The feed `is_read` to its end, or the origin is lost.
        """
        key, origin = feed.reader, feed.origin
        assert key is not None
        self.drop_page(key, origin)
        self._roster.share(key, origin)
        if not is_read and key in self._filling:
            self._filling[key].lost(origin)
            self._tell_left(key)
        if not self.end_fetch(key):
            self.give_merged(key)

    def opened(self, key: ReaderKey, events: Iterable[Event], missing: Iterable[str]) -> None:
        """Give a reader that ends what is open at all brokers; `missing` says of which ones this is not known."""
        reader = self._roster.readers.get(key)
        if reader is None or not reader.waits_for_open:
            return
        for event in events:
            self._giving.announce(reader, event, len(pack(event)), is_past=True)
        self._missing[key] += missing
        reader.waits_for_open = False
        self.end_fetch(key)

    def end_fetch(self, key: ReaderKey) -> bool:
        """End a reader that ends if it waits for nothing more; return whether it does not."""
        reader = self._roster.readers[key]
        if not reader.ends or reader.waits_for_open or self._roster.own(key):
            return False
        self._giving.finished.append((reader, self._missing.get(key, [])))
        self._roster.leave(key)
        self.forget(key)
        return True


def _always(when_read: WhenRead, number: int) -> WhenRead:
    return when_read
