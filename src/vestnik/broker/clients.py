"""What a broker knows of a local client: its subscriptions with their numbers, and its advertisements."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import Answer, Delivery, Gap, Message


class Subscription:
    """A filter, whether it has a lease, the last number that was given out, and the notifications that are kept."""

    def __init__(self, wanted: Filter, keep: int) -> None:
        self.filter = wanted
        self.leased = False
        self.last = 0
        self._kept: deque[tuple[int, Event]] = deque(maxlen=keep)

    def number(self, event: Event) -> int:
        """The number of a new notification."""
        self.last += 1
        self._kept.append((self.last, event))
        return self.last

    def answer(self, name: str, after: int) -> Iterator[Message]:
        """What came after a number: what is lost, then how far the numbers go and what is kept."""
        kept = [(number, event) for number, event in self._kept if number > after]
        first = kept[0][0] if kept else self.last + 1
        if first > after + 1:
            yield Gap(name, after + 1, first - 1)
        yield Answer(name, self.last, tuple([Delivery(event, ((name, number),)) for number, event in kept]))


class Client:
    """A local client, connected or not."""

    def __init__(self) -> None:
        self.connected = True
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, bool] = {}  # whether each has a lease
