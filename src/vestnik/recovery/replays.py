"""Replays of several origins as one: merged in the order of time, or the last events of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import nlargest

from vestnik.model.events import Event
from vestnik.wire.origins import Origin, Slice


class Merge:
    """The pages of a replay that are here and not given yet, at most one of each origin."""

    def __init__(self) -> None:
        self._held: dict[Origin, tuple[deque[Event], int]] = {}

    def holds(self, origin: Origin) -> bool:
        return origin in self._held

    def hold(self, origin: Origin, page: Slice) -> None:
        self._held[origin] = deque(page.events), page.upto

    def drop(self, origin: Origin) -> None:
        """Forget the page of an origin; it is fetched again."""
        self._held.pop(origin, None)

    def earliest(self, origins: Iterable[Origin]) -> tuple[Origin, Event]:
        """Return the event that is next in the order of time. All these origins have a page here."""
        heads = [(self._held[origin][0][0], origin) for origin in origins]
        event, origin = min(heads, key=lambda head: (head[0].time or 0, head[1]))
        return origin, event

    def pop(self, origin: Origin) -> int | None:
        """Remove the next event of an origin. After the last one, return up to which offset its page went."""
        events, upto = self._held[origin]
        events.popleft()
        if events:
            return None
        del self._held[origin]
        return upto


class Tails:
    """The last events of each origin, until all have answered. One that becomes unreachable is left out.

    They are those before the reader was made, at the broker's own log those below `own_end`.
    """

    def __init__(self, last: int, own_end: int, origins: Iterable[Origin]) -> None:
        self.last = last
        self.own_end = own_end
        self._pages: dict[Origin, Slice | None] = dict.fromkeys(origins)

    def origins(self) -> list[Origin]:
        return list(self._pages)

    def found(self, origin: Origin, page: Slice) -> None:
        if origin in self._pages:
            self._pages[origin] = page

    def drop(self, origin: Origin) -> None:
        self._pages.pop(origin, None)

    @property
    def is_complete(self) -> bool:
        return None not in self._pages.values()

    def ends(self) -> dict[Origin, int]:
        """Return the offset of each origin at which the replay ends, and the live events start."""
        return {origin: page.upto for origin, page in self._pages.items() if page is not None}

    def latest(self) -> list[tuple[Origin, Event]]:
        """Return the last events of all origins, in the order of time."""
        every = [(origin, event) for origin, page in self._pages.items() if page is not None for event in page.events]
        key = lambda one: (one[1].time or 0, one[0], one[1].seq or 0)  # noqa: E731
        return sorted(nlargest(self.last, every, key=key), key=key)
