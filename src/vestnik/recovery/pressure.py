"""Whether publishers have to wait: a reader that makes progress would lose events otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vestnik.recovery.roster import Roster
from vestnik.recovery.tail import Tail
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Origin, ReadTerms, Slice

FAR: Final = 0.5
"""The share of the memory for events by which a reader may lag before publishers have to wait."""
MANY: Final = 100
"""Readers that lag and are looked at whenever somebody publishes."""
LOOK_EVERY: Final = 0.005
"""Seconds after which more of them are looked at again."""


class Pressure:
    """Watches who reads the `own` log, here and at other brokers.

    A reader that has taken or read nothing for `stalled` seconds is not waited for. `clock` returns the time.
    """

    def __init__(self, own: Origin, tail: Tail, roster: Roster, stalled: float, clock: Callable[[], float]) -> None:
        self._own = own
        self._tail = tail
        self._roster = roster
        self._stalled = stalled
        self._clock = clock
        self._elsewhere: dict[tuple[NodeId, int], tuple[int, float]] = {}  # where feeds of others read, and when
        self._looked_at = (0.0, False)  # when slow readers were looked at, and what was found

    def note_read(self, broker: NodeId, feed: int, terms: ReadTerms, page: Slice | None) -> None:
        """Note where a feed of another broker reads; one that has come to the end gets live events."""
        if feed and (page is None or page.upto < self._tail.routed):
            self._elsewhere[broker, feed] = terms.start, self._clock()
        else:
            self._elsewhere.pop((broker, feed), None)

    def is_on(self, now: float) -> bool:
        """Return whether publishers have to wait. If many readers lag, they are looked at now and then."""
        lagging = self._roster.apart(self._own)
        if not lagging and not self._elsewhere:
            return False  # as it mostly is
        far = self._tail.far_before(FAR) if self._tail.is_whole else 0
        if not far:
            return False
        if len(lagging) > MANY and 0 <= now - self._looked_at[0] < LOOK_EVERY:
            return self._looked_at[1]
        since, readers = now - self._stalled, self._roster.readers
        self._elsewhere = {feed: one for feed, one in self._elsewhere.items() if one[1] > since}
        is_on = any(start < far for start, _ in self._elsewhere.values()) or any(
            feed.cursor < far and feed.is_fetching and readers[key].moved_at > since for key, feed in lagging.items()
        )
        self._looked_at = now, is_on
        return is_on

    def shift(self, by: float) -> None:
        """Move the times of reads, as the clock was."""
        self._elsewhere = {feed: (start, at + by) for feed, (start, at) in self._elsewhere.items()}
