"""What comes for a client some of whose subscriptions wait for the past: effects wait for causes that wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from vestnik.broker.sequences import by_stream
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.wire.messages import Delivery

if TYPE_CHECKING:
    from vestnik.broker.clients import Subscription

MOST: Final = 10_000
"""Events that wait for their causes. Where there are more, they wait no longer."""


class Ready(NamedTuple):
    """An event that can be handed out to subscriptions, and whether it comes again."""

    event: Event
    subscriptions: list[Subscription]
    again: bool

    def numbered(self, place: int) -> Delivery:
        """As it is sent: with a number of each subscription."""
        deliveries = [one.add(self.event, place, again=self.again) for one in self.subscriptions]
        return Delivery(self.event, tuple([pair for one in deliveries for pair in one.numbers]), again=self.again)


class Behind:
    """Knows what waits for each subscription, and keeps what may not come before that."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[Pair, None]] = {}  # by subscription, events that wait for its past
        self._kept: list[Ready] = []
        self._effects: set[Pair] = set()  # of what is kept
        self._streams: set[tuple[int, Pair | None]] = set()  # of it, by subscription

    @property
    def is_over(self) -> bool:
        return not self._waiting

    def keeps_for(self, subscription: Subscription) -> bool:
        """Whether something of it waits for a cause."""
        return any(subscription in one.subscriptions for one in self._kept)

    def begins(self, subscription: Subscription) -> None:
        self._waiting.setdefault(subscription.epoch, {})

    def ends(self, subscription: Subscription) -> None:
        """What waited for its past comes now."""
        self._waiting.pop(subscription.epoch, None)

    def take(self, event: Event, subscriptions: Iterable[Subscription], *, again: bool = False) -> list[Ready]:
        """What can be handed out now, in order."""
        pair = event.source, event.id
        free: list[Subscription] = []
        for subscription in subscriptions:
            if subscription.replaying is None:
                free.append(subscription)
                continue
            subscription.replaying.await_past(event, again=again)
            waiting = self._waiting.setdefault(subscription.epoch, {})
            waiting[pair] = None
            if len(waiting) > MOST:
                del waiting[next(iter(waiting))]
        waits = self._is_effect(event)
        later = [one for one in free if waits or (one.epoch, event.stream) in self._streams]
        now = [one for one in free if one not in later]
        ready = [Ready(event, now, again)] if now else []
        if later:
            self._kept.append(Ready(event, later, again))
            self._effects.add(pair)
            self._streams.update([(one.epoch, event.stream) for one in later])
        return ready + self._release() if len(self._kept) > MOST else ready

    def _is_effect(self, event: Event) -> bool:
        """Whether it is one of what waits."""
        before = [*self._waiting.values(), self._effects]
        return any(cause in waiting for cause in event.causes for waiting in before)

    def look_again(self, subscriptions: Iterable[Subscription]) -> list[Ready]:
        """Some of the subscriptions that there are may wait no longer: what can be handed out now, in order."""
        still = {subscription.epoch for subscription in subscriptions if subscription.replaying is not None}
        self._waiting = {epoch: waiting for epoch, waiting in self._waiting.items() if epoch in still}
        return [now for one in self._release() for now in self.take(one.event, one.subscriptions, again=one.again)]

    def _release(self) -> list[Ready]:
        """All that is kept, each stream in its order and none before its causes."""
        kept, self._kept = self._kept, []
        self._effects, self._streams = set(), set()
        return [kept[place] for place in by_stream([one.event for one in kept])]
