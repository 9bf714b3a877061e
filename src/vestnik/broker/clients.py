"""What a broker knows of a local client: its subscriptions with their numbers, and its advertisements."""

from __future__ import annotations

from collections import deque

from vestnik.model.events import Event
from vestnik.wire.messages import Answer, Delivery, Subscribe

FOREVER = float("inf")
MICROS = 1_000_000


def has_expired(event: Event, now: float) -> bool:
    return event.expires is not None and event.expires <= now * MICROS


class Subscription:
    """A filter, whether it has a lease, its numbering, and the notifications that are kept."""

    def __init__(self, message: Subscribe) -> None:
        self.epoch = message.afresh
        self.last = 0
        self._kept: deque[tuple[int, Event]] = deque()
        self.change(message)

    def change(self, message: Subscribe) -> None:
        """What the client wants may change; the numbers go on."""
        self.filter = message.filter
        self.leased = message.lease < FOREVER
        self._kept = deque(self._kept, maxlen=message.keep)

    def number(self, event: Event) -> int:
        """The number of a new notification."""
        self.last += 1
        self._kept.append((self.last, event))
        return self.last

    def answer(self, after: int, now: float) -> Answer:
        """What came after a number. What has expired is not handed out any more."""
        kept = [(number, event) for number, event in self._kept if number > after and not has_expired(event, now)]
        return Answer(self.epoch, self.last, tuple([Delivery(event, ((self.epoch, n),)) for n, event in kept]))


class Client:
    """A local client, connected or not."""

    def __init__(self) -> None:
        self.connected = True
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, bool] = {}  # whether each has a lease

    @property
    def is_forgotten(self) -> bool:
        """Whether nothing is left of it."""
        return not (self.connected or self.subscriptions or self.advertisements)
