"""What happens at one broker, in the records of a trace.

A client counts as notified when its broker sends it what is in turn: what is sent again is not recorded again, and what
is sent early is recorded when it is in turn. Subscriptions to events of brokers themselves are left out: nobody
publishes these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import (
    Append,
    Appended,
    Drained,
    Effect,
    Full,
    Gone,
    LinkDown,
    LinkUp,
    NotAppended,
    Note,
    Send,
    Tick,
)
from vestnik.model.filters import Filter
from vestnik.model.reserved import asks
from vestnik.routing.propagation import Source
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
from vestnik.wire.messages import (
    Advertise,
    Answer,
    Delivery,
    Message,
    NodeId,
    Notify,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from vestnik.wire.origins import Routed


class Numbering:
    """How far a subscription was notified: up to which number of its broker, and of its client."""

    def __init__(self, name: str, wanted: Filter) -> None:
        self.name = name
        self.filter = wanted
        self.last = 0
        self.given = 0
        self.early: dict[int, Delivery] = {}


class Recorder:
    """Given what a broker was handed and what it wants done, says what happened."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._name = core.name
        self._numberings: dict[tuple[NodeId, int], Numbering] = {}
        self._epochs: dict[Source, int] = {}  # of the subscriptions that there are
        self._offered: dict[Source, Filter] = {}

    def attached(self, client: NodeId, now: float) -> AnyRecord:
        return Attached(now, client, self._name)

    def records(self, message: Message, sender: NodeId, effects: Sequence[Effect], now: float) -> Iterator[AnyRecord]:
        match message:
            case LinkUp(neighbour):
                yield Linked(now, self._name, neighbour)
            case LinkDown(neighbour):
                yield Cut(now, self._name, neighbour)
            case Full(client):
                yield Stalled(now, client, self._name)
            case Drained(client):
                yield Resumed(now, client, self._name)
            case Gone(client):
                yield Detached(now, client, self._name)
            case Subscribe(name):
                yield from self._subscribed(Source(sender, name), now)
            case Advertise(name):
                yield from self._advertised(Source(sender, name), now)
            case Appended(Append(client, events)):
                yield from [Published(now, client, event) for event in events if event.seq is not None]
            case NotAppended(Append(client, events), reason, False):
                yield from [Rejected(now, client, event, reason) for event in events]
        for effect in effects:
            yield from self._performed(message, effect, now)
        if isinstance(message, Unsubscribe | Unadvertise | Gone | Tick):
            yield from self._ended(now)

    def _performed(self, message: Message, effect: Effect, now: float) -> Iterator[AnyRecord]:
        match effect:
            case Send(to, going):
                yield Sent(now, self._name, to, type(going).__name__, tuple(_keys(going)))
                if isinstance(going, Notify):
                    yield from self._notified(to, going.deliveries, now)
                elif isinstance(going, Answer):
                    yield from self._notified(to, going.kept, now)
                    yield from self._lost(to, going.last, now)
            case Append(client, _, _, refused) if refused and isinstance(message, Publish):
                given = {event.id: event for event in message.events}
                yield from [Rejected(now, client, given[r.id], r.reason) for r in refused if r.id in given]
            case Note(event, _, reason):
                yield Dropped(now, self._name, event, reason)

    # --- what clients want and offer ---

    def _subscribed(self, source: Source, now: float) -> Iterator[AnyRecord]:
        client = self._core.clients.get(source.node)
        found = client and client.subscriptions.get(source.name)
        if not found:
            return
        epoch, known = found.epoch, self._epochs.get(source)
        about_brokers = asks(found.filter)
        if known is not None and (known != epoch or about_brokers):
            yield self._end(source, now)
        if about_brokers:
            return
        numbering = self._numberings.get((source.node, epoch))
        if numbering is None:
            numbering = self._numberings[source.node, epoch] = Numbering(source.name, found.filter)
            self._epochs[source] = epoch
            yield Subscribed(now, *source, found.filter)
        elif numbering.filter != found.filter:
            numbering.filter = found.filter
            yield Subscribed(now, *source, found.filter)

    def _advertised(self, source: Source, now: float) -> Iterator[AnyRecord]:
        offered = self._core.router.advertised.get(source)
        if offered is not None and offered != self._offered.get(source):
            self._offered[source] = offered
            yield Advertised(now, *source, offered)

    def _ended(self, now: float) -> Iterator[AnyRecord]:
        """What is not there any more."""
        for source in list(self._epochs):
            client = self._core.clients.get(source.node)
            if client is None or source.name not in client.subscriptions:
                yield self._end(source, now)
        for source in [source for source in self._offered if source not in self._core.router.advertised]:
            del self._offered[source]
            yield Unadvertised(now, *source)

    def _end(self, source: Source, now: float) -> AnyRecord:
        del self._numberings[source.node, self._epochs.pop(source)]
        return Unsubscribed(now, *source)

    # --- notifications ---

    def _notified(self, client: NodeId, deliveries: Sequence[Delivery], now: float) -> Iterator[AnyRecord]:
        for delivery in deliveries:
            for epoch, number in delivery.numbers:
                numbering = self._numberings.get((client, epoch))
                if numbering is not None and number > numbering.last:
                    numbering.early[number] = delivery
                    yield from self._in_turn(client, numbering, now)

    def _in_turn(self, client: NodeId, numbering: Numbering, now: float) -> Iterator[AnyRecord]:
        while (delivery := numbering.early.pop(numbering.last + 1, None)) is not None:
            numbering.last += 1
            if delivery.gap is not None:
                yield Missing(now, client, numbering.name, delivery.gap.reason)
            elif delivery.event is not None:
                numbering.given += 1
                yield Notified(now, client, delivery.event, ((numbering.name, numbering.given),))

    def _lost(self, client: NodeId, last: Sequence[tuple[int, int]], now: float) -> Iterator[AnyRecord]:
        """What was asked for and is not among what is there will not come."""
        for epoch, number in last:
            numbering = self._numberings.get((client, epoch))
            while numbering is not None and numbering.last < number:
                upto = min([number, *(early - 1 for early in numbering.early)])
                first, lost = numbering.given + 1, upto - numbering.last
                numbering.last, numbering.given = upto, numbering.given + lost
                yield Lost(now, client, numbering.name, first, numbering.given)
                yield from self._in_turn(client, numbering, now)


def _keys(message: Message) -> Iterator[tuple[str, str]]:
    """The sources and ids of the events that a message carries."""
    match message:
        case Routed(_, events):
            yield from [(event.source, event.id) for event in events]
        case Notify(deliveries) | Answer(kept=deliveries):
            yield from [(delivery.event.source, delivery.event.id) for delivery in deliveries if delivery.event]
