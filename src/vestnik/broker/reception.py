"""What local clients want and offer: subscriptions and advertisements, as long as they last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from vestnik.broker.announcements import Announcements, Wish, admitted
from vestnik.broker.bearings import Bearings
from vestnik.broker.catchup import CatchUp
from vestnik.broker.clients import MOST_KEPT, Client, Subscription
from vestnik.broker.effects import Drained, Effect, Full, Gone, Lapsed, Send
from vestnik.model.filters import Filter
from vestnik.model.reserved import ADVERTISEMENT, SUBSCRIPTION
from vestnik.model.times import FOREVER
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Ask,
    Last,
    Malformed,
    NodeId,
    Position,
    Refused,
    Request,
    Subscribe,
    Took,
    Unadvertise,
    Unsubscribe,
)

Tell: TypeAlias = Callable[[float], list[Effect]]
"""Tells neighbours what they have to know by now."""


class Reception:
    """Where clients are heard. What they want enters the routing table, and neighbours are told of it at once."""

    def __init__(
        self,
        clients: dict[NodeId, Client],
        router: Router,
        bearings: Bearings,
        catch_up: CatchUp,
        announcements: Announcements | None,
        tell: Tell,
    ) -> None:
        self._clients = clients
        self._router = router
        self._bearings = bearings
        self._catch_up = catch_up
        self._announcements = announcements
        self._tell = tell

    def subscribe(self, message: Subscribe, client: NodeId, now: float) -> list[Effect]:
        unfit = self._unfit(client, message.name, message.lease, message.keep)
        if unfit:
            return _answer(client, message, Refused(message.request, unfit))
        if self._announcements is not None:
            message = admitted(message)
        known, name = self.client(client), message.name
        source, lease = Source(client, name), self._granted(message.lease)
        self._router.subscribe(source, message.filter, now + lease)
        before = known.subscriptions.get(name)
        wanted = before.filter if before else Filter.none()
        goes_on = before is not None and before.goes_on_with(message)
        if before is None or before.filter != message.filter or not goes_on:
            self._announce(SUBSCRIPTION, source, before.filter if before else None, message)
        if before is not None and before.filter != message.filter:
            self._router.unsubscribe(source, before.filter)
        if before is not None and goes_on:
            before.change(message)
        else:
            known.subscriptions[name] = Subscription(message)
        after = known.subscriptions[name]
        effects = self._tell(now)
        if after is not before:
            effects += self._catch_up.begin(source, message)
            effects += self._catch_up.look_again(client, now)
        elif wanted != after.filter:
            effects += self._catch_up.changed(source, wanted)
        else:
            effects += self._catch_up.go_on(client, [name], now)
        seen = self._bearings.seen(known, after)
        replaying = after is not before and message.replay is not None and not message.replayed
        effects += self._bearings.tell_later(client, now) if replaying or not seen else []
        if replaying or (after is not before and not after.lacks and after.replaying is None):
            seen = self._bearings.begun(after)
        accepted = Accepted(message.request, lease, after.epoch, after.last, seen, after.taken, replaying)
        if message.settled and message.request:
            return effects + self._catch_up.errands.settle(client, accepted)
        return effects + _answer(client, message, accepted)

    def unsubscribe(self, message: Unsubscribe, client: NodeId, now: float) -> list[Effect]:
        self._drop_subscription(client, message.name)
        effects = [*self._tell(now), *_answer(client, message, Accepted(message.request))]
        return effects + self._catch_up.look_again(client, now)

    def _drop_subscription(self, client: NodeId, name: str) -> None:
        subscription = self.client(client).subscriptions.pop(name, None)
        if subscription is not None:
            self._router.unsubscribe(Source(client, name), subscription.filter)
            self._announce(SUBSCRIPTION, Source(client, name), subscription.filter)

    def advertise(self, message: Advertise, client: NodeId, now: float) -> list[Effect]:
        unfit = self._unfit(client, message.name, message.lease)
        if unfit:
            return _answer(client, message, Refused(message.request, unfit))
        source, lease = Source(client, message.name), self._granted(message.lease)
        before = self._router.advertised.get(source)
        self.client(client).advertisements[message.name] = message.lease < FOREVER
        self._router.advertise(source, message.filter, now + lease)
        if before != message.filter:
            self._announce(ADVERTISEMENT, source, before, message)
        return [*self._tell(now), *_answer(client, message, Accepted(message.request, lease))]

    def unadvertise(self, message: Unadvertise, client: NodeId, now: float) -> list[Effect]:
        self._drop_advertisement(client, message.name)
        return [*self._tell(now), *_answer(client, message, Accepted(message.request))]

    def _drop_advertisement(self, client: NodeId, name: str) -> None:
        self.client(client).advertisements.pop(name, None)
        self._announce(ADVERTISEMENT, Source(client, name), self._router.advertised.get(Source(client, name)))
        self._router.unadvertise(Source(client, name))

    def _granted(self, lease: float) -> float:
        """For how long something of a client lasts unless renewed."""
        return min(lease, self._router.leases.length)

    def _unfit(self, client: NodeId, name: str, lease: float, keep: int = 0) -> str:
        """Why a client cannot have something of this name on these terms; empty where it can."""
        if client in self._router.neighbours:
            return f"{client} is the name of a neighbouring broker"
        if not lease > 0:
            return f"a lease is longer than nothing, not {lease}"
        if not 0 <= keep <= MOST_KEPT:
            return f"from 0 to {MOST_KEPT:,} notifications are kept, not {keep:,}"
        return "" if name else "it has no name"

    def malformed(self, message: Malformed, client: NodeId, now: float) -> list[Effect]:
        return _answer(client, message, Refused(message.request, message.reason))

    def ask(self, message: Ask, client: NodeId, now: float) -> list[Effect]:
        known = self.client(client)
        effects: list[Effect] = [Send(client, answer) for answer in known.answer(message.positions, now)]
        return effects + self._has(client, message.positions, now)

    def took(self, message: Took, client: NodeId, now: float) -> list[Effect]:
        subscriptions = self.client(client).subscriptions
        for position in message.positions:
            known = subscriptions.get(position.name)
            if known is not None and known.epoch == position.epoch:
                known.take(position.after)
        return self._has(client, message.positions, now)

    def _has(self, client: NodeId, positions: Iterable[Position], now: float) -> list[Effect]:
        """A client has all up to these positions: there may be room for more."""
        going_on: list[str] = []
        for position in positions:
            known = self.client(client).subscriptions.get(position.name)
            if known is not None and known.epoch == position.epoch:
                known.has(position.after)
                going_on.append(position.name)
        return self._catch_up.go_on(client, going_on, now)

    def gone(self, message: Gone, sender: NodeId, now: float) -> list[Effect]:
        """What has a lease lasts as long as it; all else ends with the connection."""
        client = self.client(message.client)
        for name in [name for name, subscription in client.subscriptions.items() if not subscription.leased]:
            self._drop_subscription(message.client, name)
        for name in [name for name, leased in client.advertisements.items() if not leased]:
            self._drop_advertisement(message.client, name)
        client.connected = client.is_full = False
        if client.is_forgotten:
            del self._clients[message.client]
        return [*self._tell(now), *self._catch_up.look_again(message.client, now)]

    def full(self, message: Full, sender: NodeId, now: float) -> list[Effect]:
        """From now on its notifications are kept, and not sent."""
        self.client(message.client).is_full = True
        return []

    def drained(self, message: Drained, sender: NodeId, now: float) -> list[Effect]:
        """It is told how far the numbers have come meanwhile, and asks for what it wants."""
        client = self.client(message.client)
        client.is_full = False
        last = [(subscription.epoch, client.told(subscription)) for subscription in client.subscriptions.values()]
        return [Send(message.client, Last(tuple(last)))]

    def client(self, name: NodeId) -> Client:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = Client()
        client.connected = True
        return client

    def expire(self, now: float) -> list[Effect]:
        """What was not renewed ends."""
        offered = self._router.advertised.copy()
        lapsed = self._router.expire(now)
        for source, wanted in lapsed:
            self._forget(source, wanted)
        for source in sorted(offered.keys() - self._router.advertised.keys()):
            self._forget_offer(source, offered[source])
        found: list[Effect] = [Lapsed(source.node, source.name, wanted) for source, wanted in lapsed]
        return found + [effect for source, _ in lapsed for effect in self._catch_up.look_again(source.node, now)]

    def _forget(self, source: Source, wanted: Filter) -> None:
        """A subscription has expired; a client that has none left and is not there is forgotten."""
        client = self._clients.get(source.node)
        subscription = client and client.subscriptions.get(source.name)
        if client and subscription and subscription.filter == wanted:
            del client.subscriptions[source.name]
            self._announce(SUBSCRIPTION, source, wanted)
            if client.is_forgotten:
                del self._clients[source.node]

    def _forget_offer(self, source: Source, offered: Filter) -> None:
        """An advertisement has expired."""
        client = self._clients.get(source.node)
        self._announce(ADVERTISEMENT, source, offered)
        if client and client.advertisements.pop(source.name, None) is not None and client.is_forgotten:
            del self._clients[source.node]

    def _announce(
        self, type: str, source: Source, before: Filter | None, after: Subscribe | Advertise | None = None
    ) -> None:
        """What a client wants or offers under a name is something else now, or nothing."""
        if self._announcements is None:
            return
        if before is not None and (after is None or before != after.filter):
            self._announcements.ended(Wish(type, *source, before))
        if after is not None:
            replay = after.replay if isinstance(after, Subscribe) else None
            self._announcements.made(Wish(type, *source, after.filter, replay))


def _answer(client: NodeId, request: Request, answer: Accepted | Refused) -> list[Effect]:
    """What a client is told, if it wants to know."""
    return [Send(client, answer)] if request.request or isinstance(answer, Refused) else []
