"""Moves the feeds of one broker when readers come, change, take what they were given, and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vestnik.model.filters import Filter
from vestnik.model.reserved import others
from vestnik.model.work import together
from vestnik.recovery.giving import Giving
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import out_of_reach, past_start
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.roster import COMPARING, SUPERSEDED, Roster
from vestnik.wire.messages import Gap
from vestnik.wire.origins import ENDLESS, Origin
from vestnik.wire.replays import Replay


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


class Readers:
    """The events in the life of a reader, as the feeds of one broker see them: one method for each.

    `own` is the log of the broker.
    """

    def __init__(self, own: Origin, roster: Roster, giving: Giving, replaying: Replaying) -> None:
        self._own = own
        self._roster = roster
        self._giving = giving
        self._replaying = replaying

    @together(COMPARING)
    def begin(self, reader: Reader, start: Start = Start()) -> None:  # noqa: B008  # a frozen value
        """Add a reader; it takes the place of one with the same key. If it picks, `replaying.pick` is to follow."""
        key, roster = reader.key, self._roster
        self.end(key)
        roster.enter(reader)
        cursors, replay = start.cursors, start.replay
        known_from = ENDLESS if reader.ends else roster.main[self._own].cursor
        from_past = cursors is not None or replay is not None
        reader.begin(self._giving.now, known_from, self._giving.repeats.serial, from_past=from_past)
        if reader.ends:
            self._replaying.begin_fetch(key)
            if not others(reader.filter).region and not roster.histories:  # only these have events of brokers
                self._replaying.end_fetch(key)
                return
        origins = roster.pasts() if reader.ends else [*dict.fromkeys([*roster.main, *(cursors or {})])]
        if replay is not None and not replay.picks and not reader.ends:
            origins += roster.histories
        for origin in origins:
            if cursors is not None and roster.is_over(origin):
                if origin in cursors:
                    gap = Gap(str(origin), cursors[origin], ENDLESS, SUPERSEDED)
                    self._replaying.tell(reader, gap, force=True)
            elif cursors is not None and origin.is_of_client and origin not in roster.reachable:
                self._replaying.tell(reader, Gap("", 0, 0, out_of_reach(origin)), force=True)
            elif cursors is not None:
                roster.look_back(reader)
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
            self._replaying.begin_picks(key, replay, start.until)
        elif replay is not None:
            self._replaying.begin_merge(key)
        for feed in list(roster.own(key).values()):
            roster.catch_up(feed)

    def end(self, key: ReaderKey) -> None:
        """Remove a reader, and what it was given and not sent yet."""
        reader = self._roster.readers.get(key)
        if reader is not None:
            self._giving.forget(reader)
        self._roster.leave(key)
        self._replaying.forget(key)

    @together(COMPARING)
    def change(self, key: ReaderKey, wanted: Filter, since: int | None = None) -> None:
        """Change a filter at the cursors. Unless it is narrower, each origin is asked once more from there.

        With `since`, what was accepted before that time is given only if the filter before wanted it, too.
        """
        reader = self._roster.readers[key]
        before, is_narrower = reader.filter, reader.filter.covers(wanted)
        self._roster.change(reader, wanted)
        if self._replaying.picks(key):
            self._replaying.pick_again(key)
            return
        for origin in self._roster.origins(key):
            feed = self._roster.of(key, origin)
            assert feed is not None
            if feed.reader is None:
                if feed.is_live and (is_narrower or origin == self._own):
                    continue
                feed = self._roster.part_from(feed, reader)
            elif origin.is_of_client:
                feed = self._roster.part(key, origin, 0, replays=feed.replays)  # it is another question
            self._replaying.drop_page(key, origin)
            self._roster.catch_up(feed)
        if since is not None and not is_narrower and self._roster.own(key):
            reader.match_earlier(since, before)

    def took(self, reader: Reader, number: int) -> None:
        """Go on with a reader whose client has taken everything up to a number."""
        if number > reader.taken:
            reader.move(self._giving.now)
        reader.take(number)
        self.made_room(reader.key)

    def made_room(self, key: ReaderKey) -> None:
        """Go on with a reader that has taken something, or takes again."""
        for feed in self._roster.own(key).values():
            if feed.is_fetching and feed.request is None:
                self._roster.enqueue(feed)
        self._replaying.give_merged(key)

    def is_in_past(self, key: ReaderKey) -> bool:
        """Return whether a reader that started in the past has not come to the present yet."""
        return key in self._roster.readers and self._roster.readers[key].from_past
