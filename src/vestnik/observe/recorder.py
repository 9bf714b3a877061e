"""Records of a trace about one broker.

A client counts as notified when its broker sends it what is in turn: what is sent again is not recorded again, and what
is sent early is recorded when it is in turn. Subscriptions to events of brokers themselves are left out: nobody
publishes these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vestnik.broker.effects import (
    Drained,
    Full,
    Gone,
    LinkDown,
    LinkUp,
    Note,
    OfferEnded,
    OfferMade,
    SubscriptionChanged,
    SubscriptionEnded,
    SubscriptionMade,
)
from vestnik.model.reserved import asks
from vestnik.observe.facts import (
    ClientHere,
    Fact,
    Forwarded,
    Given,
    GivenAgain,
    NotStored,
    PublicationRefused,
    RequestRefused,
    Said,
    Stored,
)
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Cut,
    Detached,
    Dropped,
    Linked,
    Lost,
    Missing,
    Notified,
    Published,
    Rejected,
    Resumed,
    Sent,
    Stalled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from vestnik.wire.messages import Delivery, NodeId, each_of


class Numbering:
    """How far a subscription was notified: up to which number of its broker, and of its client."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last = 0
        self.given = 0
        self.early: dict[int, Delivery] = {}


class Recorder:
    """Makes records of the facts about the broker `name`."""

    def __init__(self, name: NodeId) -> None:
        self._name = name
        self._numberings: dict[tuple[NodeId, int], Numbering] = {}
        self._epochs: dict[tuple[NodeId, str], int] = {}  # of the subscriptions that there are

    def records(self, facts: Sequence[Fact], now: float) -> Iterator[AnyRecord]:
        for fact in facts:
            yield from self._of_fact(fact, now)

    def _of_fact(self, fact: Fact, now: float) -> Iterator[AnyRecord]:
        match fact:
            case Stored() | NotStored() | PublicationRefused() | Note():
                yield from event_records(fact, self._name, now)
            case Forwarded(to, routed):
                keys = tuple([(event.source, event.id) for event in routed.events])
                yield Sent(now, self._name, to, "Routed", keys)
            case Given(client, deliveries):
                yield Sent(now, self._name, client, "Notify", _keys(deliveries))
                yield from self._notified(client, deliveries, now)
            case GivenAgain(client, last, deliveries):
                yield Sent(now, self._name, client, "Answer", _keys(deliveries))
                yield from self._notified(client, deliveries, now)
                yield from self._lost(client, last, now)
            case Said(to, kind):
                yield Sent(now, self._name, to, kind)
            case RequestRefused(client):
                yield Sent(now, self._name, client, "Refused")
            case SubscriptionMade() | SubscriptionChanged() | SubscriptionEnded():
                yield from self._of_subscription(fact, now)
            case OfferMade(client, name, offered):
                yield Advertised(now, client, name, offered)
            case OfferEnded(client, name):
                yield Unadvertised(now, client, name)
            case _:
                yield from self._of_presence(fact, now)

    def _of_presence(self, fact: Fact, now: float) -> Iterator[AnyRecord]:
        match fact:
            case ClientHere(client):
                yield Attached(now, client, self._name)
            case Gone(client):
                yield Detached(now, client, self._name)
            case Full(client):
                yield Stalled(now, client, self._name)
            case Drained(client):
                yield Resumed(now, client, self._name)
            case LinkUp(neighbour):
                yield Linked(now, self._name, neighbour)
            case LinkDown(neighbour):
                yield Cut(now, self._name, neighbour)

    def _of_subscription(
        self, fact: SubscriptionMade | SubscriptionChanged | SubscriptionEnded, now: float
    ) -> Iterator[AnyRecord]:
        key = fact.client, fact.name
        if not isinstance(fact, SubscriptionEnded) and not asks(fact.filter):
            if isinstance(fact, SubscriptionMade):
                self._epochs[key] = fact.epoch
                self._numberings[fact.client, fact.epoch] = Numbering(fact.name)
                yield Subscribed(now, *key, fact.filter, fact.replay, fact.since, fact.seen)
            elif key in self._epochs:
                yield Subscribed(now, *key, fact.filter)
        elif key in self._epochs:
            self._numberings.pop((fact.client, self._epochs.pop(key)), None)
            yield Unsubscribed(now, *key, fact.seen if isinstance(fact, SubscriptionEnded) else ())

    # --- notifications ---

    def _notified(self, client: NodeId, deliveries: Sequence[Delivery], now: float) -> Iterator[AnyRecord]:
        for delivery in each_of(deliveries):
            for epoch, number in delivery.numbers:
                numbering = self._numberings.get((client, epoch))
                if numbering is not None and number > numbering.last:
                    numbering.early[number] = delivery
                    yield from self._in_turn(client, numbering, now)

    def _in_turn(self, client: NodeId, numbering: Numbering, now: float) -> Iterator[AnyRecord]:
        while (delivery := numbering.early.pop(numbering.last + 1, None)) is not None:
            numbering.last += 1
            if delivery.gap is not None:
                gap = delivery.gap
                yield Missing(now, client, numbering.name, gap.reason, gap.log, gap.first, gap.end)
            elif delivery.event is not None:
                numbering.given += 1
                event, numbers = delivery.event, ((numbering.name, numbering.given),)
                yield Notified(now, client, event, numbers, delivery.replayed, answered=event.seq is None)

    def _lost(self, client: NodeId, last: Sequence[tuple[int, int]], now: float) -> Iterator[AnyRecord]:
        """Yield the notifications that a client asked for and that the broker no longer has."""
        for epoch, number in last:
            numbering = self._numberings.get((client, epoch))
            while numbering is not None and numbering.last < number:
                upto = min([number, *(early - 1 for early in numbering.early)])
                first, lost = numbering.given + 1, upto - numbering.last
                numbering.last, numbering.given = upto, numbering.given + lost
                yield Lost(now, client, numbering.name, first, numbering.given)
                yield from self._in_turn(client, numbering, now)


def event_records(
    fact: Stored | NotStored | PublicationRefused | Note, broker: NodeId, now: float
) -> Iterator[AnyRecord]:
    """Yield what a broker accepted and may go further, what it refused, and what it dropped."""
    match fact:
        case Stored(client, events, time):
            yield from [Published(now, client, event, time) for event in events if event.seq is not None]
        case NotStored(client, events, reason, False):
            yield from [Rejected(now, client, event, reason) for event in events]
        case PublicationRefused(client, events, refusals):
            reasons = {(refusal.source, refusal.id): refusal.reason for refusal in refusals}
            yield from [Rejected(now, client, event, reasons[event.source, event.id]) for event in events]
        case Note(event, _, reason):
            yield Dropped(now, broker, event, reason)


def _keys(deliveries: Iterable[Delivery]) -> tuple[tuple[str, str], ...]:
    """Return the sources and ids of the events of notifications."""
    return tuple([(event.source, event.id) for one in deliveries for event in one.events])
