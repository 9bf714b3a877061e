"""What a broker knows of a local client: its subscriptions with their numbers, and its advertisements."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import Any

from msgspec import Struct

from vestnik.broker.behind import Behind
from vestnik.broker.catching import Replaying
from vestnik.broker.missed import MakingUp
from vestnik.model.events import Event
from vestnik.model.streams import Seen, was_seen
from vestnik.model.times import FOREVER, MICROS
from vestnik.wire.messages import Answer, Delivery, Last, NodeId, Position, Subscribe, Taken, Unknown
from vestnik.wire.packing import pack, unpack
from vestnik.wire.pages import PAGE, pages

MOST_KEPT = 1_000_000
"""Notifications of a subscription."""
MOST_AWAY = 1_000
"""Brokers out of reach of which a subscription knows what it lacks: more than a network has."""
ROOM = 4_000
"""Past events that are sent to a client before it has them; a page of them at least."""


def has_expired(event: Event, now: float) -> bool:
    return event.expires is not None and event.expires <= now * MICROS


class Kept(Struct, frozen=True, gc=False):
    """A notification, with its place among all of the broker and its number in its subscription.

    Its event is packed: what lies long is not to be many objects.
    """

    place: int
    number: int
    packed: bytes | None
    expires: int | None = None
    replayed: bool = False
    gap: str = ""
    again: bool = False

    @property
    def event(self) -> Event | None:
        return None if self.packed is None else unpack(self.packed)

    def is_of(self, event: Event) -> bool:
        """Whether it is a notification of an event with this source and id."""
        if self.packed is None or event.id.encode() not in self.packed:  # which most are not
            return False
        own = unpack(self.packed)
        return own.id == event.id and own.source == event.source

    def has_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now * MICROS

    def delivery(self, *numbers: tuple[int, int]) -> Delivery:
        return Delivery(self.event, numbers, self.replayed, self.gap, self.again)


class Subscription:
    """A filter, whether it has a lease, its numbering, and the notifications that are kept.

    `lacks` are the brokers of which it may have missed something, with the position up to which it has not, and `had`
    what it had of them by then. Who is out of reach the longest comes first.
    """

    def __init__(self, message: Subscribe) -> None:
        self.epoch = message.afresh
        self.last = 0
        self.kept: deque[Kept] = deque()
        self.lacks: dict[NodeId, int] = dict(message.seen)
        self.had: dict[NodeId, Seen] = {}
        self.replaying: Replaying | None = None
        self._began_in_the_past = bool(message.seen or message.replay)
        self.taken = 0  # up to this number the application has taken all
        self._had = 0  # up to this number the client has all
        self._more = 0  # up to this number more is kept than was asked for
        self.change(message)

    @property
    def awaits_past(self) -> bool:
        """Whether some of what brokers took before it was there may still come."""
        return self._began_in_the_past and (self.replaying is not None or bool(self.lacks))

    def has_past(self) -> None:
        """All of that has come."""
        self._began_in_the_past = False

    def is_without(self, taken: Taken, broker: NodeId) -> bool:
        """Whether it may have missed what a broker took, if it wants it."""
        return taken.position > self.lacks[broker] and not was_seen(taken.event, self.had.get(broker, {}))

    def forget(self, within_reach: Container[NodeId]) -> list[str]:
        """Of brokers out of reach, forget those beyond what may be known; what is to be said of each."""
        if len(self.lacks) <= MOST_AWAY:
            return []
        away = [broker for broker in self.lacks if broker not in within_reach]
        return [self._forgotten(broker) for broker in away[: max(0, len(away) - MOST_AWAY)]]

    def _forgotten(self, broker: NodeId) -> str:
        self.had.pop(broker, None)
        since = f"it is out of reach, and so are {MOST_AWAY:,} that were within reach later"
        return f"{broker}: {since}; what it took behind position {self.lacks.pop(broker):,} may be lost"

    def goes_on_with(self, message: Subscribe) -> bool:
        """Whether a client means this numbering: it knows it, or adopts whatever there is."""
        is_known = self.epoch in (message.epoch, message.afresh)
        return is_known or (message.adopts and self.filter == message.filter)

    def change(self, message: Subscribe) -> None:
        """What the client wants may change; the numbers go on."""
        self.filter = message.filter
        self.replay = message.replay
        self.leased = message.lease < FOREVER
        self._keep = message.keep
        self.take(message.last if message.epoch == self.epoch else 0)

    def take(self, number: int) -> None:
        """The application has taken all up to a number: they are not kept any longer."""
        self.taken = max(self.taken, min(number, self.last))
        self.has(number)
        while self.kept and self.kept[0].number <= self.taken:
            self.kept.popleft()

    def has(self, number: int) -> None:
        """The client has all up to a number."""
        self._had = max(self._had, min(number, self.last))
        self._fit()

    @property
    def room(self) -> int:
        """How many past events can be sent before the client has those that were."""
        return ROOM - (self.last - self._had)

    def after(self, number: int) -> Iterator[Kept]:
        """What is kept behind a number; what is kept has consecutive numbers."""
        return islice(self.kept, max(0, number + 1 - self.kept[0].number) if self.kept else 0, None)

    def make_room(self, count: int) -> None:
        """So many come at once: keep them, beyond what was asked for, until the client has them."""
        self._more = self.last + count
        self._fit()

    def _fit(self) -> None:
        most = self._keep + max(0, self._more - max(self.taken, self._had))
        if self.kept.maxlen != most:
            self.kept = deque(self.kept, maxlen=most)

    def number(self, packed: bytes, expires: int | None, place: int) -> int:
        """The number of a new notification, whose place is among those of all subscriptions."""
        self.last += 1
        self.kept.append(Kept(place, self.last, packed, expires))
        return self.last

    def add(self, event: Event | None, place: int, **terms: Any) -> Delivery:
        """A notification that is not of an event that has just come."""
        self.last += 1
        packed, expires = (None, None) if event is None else (pack(event), event.expires)
        self.kept.append(Kept(place, self.last, packed, expires, **terms))
        return Delivery(event, ((self.epoch, self.last),), **terms)


class Client:
    """A local client, connected or not."""

    def __init__(self) -> None:
        self.connected = True
        self.is_full = False
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, bool] = {}  # whether each has a lease
        self.making_up: MakingUp | None = None
        self.behind: Behind | None = None  # where any of its subscriptions waits for the past

    @property
    def is_forgotten(self) -> bool:
        """Whether nothing is left of it."""
        return not (self.connected or self.subscriptions or self.advertisements)

    @property
    def takes(self) -> bool:
        """Whether notifications are sent to it, and not only kept."""
        return self.connected and not self.is_full

    def told(self, subscription: Subscription) -> int:
        """The last number that it is told of: where more of the past is here, that of what comes next."""
        flows = subscription.replaying is not None and subscription.replaying.flow is not None
        return subscription.last + (flows or self.making_up is not None)

    def begin_behind(self, subscription: Subscription) -> None:
        """A subscription waits for the past."""
        self.behind = self.behind or Behind()
        self.behind.begins(subscription)

    def answer(self, positions: Iterable[Position], now: float) -> Iterator[Answer | Last | Unknown]:
        """What came after these positions, each event once and in order. What has expired is not handed out.

        Where there is more than a page of it, that it goes on is said at the end.
        """
        last: list[tuple[int, int]] = []
        found: dict[int, tuple[Kept, list[tuple[int, int]]]] = {}
        for position in {position.name: position for position in positions}.values():
            subscription = self.subscriptions.get(position.name)
            if subscription is None or subscription.epoch != position.epoch:
                yield Unknown(position)
                continue
            last.append((subscription.epoch, subscription.last))
            alive = (kept for kept in subscription.after(position.after) if not kept.has_expired(now))
            for kept in islice(alive, PAGE + 1):
                found.setdefault(kept.place, (kept, []))[1].append((subscription.epoch, kept.number))
        if not last:
            return
        deliveries = [kept.delivery(*pairs) for _, (kept, pairs) in sorted(found.items())]
        page = next(pages(deliveries, lambda delivery: delivery.event), ())
        rest = deliveries[len(page) :]
        first = {epoch: number for delivery in reversed(rest) for epoch, number in delivery.numbers}
        yield Answer(tuple([(epoch, first.get(epoch, number + 1) - 1) for epoch, number in last]), page)
        if rest:
            yield Last(tuple(last))
