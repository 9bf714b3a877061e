"""What somebody may do, each right bounded by a filter.

A message of a client becomes the one that it may send: what it asks for is narrowed to what it has the right to, and
what it has no right to at all is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from vestnik.errors import FilterTooComplex
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import ROOT, asks
from vestnik.wire.messages import (
    NO_PAST,
    Advertise,
    Fetch,
    Malformed,
    Message,
    Publish,
    Question,
    Refusal,
    Review,
    Subscribe,
)

EVERYTHING: Final = Filter.all()
NOTHING: Final = Filter.none()
NO_RIGHT: Final = "there is no right to publish"
EXPLAINED: Final = 10
"""Events of one Publish of which it is said why there is no right to publish them."""
OURS: Final = Filter.parse(f"type IS {ROOT}")
"""Events that brokers publish about themselves and their clients."""
THEIRS: Final = ~OURS

Filtered = TypeVar("Filtered", Subscribe, Advertise, Fetch, Review)


class Rights(Struct, frozen=True, kw_only=True):
    """The events that somebody may publish, subscribe to and see the past of; a filter may also say of which source.

    `subscriptions` are the events about subscriptions and advertisements (`type IS vestnik`) that it may see. Who may
    `administer` is told what goes on in a broker; a `broker` may be a neighbour.
    """

    publish: Filter = NOTHING
    subscribe: Filter = NOTHING
    replay: Filter = NOTHING
    subscriptions: Filter = NOTHING
    administer: bool = False
    broker: bool = False

    def permitted(self, message: Message) -> Message:
        """What is to become of a message of this client: itself, a narrower one, or a refusal."""
        match message:
            case Publish():
                return self._published(message)
            case Advertise():
                return self._narrowed(message, self.publish, "publish")
            case Subscribe():
                return self._subscribed(message)
            case Fetch():
                return self._narrowed(message, self.replay, "replay")
            case Review():
                return self._narrowed(message, self.replay, "replay")
            case Question(kind) if not self.administer:
                reason = f"there is no right to administer, which the question {kind} needs"
                return Malformed(reason, request=message.request)
        return message

    def _published(self, message: Publish) -> Publish:
        matches = self.publish.matches
        inside = tuple([event for event in message.events if matches(event)])
        if len(inside) == len(message.events):
            return message
        taken = set(map(id, inside))
        refused: list[Refusal] = []
        for event in message.events:
            if id(event) not in taken:
                reason = self._why_not(event) if len(refused) < EXPLAINED else NO_RIGHT
                refused.append(Refusal(event.id, reason, event.source))
        return replace(message, events=inside, refused=(*message.refused, *refused))

    def _why_not(self, event: Event) -> str:
        failed = ", ".join(verdict.constraint for verdict in self.publish.explain(event).failed)
        return NO_RIGHT + (f" it: that needs {failed}" if failed else "")

    def _subscribed(self, message: Subscribe) -> Message:
        """Without the right to replay it, nobody goes on from what was `seen`: that may be anything.

        Who had notifications before is told that some may be missing.
        """
        narrow = self._narrowed(message, self.subscribe, "subscribe")
        if isinstance(narrow, Malformed) or self.may_replay(narrow.filter):
            return narrow
        if narrow.epoch or not (narrow.replay or narrow.seen):
            return replace(narrow, replay=None, seen=(), made=NO_PAST)
        reason = f"there is no right to replay all of {narrow.filter}, but only {self.replay}"
        return Malformed(reason, request=message.request)

    def may_replay(self, wanted: Filter) -> bool:
        return _is_within(wanted, self.replay, self.subscriptions)

    def _narrowed(self, message: Filtered, bound: Filter, right: str) -> Filtered | Malformed:
        narrow = _within(message.filter, bound, self.subscriptions)
        if isinstance(narrow, FilterTooComplex):
            return Malformed(f"it cannot be narrowed to the right to {right}: {narrow}", request=message.request)
        if narrow == NOTHING and message.filter != NOTHING:
            allowed = "nothing" if bound == NOTHING else str(bound)
            return Malformed(f"there is no right to {right} it: {allowed} is allowed", request=message.request)
        changed: dict[str, Any] = {"filter": narrow}
        return message if narrow == message.filter else replace(message, **changed)


@lru_cache(maxsize=4096)
def _within(asked: Filter, bound: Filter, subscriptions: Filter) -> Filter | FilterTooComplex:
    """What is asked for, within a bound; where events of brokers are asked for, these within `subscriptions`.

    Renewals ask for the same again and again.
    """
    try:
        narrow = asked if bound.covers(asked) else asked & bound
        return asked & _bound(bound, subscriptions) if asks(asked) or asks(narrow) else narrow
    except FilterTooComplex as error:
        return error


@lru_cache(maxsize=4096)
def _is_within(asked: Filter, bound: Filter, subscriptions: Filter) -> bool:
    """Whether all that is asked for is within a bound, and it can be seen that it is."""
    try:
        return (_bound(bound, subscriptions) if asks(asked) else bound).covers(asked)
    except FilterTooComplex:
        return False


def _bound(bound: Filter, subscriptions: Filter) -> Filter:
    return (bound & THEIRS) | (subscriptions & OURS)
