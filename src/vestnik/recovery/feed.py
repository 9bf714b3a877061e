"""The feed: where a subscription, or all that share the feed, stands in the log of one origin.

A feed is a cursor and a state. Every way to miss events is the same thing, a cursor that lags:

- a replay is a cursor that starts in the past;
- an outage is a cursor that stood still while the origin was unreachable;
- a slow reader is a cursor that waits for the reader to take what it was given;
- a client that moved or returned hands over its cursors;
- a new advertisement, or a changed filter, is a cursor at which the origin must be asked once more.

A feed that lags is FETCHING. It reads pages of the log, and ignores live events: they are in the pages. A page whose
`upto` is the `edge` of its origin proves that the live path is in place: the fetch travelled after the routing
entries, and the page returned in order with the live events. Only such a page makes a feed LIVE, and every break of
the path ends that.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from vestnik.recovery.reader import ReaderKey
from vestnik.wire.origins import Origin, Slice, Span


class FeedState(Enum):
    """States of a feed."""

    LIVE = auto()
    """Live events are given as they arrive. Everything from the cursor on will arrive, in order."""
    FETCHING = auto()
    """Pages are read from the cursor on, and live events are ignored."""
    UNREACHABLE = auto()
    """The origin has no next hop, and the cursor stands still."""


NEXT: Final = {
    FeedState.UNREACHABLE: frozenset({FeedState.FETCHING}),
    FeedState.FETCHING: frozenset({FeedState.FETCHING, FeedState.LIVE, FeedState.UNREACHABLE}),
    FeedState.LIVE: frozenset({FeedState.FETCHING, FeedState.UNREACHABLE}),
}
"""The states that may follow each state."""


class Feed:
    """A cursor in one log: everything wanted below it was given, or told as a gap.

    The feed belongs to one `reader`, or is shared by all that have none of their own at its origin. With `since`, the
    origin has not resolved yet at which offset the feed starts. At most one `request` for a page is outstanding. A
    feed that is `dirty` may have been overtaken by an advertisement: its next page proves nothing. A feed that replays
    gives what is below offset `past` as past events; its first page says how far that goes. Readers that share the feed
    of a new origin get of its past what was accepted since they were made. A feed `is_late` if its origin has not
    answered in time: a replay of several origins goes on without it.
    """

    __slots__ = (
        "_dirty",
        "_state",
        "cursor",
        "is_late",
        "is_live",
        "number",
        "origin",
        "past",
        "reader",
        "replays",
        "request",
        "since",
    )

    def __init__(
        self,
        origin: Origin,
        cursor: int = 0,
        since: int | None = None,
        reader: ReaderKey | None = None,
        *,
        replays: bool = False,
        number: int = 0,
    ) -> None:
        self.origin = origin
        self.number = number
        self.replays = replays
        self.past: int | None = None
        self.reader = reader
        self.cursor = cursor
        self.since = since
        self.request: int | None = None
        self.is_late = False
        self._state = FeedState.UNREACHABLE
        self.is_live = False
        self._dirty = False

    def __repr__(self) -> str:
        return f"<Feed of {self.reader or 'all'}, {self.origin} {self._state.name} at {self.cursor}>"

    @property
    def state(self) -> FeedState:
        return self._state

    @property
    def is_fetching(self) -> bool:
        return self._state is FeedState.FETCHING

    # --- transitions ---

    def _become(self, state: FeedState) -> None:
        assert state in NEXT[self._state], f"{self} cannot become {state.name}"
        self._state = state
        self.is_live = state is FeedState.LIVE
        self.request = None
        self.is_late = False

    def break_off(self) -> None:
        """Note that the next hop to the origin is lost. A page that is under way does not count any more."""
        if self._state is not FeedState.UNREACHABLE:
            self._become(FeedState.UNREACHABLE)

    def catch_up(self) -> None:
        """Read the log from the cursor on; the answer to an outstanding request does not count any more."""
        self._become(FeedState.FETCHING)

    def doubt(self) -> None:
        """Note a fresh advertisement: a page that was requested before does not prove that the path is in place."""
        self._dirty = True
        if self._state is FeedState.LIVE:
            self._become(FeedState.FETCHING)

    def ask(self, request: int) -> None:
        assert self._state is FeedState.FETCHING and self.request is None, f"{self} has asked already"
        self.request = request
        self._dirty = False

    def wait_no_longer(self) -> None:
        """Note that the origin has not answered in time."""
        self.is_late = True

    def go_live(self, edge: int) -> bool:
        """Become LIVE if the cursor has reached the edge of the origin and nothing broke the path since the request."""
        if self.cursor < edge or self._dirty:
            return False
        self._become(FeedState.LIVE)
        return True

    # --- the cursor ---

    def start_at(self, offset: int) -> None:
        """Set the cursor of a feed of which nothing was given yet."""
        self.cursor, self.since = offset, None

    def start_since(self, time: int) -> None:
        """Start no later than at a time, unless the origin has resolved the start."""
        if self.since is not None:
            self.since = min(self.since, time)

    def replay(self, span: Span) -> None:
        """Read the log from the beginning of a span on, and give what is in the span as past events."""
        self.start_at(span.first)
        self.replays, self.past = True, span.end

    def advance(self, offset: int) -> None:
        """Move the cursor: everything wanted below `offset` was given, or told as a gap."""
        assert offset >= self.cursor, f"{self} cannot go back to {offset}"
        self.cursor = offset

    def pass_frontier(self, offset: int) -> None:
        """Take in a frontier: everything below it was sent. This is true only of feeds that are LIVE."""
        if self._state is FeedState.LIVE and offset > self.cursor:
            self.cursor = offset

    def is_past(self, offset: int) -> bool:
        """Return whether an offset is of the past that is replayed."""
        return self.past is not None and offset < self.past

    @property
    def is_in_past(self) -> bool:
        """Whether readers that share the feed differ in what they get at the cursor."""
        return self.reader is None and (self.since is not None or self.is_past(self.cursor))

    @property
    def is_past_over(self) -> bool:
        """Whether all that is replayed was given."""
        return self.past is not None and self.cursor >= self.past

    def part_of(self, page: Slice, edge: int) -> Slice | None:
        """Return the part of a page from the cursor on; None if the page ends before the cursor."""
        self.request = None
        self.is_late = False
        if self.past is None and (self.replays or (self.since is not None and self.reader is None)):
            self.past = page.end or edge
        if self.since is not None:
            self.since = None
            self.cursor = max(self.cursor, page.first)
        if self.cursor > page.upto:
            return None
        gap = page.gap
        if gap is not None:
            gap = Span(max(gap.first, self.cursor), gap.end) if gap.end > self.cursor else None
        if (
            page.first >= self.cursor
            and gap == page.gap
            and (page.first_offset is None or page.first_offset >= self.cursor)
        ):
            return page
        rest = [one for one in page.placed() if one.offset >= self.cursor]
        size = page.average_size * len(rest)
        offsets = tuple([one.offset for one in rest]) if page.offsets else ()
        times = tuple([one.accepted for one in rest])
        return Slice(self.cursor, tuple([one.event for one in rest]), page.upto, gap, page.reason, times, size, offsets)
