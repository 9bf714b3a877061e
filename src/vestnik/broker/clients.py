"""What a broker knows of a local client: its subscriptions with their numbers, and its advertisements."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.wire.messages import Answer, Delivery, Last, Position, Subscribe, Unknown

FOREVER = float("inf")
MOST_KEPT = 1_000_000
"""Notifications of a subscription."""
PAGE = 500
"""Notifications in a message, at most."""
MICROS = 1_000_000


def has_expired(event: Event, now: float) -> bool:
    return event.expires is not None and event.expires <= now * MICROS


class Kept(NamedTuple):
    """A notification, with its place among all of the broker and its number in its subscription."""

    place: int
    number: int
    event: Event
    replayed: bool


class Subscription:
    """A filter, whether it has a lease, its numbering, and the notifications that are kept."""

    def __init__(self, message: Subscribe) -> None:
        self.epoch = message.afresh
        self.last = 0
        self.kept: deque[Kept] = deque()
        self.backlog: list[Event] | None = None if message.replay is None else []  # what comes while it is replayed to
        self.change(message)

    def change(self, message: Subscribe) -> None:
        """What the client wants may change; the numbers go on."""
        self.filter = message.filter
        self.replay = message.replay
        self.leased = message.lease < FOREVER
        self.kept = deque(self.kept, maxlen=message.keep)

    def make_room(self, count: int) -> None:
        """Keep so many more than were asked for: they come all at once."""
        self.kept = deque(self.kept, maxlen=(self.kept.maxlen or 0) + count)

    def number(self, event: Event, place: int, *, replayed: bool = False) -> int:
        """The number of a new notification, whose place is among those of all subscriptions."""
        self.last += 1
        self.kept.append(Kept(place, self.last, event, replayed))
        return self.last


class Client:
    """A local client, connected or not."""

    def __init__(self) -> None:
        self.connected = True
        self.is_full = False
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, bool] = {}  # whether each has a lease

    @property
    def is_forgotten(self) -> bool:
        """Whether nothing is left of it."""
        return not (self.connected or self.subscriptions or self.advertisements)

    @property
    def takes(self) -> bool:
        """Whether notifications are sent to it, and not only kept."""
        return self.connected and not self.is_full

    def answer(self, positions: Iterable[Position], now: float) -> Iterator[Answer | Last | Unknown]:
        """What came after these positions, each event once and in order. What has expired is not handed out.

        Where there is more than a page of it, that it goes on is said at the end.
        """
        last: list[tuple[int, int]] = []
        found: dict[int, tuple[Event, list[tuple[int, int]], bool]] = {}
        for position in {position.name: position for position in positions}.values():
            subscription = self.subscriptions.get(position.name)
            if subscription is None or subscription.epoch != position.epoch:
                yield Unknown(position)
                continue
            last.append((subscription.epoch, subscription.last))
            for place, number, event, replayed in subscription.kept:
                if number > position.after and not has_expired(event, now):
                    found.setdefault(place, (event, [], replayed))[1].append((subscription.epoch, number))
        if not last:
            return
        kept = [Delivery(event, tuple(pairs), replayed) for _, (event, pairs, replayed) in sorted(found.items())]
        page, rest = kept[:PAGE], kept[PAGE:]
        first = {epoch: number for delivery in reversed(rest) for epoch, number in delivery.numbers}
        yield Answer(tuple([(epoch, first.get(epoch, number + 1) - 1) for epoch, number in last]), tuple(page))
        if rest:
            yield Last(tuple(last))
