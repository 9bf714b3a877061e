"""Replays: readers that start in the past, and those that end when they have read it.

A replay of several logs is given in the order of time: the earliest event is given once each log that is read has a
page here. A replay that picks is given as a whole when all logs have answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vestnik.model.events import Event
from vestnik.recovery.giving import Giving
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import no_answer, out_of_reach
from vestnik.recovery.replays import Merge, Picks
from vestnik.recovery.roster import Roster
from vestnik.wire.messages import Gap
from vestnik.wire.origins import Cover, Origin, Slice
from vestnik.wire.packing import pack
from vestnik.wire.replays import Replay


class Replaying:
    """The replays of one broker: which pages are held to be merged, what is picked, and what is missing.

    `unmet` says in words of which brokers it is not known which logs they have.
    """

    def __init__(self, roster: Roster, giving: Giving, unmet: Callable[[], list[str]]) -> None:
        self.roster = roster
        self.giving = giving
        self._unmet = unmet
        self._merges: dict[ReaderKey, Merge] = {}
        self._picks: dict[ReaderKey, Picks] = {}
        self.due_picks: dict[ReaderKey, None] = {}
        self._missing: dict[ReaderKey, list[str]] = {}  # of readers that end

    def forget(self, key: ReaderKey) -> None:
        self._merges.pop(key, None)
        self._picks.pop(key, None)
        self._missing.pop(key, None)

    def out_of_reach(self) -> list[str]:
        """Return the logs and brokers that cannot be asked, in words."""
        away = [origin for origin in self.roster.main if origin not in self.roster.reachable]
        return [*map(out_of_reach, away), *self._unmet()]

    def lost(self, origin: Origin) -> None:
        """Go on without an origin that cannot be reached."""
        for key, picks in list(self._picks.items()):
            picks.drop(origin, out_of_reach(origin))
            self._finish_picks(key)
        for key in list(self._merges):
            self.drop_page(key, origin)
            self.give_merged(key)

    def is_replaying(self, key: ReaderKey) -> bool:
        """Return whether a reader has a past that is not like that of others."""
        return self.roster.readers[key].replays or key in self._picks or key in self._merges

    # --- merged ---

    def begin_merge(self, key: ReaderKey) -> None:
        self._merges[key] = Merge([origin for origin in self.roster.own(key) if origin not in self.roster.main])

    def merges(self, key: ReaderKey, origin: Origin) -> bool:
        """Return whether pages of an origin are put in the order of time: those of the past that is replayed are.

        Later ones are not held back, because a feed becomes LIVE only with a page that is given as it comes.
        """
        if key not in self._merges:
            return False
        feed = self.roster.own(key)[origin]
        is_over = feed.is_past_over and origin in self.roster.main
        return feed.replays and feed.is_fetching and not is_over

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
        merge, reader = self._merges.get(key), self.roster.readers.get(key)
        while merge is not None and reader is not None:
            own = self.roster.own(key)
            if not own:
                self._merges.pop(key, None)
                return
            awaited = [origin for origin, feed in own.items() if not feed.is_late and self.merges(key, origin)]
            held = [origin for origin in own if merge.holds(origin)]
            if not held or not all(merge.holds(origin) for origin in awaited):
                return
            origin, placed = merge.earliest(held)
            feed = own[origin]
            is_copy = origin not in self.roster.main
            if not self.giving.give_read(feed, reader, placed, merge.size_at(origin), is_copy=is_copy):
                return
            upto = merge.pop(origin)
            feed.advance(placed.offset + 1)
            if upto is not None:
                feed.advance(upto)
                if reader.ends and not is_copy and feed.is_past_over:
                    self.finish(key, origin)
                else:
                    self.roster.enqueue(feed)

    # --- histories ---

    def covered(self, key: ReaderKey, history: Origin, covers: tuple[Cover, ...]) -> None:
        """Note which parts of logs a history has that a reader reads."""
        merge = self._merges.get(key)
        if merge is not None and merge.filling is not None and history not in self.roster.main:
            merge.filling.covered(history, covers)
            self._tell_left(key, merge)

    def tell_start(self, reader: Reader, gap: Gap) -> bool:
        """Tell a reader of a gap at the start of a log, unless a history that it reads has those offsets.

        That is known when all histories have said what they have. Return False if there is no room.
        """
        merge = self._merges.get(reader.key)
        if merge is None or merge.filling is None:
            return self.tell(reader, gap)
        merge.filling.hold(gap)
        self._tell_left(reader.key, merge)
        return True

    def _tell_left(self, key: ReaderKey, merge: Merge) -> None:
        """Tell a reader what no history has."""
        for gap in [] if merge.filling is None else merge.filling.take_left():
            self.tell(self.roster.readers[key], gap, force=True)

    # --- picked ---

    def begin_picks(self, key: ReaderKey, replay: Replay, until: int | None) -> None:
        """Let a reader wait for what is picked; `pick` asks for it."""
        self._picks[key] = Picks(replay, until)

    def pick(self, key: ReaderKey) -> None:
        """Ask all logs within reach for what a reader picks, if it does."""
        if key in self._picks:
            self._picks[key].ask(self.roster.pasts(), self.out_of_reach())
            self.due_picks[key] = None

    def picks(self, key: ReaderKey) -> bool:
        """Return whether a reader waits for what is picked."""
        return key in self._picks

    def pick_again(self, key: ReaderKey) -> None:
        """Pick by another filter."""
        before = self._picks[key]
        self.begin_picks(key, before.replay, before.until)
        if before.is_asked:
            self.pick(key)

    def take_due_picks(self) -> list[tuple[ReaderKey, Picks]]:
        """Return what is to be asked for, by its reader."""
        due, self.due_picks = self.due_picks, {}
        return [(key, self._picks[key]) for key in due if key in self._picks]

    def picked(self, key: ReaderKey, picks: Picks, origin: Origin, page: Slice) -> None:
        """Take in what was picked at an origin."""
        if self._picks.get(key) is picks:
            picks.found(origin, page)
            self._finish_picks(key)

    def not_picked(self, key: ReaderKey, picks: Picks, origin: Origin) -> None:
        """Go on without an origin that does not answer."""
        if self._picks.get(key) is picks:
            picks.drop(origin, no_answer(origin))
            self._finish_picks(key)

    def _finish_picks(self, key: ReaderKey) -> None:
        """When all origins have answered, give what is picked of them together, and go on from there."""
        picks, reader = self._picks.get(key), self.roster.readers.get(key)
        if picks is None or reader is None or not picks.is_complete:
            return
        del self._picks[key]
        for reason in dict.fromkeys(picks.reasons):
            self.tell(reader, Gap("", 0, 0, reason), force=True)
        for origin, event in picks.picked(reader.filter):
            self.giving.give(reader, origin, event, len(pack(event)), is_replayed=True, force=True)
        self.giving.resolve([key])
        ends, places = picks.ends(), picks.places()
        for origin, feed in list(self.roster.own(key).items()):
            if origin in places:
                feed.replay(places[origin])
            elif reader.ends:
                self.finish(key, origin)
            elif origin in ends:
                feed.start_at(ends[origin])
            self.roster.enqueue(feed)

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
        return self.giving.tell(reader, gap, force=force)

    def finish(self, key: ReaderKey, origin: Origin, *, is_read: bool = True) -> None:
        """End a feed of a history, or of a reader that ends; with the last one such a reader is done.

        The feed `is_read` to its end, or the origin is lost.
        """
        self.drop_page(key, origin)
        self.roster.share(key, origin)
        merge = self._merges.get(key)
        if not is_read and merge is not None and merge.filling is not None:
            merge.filling.lost(origin)
            self._tell_left(key, merge)
        if not self.end_fetch(key):
            self.give_merged(key)

    def opened(self, key: ReaderKey, events: Iterable[Event], missing: Iterable[str]) -> None:
        """Give a reader that ends what is open at all brokers; `missing` says of which ones this is not known."""
        reader = self.roster.readers.get(key)
        if reader is None or not reader.waits_for_open:
            return
        for event in events:
            self.giving.announce(reader, event, len(pack(event)), is_past=True)
        self._missing[key] += missing
        reader.know_open()
        self.end_fetch(key)

    def end_fetch(self, key: ReaderKey) -> bool:
        """End a reader that ends if it waits for nothing more; return whether it does not."""
        reader = self.roster.readers[key]
        if not reader.ends or reader.waits_for_open or self.roster.own(key):
            return False
        self.giving.finish(reader, self._missing.get(key, []))
        self.roster.leave(key)
        self.forget(key)
        return True
