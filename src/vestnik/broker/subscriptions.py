"""The subscriptions of local clients: how they begin, change, are renewed and end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vestnik.broker.announcements import Announcements, admitted, wishes
from vestnik.broker.clients import Client, Clients, Subscription
from vestnik.broker.effects import (
    Effect,
    Send,
    SubscriptionChanged,
    SubscriptionEnded,
    SubscriptionMade,
    Tell,
)
from vestnik.broker.outlet import Outlet
from vestnik.broker.settling import Settling, answer
from vestnik.model.filters import Filter
from vestnik.model.reserved import SUBSCRIPTION, asks
from vestnik.model.times import MICROS
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.readers import Start
from vestnik.recovery.reads import FUTURE
from vestnik.recovery.recovery import Recovery
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import (
    NO_PAST,
    Accepted,
    Ask,
    Gap,
    NodeId,
    Position,
    Refused,
    Subscribe,
    Took,
    Unsubscribe,
)
from vestnik.wire.origins import Origin
from vestnik.wire.replays import Replay

UNSUBSCRIBED: Final = "unsubscribed"
DISCONNECTED: Final = "its client disconnected, and it had no lease"
LAPSED: Final = "its lease ended: it was not renewed"
BEGUN_AGAIN: Final = "its client has begun it again"
FORGOTTEN: Final = "the broker had forgotten the subscription, and its client has no cursors"
SKEW: Final = 0.25
"""Seconds by which the clocks of brokers may differ, for events of brokers that cannot be asked."""


class Subscriptions:
    """The subscriptions of all local clients. They enter the routing table, and neighbours are told of it at once."""

    def __init__(
        self,
        clients: Clients,
        router: Router,
        recovery: Recovery,
        outlet: Outlet,
        settling: Settling,
        announcements: Announcements | None,
        tell: Tell,
        skew: float = SKEW,
    ) -> None:
        self._clients = clients
        self._router = router
        self._recovery = recovery
        self._outlet = outlet
        self._settling = settling
        self._announcements = announcements
        self._tell = tell
        self._skew = skew

    # --- made and renewed ---

    def subscribe(self, message: Subscribe, client: NodeId, now: float) -> list[Effect]:
        unfit = self._clients.unfit(client, message.name, message.lease, message.window)
        cursors = {} if unfit else cursors_of(message.seen)
        if unfit or cursors is None:
            return answer(client, message, Refused(message.request, unfit or "seen is not of the form broker/log"))
        if self._announcements is not None:
            message = admitted(message)
        known, source = self._clients.heard(client), Source(client, message.name)
        lease = self._clients.granted(message.lease)
        before = known.subscriptions.get(message.name)
        old = None if before is None else before.filter
        goes_on = before is not None and before.goes_on_with(message)
        self._router.subscribe(source, message.filter, now + lease)
        if old is not None and old != message.filter:
            self._router.unsubscribe(source, old)
        if old != message.filter or not goes_on:
            self._announce(source, old, message)
        effects = self._tell(now)
        if before is not None and goes_on:
            effects += self._renewed(source, before, message, now)
        else:
            effects += [] if before is None else [self._ended(source, BEGUN_AGAIN)]
            effects += self._begin(known, source, message, cursors, now)
        if self._announcements is not None and asks(message.filter) and not (goes_on and old == message.filter):
            effects += self._ask_what_is_open(source, message.filter, self._announcements, now)
        return effects + self._accept(source, message, lease, now)

    def _begin(
        self, client: Client, source: Source, message: Subscribe, cursors: dict[Origin, int], now: float
    ) -> list[Effect]:
        """Begin a subscription that is new here: at the cursors of its client, with a replay, or now."""
        replay = message.replay
        made = self._start_of(replay, now) if message.made in (0, NO_PAST) else message.made
        is_past = replay is not None and not replay.picks
        reader = Reader(
            source,
            message.filter,
            made,
            message.window,
            replays=is_past,
            past_since=replay.since if replay is not None and is_past else None,
            takes=client.takes,
            epoch=message.afresh,
        )
        client.subscribe(source.name, Subscription(message, reader))
        at, until = int(now * MICROS), int((now + self._skew) * MICROS)
        if cursors:
            start = Start(at, cursors)
        elif message.made and replay is not None and replay.picks:
            start = Start(message.made, None, replay, message.made, is_again=True)
        else:
            start = Start(at, None, replay, until)
        if message.epoch and not cursors and replay is None:
            self._recovery.feeds.giving.tell(reader, Gap("", 0, 0, FORGOTTEN), force=True)
        self._recovery.readers.begin(reader, start)
        resumed, seen = bool(message.epoch), message.seen
        begun = SubscriptionMade(*source, message.filter, message.afresh, resumed, replay, made, seen)
        effects = [begun, *self._outlet.perform(self._recovery.moved())]
        if replay is not None and replay.picks:
            effects += self._settling.when_met(lambda: self._pick(reader), now)
        return effects

    def _pick(self, reader: Reader) -> list[Effect]:
        """Begin to pick what is replayed, unless the subscription has ended."""
        if self._recovery.feeds.readers.get(reader.key) is reader:
            self._recovery.feeds.replaying.pick(reader.key)
        return self._outlet.perform(self._recovery.moved())

    def _start_of(self, replay: Replay | None, now: float) -> int:
        """Return from when on logs are read that are not known yet."""
        if replay is None or replay.picks:
            return int((now - self._skew) * MICROS)
        return 1 if replay.since is None else max(1, replay.since - FUTURE)

    def _renewed(self, source: Source, before: Subscription, message: Subscribe, now: float) -> list[Effect]:
        """Go on with a subscription, maybe with another filter.

        A client that has no right to the past gets nothing by the new filter that was accepted before: its cursors may
        be far in the past.
        """
        before.renew(message)
        changed: list[Effect] = []
        if before.filter != message.filter:
            since = int(now * MICROS) if message.made == NO_PAST else None
            self._recovery.readers.change(source, message.filter, since)
            changed = [SubscriptionChanged(*source, message.filter)]
        self._recovery.readers.made_room(source)
        return [*changed, *self._outlet.perform(self._recovery.moved())]

    def _ask_what_is_open(
        self, source: Source, wanted: Filter, announcements: Announcements, now: float
    ) -> list[Effect]:
        """Let a subscription know what is open at the clients of all brokers."""
        opened = announcements.open([wanted], wishes(self._clients.known, self._router.advertised), now)
        effects = self._outlet.tell([(source, event) for event in opened], is_past=True)
        return effects + announcements.ask(source, wanted, self._recovery.topology, now)

    def _accept(self, source: Source, message: Subscribe, lease: float, now: float) -> list[Effect]:
        """Answer a subscription with how far it has come; if it is to be settled, when all brokers know of it."""

        def accept(missing: Iterable[str] = ()) -> list[Effect]:
            client = self._clients.known.get(source.node)
            if client is None or source.name not in client.subscriptions:
                return []
            return [Send(source.node, self._outlet.accepted(source, message.request, lease, tuple(missing)))]

        if not message.request:
            return []
        return self._settling.when_settled(accept, now) if message.settled else accept()

    # --- ended ---

    def unsubscribe(self, message: Unsubscribe, client: NodeId, now: float) -> list[Effect]:
        ended = self._drop(client, message.name, UNSUBSCRIBED)
        return [*ended, *self._tell(now), *answer(client, message, Accepted(message.request))]

    def left(self, client: NodeId) -> list[Effect]:
        """End the subscriptions without a lease of a client that is not connected any more."""
        subscriptions = self._clients.known[client].subscriptions
        names = [name for name, subscription in subscriptions.items() if not subscription.leased]
        return [effect for name in names for effect in self._drop(client, name, DISCONNECTED)]

    def _drop(self, client: NodeId, name: str, reason: str) -> list[Effect]:
        subscription = self._clients.heard(client).unsubscribe(name)
        if subscription is None:
            return []
        source = Source(client, name)
        self._router.unsubscribe(source, subscription.filter)
        self._announce(source, subscription.filter)
        ended = self._ended(source, reason)
        self._recovery.readers.end(source)
        return [ended]

    def lapsed(self, source: Source, wanted: Filter) -> list[Effect]:
        """End a subscription that the router has not any more, because it was not renewed."""
        client = self._clients.known.get(source.node)
        subscription = client and client.subscriptions.get(source.name)
        if not client or not subscription or subscription.filter != wanted:
            return []
        client.unsubscribe(source.name)
        ended = self._ended(source, LAPSED)
        self._recovery.readers.end(source)
        self._announce(source, wanted)
        self._clients.forget(source.node)
        return [ended]

    def _ended(self, key: ReaderKey, reason: str) -> Effect:
        cursors = self._recovery.feeds.cursors(key)
        return SubscriptionEnded(*key, reason, tuple([(str(origin), offset) for origin, offset in cursors.items()]))

    def _announce(self, source: Source, before: Filter | None, after: Subscribe | None = None) -> None:
        if self._announcements is not None:
            self._announcements.changed(SUBSCRIPTION, source, before, after)

    # --- what was taken ---

    def ask(self, message: Ask, client: NodeId, now: float) -> list[Effect]:
        """Send again what a client has missed."""
        answers = [Send(client, answer) for answer in self._clients.heard(client).answer(message.positions, now)]
        return [*answers, *self._took(client, [(position, position.taken) for position in message.positions])]

    def took(self, message: Took, client: NodeId, now: float) -> list[Effect]:
        return self._took(client, [(position, position.after) for position in message.positions])

    def _took(self, client: NodeId, taken: Iterable[tuple[Position, int]]) -> list[Effect]:
        """Give a client more of the subscriptions of which its application has taken everything up to a number."""
        subscriptions = self._clients.heard(client).subscriptions
        for position, number in taken:
            known = subscriptions.get(position.name)
            if known is not None and known.epoch == position.epoch:
                self._recovery.readers.took(known.reader, number)
        return self._outlet.perform(self._recovery.moved())


def cursors_of(seen: Iterable[tuple[str, int]]) -> dict[Origin, int] | None:
    """Return the cursors of a client; None if they are not of the form broker/log."""
    try:
        return {Origin.parse(text): offset for text, offset in seen}
    except ValueError:
        return None
