"""How many events of one client may be on their way at a time: taken, and not stored and routed yet.

Events of one source are routed in the order in which they were taken. Whoever publishes with the same source as a
client that floods the broker waits for what that client has on its way, and for no more.
"""

from __future__ import annotations

from typing import Final

WAIT: Final = 0.02
"""Seconds for which others may have to wait while the events of one client are routed."""
WINDOW: Final = 512
"""Events of which the cost is remembered."""
FEWEST: Final = 4
"""Events that may be on their way, whatever they cost."""
UNKNOWN: Final = 20_000
"""Steps that the events on their way may cost while nothing is known of a client."""
KNOWN: Final = 100_000
"""Steps that they may cost if the last ones were cheap: the next ones may not be."""
LEAST: Final = 128
"""Events that may be on their way if the last ones were cheap, however many subscriptions there are."""
MOST: Final = 10_000
"""Events that may be on their way if there are few subscriptions."""


class Credit:
    """One client's. The cost of its next events is estimated by that of the last ones."""

    def __init__(self) -> None:
        self.under_way = 0
        self._events = 0.0
        self._seconds = 0.0

    def took(self, events: int) -> None:
        self.under_way += events

    def dropped(self, events: int) -> None:
        """They were not stored."""
        self.under_way -= events

    def routed(self, events: int, seconds: float) -> None:
        self.under_way -= events
        remembered = max(0.0, 1 - events / WINDOW)
        self._events = self._events * remembered + events
        self._seconds = self._seconds * remembered + seconds

    def room(self, load: int) -> int:
        """Return how many more events can be taken if routing one may cost `load` steps."""
        if not self._seconds:
            most = min(MOST, max(FEWEST, UNKNOWN // (1 + load)))
        else:
            cheap = min(MOST, max(LEAST, KNOWN // (1 + load)))
            most = min(cheap, max(FEWEST, int(WAIT * self._events / self._seconds)))
        return most - self.under_way
