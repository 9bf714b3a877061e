"""A client: what to send next, given what was heard.

Notifications are handed over in the order of their numbers, each once. Where numbers are missing the broker is asked
for them at once; what it no longer has is said to be lost. With a checking strategy the broker is also asked in
between, since what is lost at the end leaves no gap to be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.session.checking import Checking
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Answer,
    Ask,
    Delivery,
    Gap,
    Message,
    Notify,
    Publish,
    Refused,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

FOREVER = float("inf")
PATIENCE = 5.0
"""Seconds after which a question that was not answered is asked again."""


class Say(Struct, frozen=True):
    """Send a message to the broker."""

    message: Message


class Hand(Struct, frozen=True):
    """Hand an event to the application, for these subscriptions with these numbers."""

    event: Event
    numbers: tuple[tuple[str, int], ...]


class Lost(Struct, frozen=True):
    """Tell the application that notifications with these numbers are lost, both ends included."""

    name: str
    first: int
    last: int


class Anew(Struct, frozen=True):
    """Tell the application that the broker had forgotten a subscription: its numbers begin again at 1."""

    name: str


class Done(Struct, frozen=True):
    """Tell the application that the broker has done what it asked for, or refused it for a reason."""

    what: str
    reason: str = ""


class Alarm(Struct, frozen=True):
    """Call `wake` at this time or soon after."""

    at: float


Act: TypeAlias = Say | Hand | Lost | Anew | Done | Alarm


class _Subscription:
    """What a client knows of one of its subscriptions."""

    def __init__(self, wanted: Filter, lease: float, keep: int, checking: Checking | None) -> None:
        self.filter = wanted
        self.lease = lease
        self.keep = keep
        self.last = 0  # all up to this number was handed over or is lost
        self.early: dict[int, Event] = {}  # what came before its turn
        self.missed = 0  # how many had to be asked for since the last check
        self.checking = checking
        self.interval = checking.first if checking is not None else FOREVER
        self.check_at = FOREVER
        self.renew_at = FOREVER
        self.ask_again_at = FOREVER  # where a question is open

    @property
    def due(self) -> float:
        return min(self.check_at, self.renew_at, self.ask_again_at)


class Session:
    """One client of one broker. Subscriptions with a lease are renewed every `refresh` seconds.

    `uniform(a, b)` draws a number: strategies of checking may want one, and renewals are spread by a tenth.
    """

    def __init__(self, name: str, uniform: Callable[[float, float], float], refresh: float = FOREVER) -> None:
        self.name = name
        self._uniform = uniform
        self._refresh = refresh
        self._subscriptions: dict[str, _Subscription] = {}
        self._advertisements: dict[str, tuple[Filter, float]] = {}
        self._renew_offers_at = FOREVER

    # --- what the application wants ---

    def subscribe(
        self,
        name: str,
        wanted: Filter,
        now: float,
        *,
        lease: float = FOREVER,
        keep: int = 0,
        checking: Checking | None = None,
    ) -> list[Act]:
        """Subscribe under a name, or change the filter of the subscription that has it."""
        known = self._subscriptions.get(name)
        if known is None:
            known = self._subscriptions[name] = _Subscription(wanted, lease, keep, checking)
        known.filter = wanted
        if checking is not None:
            known.check_at = now + known.interval
        return [self._say_subscription(name, known, now), *self._alarm()]

    def unsubscribe(self, name: str) -> list[Act]:
        self._subscriptions.pop(name, None)
        return [Say(Unsubscribe(name))]

    def advertise(self, name: str, offered: Filter, now: float, *, lease: float = FOREVER) -> list[Act]:
        self._advertisements[name] = offered, lease
        if lease < FOREVER:
            self._renew_offers_at = min(self._renew_offers_at, self._next_renewal(now))
        return [Say(Advertise(name, offered, lease)), *self._alarm()]

    def unadvertise(self, name: str) -> list[Act]:
        self._advertisements.pop(name, None)
        return [Say(Unadvertise(name))]

    def publish(self, *events: Event) -> list[Act]:
        return [Say(Publish(events))]

    def resume(self, now: float) -> list[Act]:
        """Say everything again to a broker that may have forgotten it, and ask for what was missed meanwhile."""
        acts: list[Act] = [Say(Advertise(name, *offer)) for name, offer in self._advertisements.items()]
        for name, known in self._subscriptions.items():
            acts.append(self._say_subscription(name, known, now))
            acts += self._ask(name, known, now)
        return acts + self._alarm()

    # --- what is heard ---

    def handle(self, message: Message, now: float) -> list[Act]:
        match message:
            case Notify(deliveries):
                return [act for delivery in deliveries for act in self._take(delivery, now)]
            case Gap(name, _, last):
                return self._skip(name, last)
            case Answer(name, last, kept):
                return self._answered(name, last, kept, now)
            case Accepted(what, begun):
                return [*(self._begin(what) if begun else ()), Done(what)]
            case Refused(what, reason):
                return [Done(what, reason)]
        raise TypeError(f"a broker does not say {type(message).__name__} to a client")

    def _begin(self, name: str) -> list[Act]:
        """The broker numbers a subscription from 1; where it did before, it has forgotten it in between."""
        known = self._subscriptions.get(name)
        if known is None or not (known.last or known.early):
            return []
        known.last = 0
        known.early.clear()
        return [Anew(name)]

    def _take(self, delivery: Delivery, now: float) -> list[Act]:
        """Hand over what is in turn; keep what is early, and ask for what is missing before it."""
        in_turn: list[tuple[str, int]] = []
        questions: list[Act] = []
        for name, number in delivery.numbers:
            known = self._subscriptions.get(name)
            if known is None or number <= known.last:
                continue
            if number == known.last + 1:
                known.last = number
                in_turn.append((name, number))
            else:
                known.early[number] = delivery.event
                questions += self._ask(name, known, now)
        acts: list[Act] = [Hand(delivery.event, tuple(in_turn))] if in_turn else []
        for name, _ in in_turn:
            acts += self._catch_up(name)
        return acts + questions

    def _catch_up(self, name: str) -> list[Act]:
        """Hand over what came early and is in turn now."""
        known = self._subscriptions[name]
        acts: list[Act] = []
        while known.last + 1 in known.early:
            known.last += 1
            acts.append(Hand(known.early.pop(known.last), ((name, known.last),)))
        return acts

    def _ask(self, name: str, known: _Subscription, now: float) -> list[Act]:
        """Ask for what is missing, unless that was asked already."""
        if now < known.ask_again_at < FOREVER:
            return []
        known.ask_again_at = now + PATIENCE
        return [Say(Ask(name, known.last)), *self._alarm()]

    def _skip(self, name: str, last: int) -> list[Act]:
        """The broker has nothing up to `last` any more: of this, what is not here is lost for good."""
        known = self._subscriptions.get(name)
        acts: list[Act] = []
        while known is not None and known.last < last:
            next_here = min([number for number in known.early if number <= last], default=last + 1)
            if next_here > known.last + 1:
                acts.append(Lost(name, known.last + 1, next_here - 1))
                known.missed += next_here - 1 - known.last
                known.last = next_here - 1
            acts += self._catch_up(name)
        return acts

    def _answered(self, name: str, last: int, kept: tuple[Delivery, ...], now: float) -> list[Act]:
        known = self._subscriptions.get(name)
        if known is None:
            return []
        known.ask_again_at = FOREVER
        acts = self._begin(name) if last < known.last else []
        before = known.last
        for delivery in kept:
            acts += self._take(delivery, now)
        known.missed += known.last - before
        if known.checking is not None and known.check_at == FOREVER:
            known.interval = known.checking.next(known.interval, known.missed, self._uniform)
            known.missed = 0
            known.check_at = now + known.interval
        return acts + self._alarm()

    # --- time ---

    def wake(self, now: float) -> list[Act]:
        """Do what is due."""
        acts: list[Act] = []
        for name, known in self._subscriptions.items():
            if known.renew_at <= now:
                acts.append(self._say_subscription(name, known, now))
            if known.check_at <= now:
                known.check_at = FOREVER
                acts += self._ask(name, known, now)
            elif known.ask_again_at <= now:
                acts += self._ask(name, known, now)
        if self._renew_offers_at <= now:
            self._renew_offers_at = self._next_renewal(now)
            acts += [Say(Advertise(name, *o)) for name, o in self._advertisements.items() if o[1] < FOREVER]
        return acts + self._alarm()

    def _say_subscription(self, name: str, known: _Subscription, now: float) -> Say:
        if known.lease < FOREVER:
            known.renew_at = self._next_renewal(now)
        return Say(Subscribe(name, known.filter, known.lease, known.keep))

    def _next_renewal(self, now: float) -> float:
        return now + self._refresh * self._uniform(0.9, 1.0)

    def _alarm(self) -> list[Act]:
        due = min([self._renew_offers_at, *(known.due for known in self._subscriptions.values())])
        return [Alarm(due)] if due < FOREVER else []
