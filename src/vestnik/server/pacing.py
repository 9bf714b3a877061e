"""How fast connections are read from: not while a client is ahead of what it may publish, or something comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container

from vestnik.server.limits import Limits
from vestnik.transport.ends import End
from vestnik.wire.messages import NodeId


class Pace:
    """So many events a second in the long run, and a `burst` at once. Time comes in."""

    def __init__(self, rate: int, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left = float(burst)
        self._at = now

    def take(self, events: int, now: float) -> float:
        """Seconds after which there may be more."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate) - events
        self._at = now
        return max(0.0, -self._left / self._rate)


class Pacing:
    """Decides whether connections are read from.

    They are not while they are ahead, while they do not read themselves, and while a message of theirs is prepared or
    events of theirs wait to be routed.

    `resumed` is called when one is not ahead any more: until then it could not be heard.
    """

    def __init__(self, limits: Limits, loop: asyncio.AbstractEventLoop, resumed: Callable[[End], None]) -> None:
        self.is_limited = limits.publish_rate is not None  # how much a client may publish
        self._rate = limits.publish_rate
        self._burst = limits.publish_burst or limits.publish_rate or 0
        self._loop = loop
        self._resumed = resumed
        self._paces: dict[NodeId, Pace] = {}
        self._ahead: dict[End, asyncio.TimerHandle] = {}
        self._full: set[End] = set()
        self._preparing: set[End] = set()
        self._behind: set[End] = set()

    def is_unheard(self, end: End) -> bool:
        """Return whether this broker does not read from this end at the moment."""
        return end in self._ahead or end in self._preparing or end in self._behind or end.is_behind

    def published(self, client: NodeId, end: End, events: int) -> None:
        if self._rate is None:
            return
        pace = self._paces.get(client)
        if pace is None:
            pace = self._paces[client] = Pace(self._rate, self._burst, self._loop.time())
        wait = pace.take(events, self._loop.time())
        if wait > 0:
            self._cancel(end)
            self._ahead[end] = self._loop.call_later(wait, self._may_go_on, end)
            end.pause()

    def full(self, end: End) -> None:
        """It does not read what it is sent."""
        self._full.add(end)
        end.pause()

    def drained(self, end: End) -> None:
        self._full.discard(end)
        self._go_on(end)

    def preparing(self, end: End) -> None:
        """Read no further messages from this end until `prepared`."""
        self._preparing.add(end)
        end.pause()

    def prepared(self, end: End) -> None:
        self._preparing.discard(end)
        self._resumed(end)
        self._go_on(end)

    def behind(self, end: End) -> None:
        """Read no further messages from this end until it has `caught_up`."""
        self._behind.add(end)
        end.pause()

    def caught_up(self, end: End) -> None:
        if end in self._behind:
            self._behind.discard(end)
            self._resumed(end)
            self._go_on(end)

    def closed(self, end: End) -> None:
        self._cancel(end)
        self._full.discard(end)
        self._preparing.discard(end)
        self._behind.discard(end)

    def forget(self, here: Container[NodeId]) -> None:
        """Know nothing of clients that are not here any more. Whoever comes again at once goes on as it was."""
        self._paces = {client: pace for client, pace in self._paces.items() if client in here}

    def _may_go_on(self, end: End) -> None:
        del self._ahead[end]
        self._resumed(end)
        self._go_on(end)

    def _go_on(self, end: End) -> None:
        if not any(end in those for those in (self._ahead, self._full, self._preparing, self._behind)):
            end.resume()

    def _cancel(self, end: End) -> None:
        timer = self._ahead.pop(end, None)
        if timer is not None:
            timer.cancel()
