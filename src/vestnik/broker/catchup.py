"""Asks brokers for what subscriptions have missed of them, and for the past.

A subscription lacks something of a broker that was out of reach, or that took events while the subscription was at
another broker, or at none. When that broker is within reach, it is asked to send again what it took since. What comes
for the subscription meanwhile waits, so that nothing comes before what it follows. A replay is the same, of all brokers
and of what they took before there was the subscription.

What is recalled comes behind the entries of the routing tables, which go the same way: what is not in the answer finds
them there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from vestnik.broker.behind import Ready
from vestnik.broker.catching import MakingUp, Replaying
from vestnik.broker.clients import Client, Subscription, has_expired
from vestnik.broker.confluence import Confluence
from vestnik.broker.effects import Effect, Send
from vestnik.broker.reach import Surroundings
from vestnik.broker.recalls import ANSWER_WITHIN, Asked, Asker, Recalls, Request
from vestnik.broker.sequences import by_stream, place_of
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import announcements, ordinary, others
from vestnik.model.streams import Arrivals
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import (
    Accepted,
    Delivery,
    Fetch,
    Fetched,
    Last,
    NodeId,
    Notify,
    Recall,
    Recalled,
    Subscribe,
)
from vestnik.wire.pages import pages
from vestnik.wire.replays import Replay

TOGETHER: Final = 500
"""Subscriptions for which one recall is made."""
EVERYTHING: Final = Replay(all=True)
BEYOND: Final = (1 << 63) - 1
"""A position that nobody comes to."""
FORGOTTEN: Final = "the broker had forgotten the subscription"


class Errand(NamedTuple):
    """What a request waits for, and what is to be done when it is there."""

    replaying: Replaying
    finish: Callable[[Replaying], list[Effect]]


class CatchUp:
    """The recalls of one broker. Numbers of recalls begin with `first`, which no earlier life has come to."""

    def __init__(
        self,
        name: NodeId,
        clients: Mapping[NodeId, Client],
        surroundings: Surroundings,
        router: Router,
        arrivals: Arrivals,
        places: Iterator[int],
        first: int = 1,
    ) -> None:
        self._name = name
        self._clients = clients
        self._surroundings = surroundings
        self._router = router
        self._arrivals = arrivals
        self._places = places
        self._recalls = Recalls(name, surroundings, first)
        self._errands: dict[Request, Errand] = {}

    # --- what begins it ---

    def begin(self, source: Source, message: Subscribe) -> list[Effect]:
        """A subscription is new: begin with what it lacks of brokers within reach, or else with what is replayed.

        Who asks for announcements is told what is open. Who had notifications before, and has not seen anything of
        what brokers took, is told that some may be missing.
        """
        client, subscription = self._clients[source.node], self._subscription(source)
        assert subscription is not None
        if subscription.lacks:
            lacking = [broker for broker in self._within_reach if broker in subscription.lacks]
            asking = [effect for broker in lacking for effect in self._make_up(broker, [source])]
            return [*asking, *self._forget(source, subscription)]
        lost = [FORGOTTEN] if message.epoch else []
        wanted, replay = message.filter, message.replay
        partial = replay is None
        if replay is None:
            wanted, replay = announcements(wanted), EVERYTHING
        if not wanted.region:
            gaps = [subscription.add(None, next(self._places), gap=reason) for reason in lost]
            return _notify(source.node, client, gaps)
        subscription.replaying = Replaying(replay, partial=partial)
        client.begin_behind(subscription)
        subscription.replaying.lost += lost
        return self._replay(source, wanted, replay)

    def changed(self, source: Source, before: Filter) -> list[Effect]:
        """A subscription wants something else than before: what is open and was not told is told."""
        subscription = self._subscription(source)
        assert subscription is not None
        wanted = announcements(subscription.filter)
        if not wanted.region or before.covers(wanted):
            return []
        if subscription.replaying is None:
            subscription.replaying = Replaying(EVERYTHING, told=before)
            self._clients[source.node].begin_behind(subscription)
        return self._replay(source, wanted, EVERYTHING)

    def fetch(self, client: NodeId, message: Fetch) -> list[Effect]:
        """A client asks for past events; it may ask again before it is answered."""
        request, wanted = Request(client, message.request), ordinary(message.filter)
        if request in self._errands:
            return []

        def finish(replaying: Replaying) -> list[Effect]:
            events = replaying.past(wanted)
            parts = [Fetched(message.request, page, more=True) for page in pages(events, lambda event: event)]
            return [Send(client, part) for part in (*parts, Fetched(message.request, (), tuple(replaying.lost)))]

        self._errands[request] = Errand(Replaying(message.replay, partial=True), finish)
        return self._replay(request, wanted, message.replay)

    def under_way(self, client: NodeId) -> set[int]:
        """The requests of a client that wait for the past."""
        return {request.number for request in self._errands if request.node == client}

    def settle(self, client: NodeId, accepted: Accepted) -> list[Effect]:
        """Tell a client that something is accepted when all brokers within reach know of what was told before.

        Each is asked for nothing. The question goes the way of what was told, and the answer comes back.
        """
        request = Request(client, accepted.request)
        self._errands[request] = Errand(Replaying(EVERYTHING, partial=True), lambda _: [Send(client, accepted)])
        nothing = Recall(0, (), EVERYTHING, after=BEYOND)
        return [
            effect for broker in self._within_reach for effect in self._ask(broker, nothing, [request], replays=True)
        ]

    def appeared(self, brokers: Iterable[NodeId]) -> list[Effect]:
        """Brokers are within reach that were not."""
        effects: list[Effect] = []
        for broker in sorted(brokers):
            lacking = [source for source, subscription in self._subscriptions() if broker in subscription.lacks]
            for start in range(0, len(lacking), TOGETHER):
                effects += self._make_up(broker, lacking[start : start + TOGETHER])
        return effects

    def vanished(self, brokers: Mapping[NodeId, int], now: float) -> list[Effect]:
        """Brokers are out of reach; what they took up to a position has come."""
        effects: list[Effect] = []
        had = {broker: self._arrivals.of(broker) for broker in brokers}
        for source, subscription in self._subscriptions():
            has_all = self._clients[source.node].making_up is None and subscription.replaying is None
            for broker, position in brokers.items():
                if broker not in subscription.lacks:
                    subscription.lacks[broker] = position
                    subscription.had |= {broker: had[broker]} if has_all else {}
            effects += self._forget(source, subscription)
        interrupted = {
            (source, broker)
            for source, subscription in self._subscriptions()
            for broker in _interrupted(subscription, brokers)
        }
        for number in self._recalls.of(brokers):
            asked = self._recalls.pop(number)
            for asker in sorted(asked.askers) if asked.replays else ():
                replaying = self._replaying(asker)
                waits = replaying is not None and number in replaying.waiting
                if replaying is not None and waits and (asker, asked.broker) not in interrupted:
                    replaying.lost.append(f"{asked.broker}: it cannot be reached")
            effects += self._answered(number, asked, now)
        return effects

    def _forget(self, source: Source, subscription: Subscription) -> list[Effect]:
        """Who has been out of reach for the longest is not waited for where there are too many."""
        client, lost = self._clients[source.node], subscription.forget(self._surroundings.positions)
        if client.making_up is not None:
            client.making_up.lost += [(subscription.epoch, reason) for reason in lost]
            return []
        if subscription.replaying is not None:
            subscription.replaying.lost += lost
            return []
        gaps = [subscription.add(None, next(self._places), gap=reason) for reason in lost]
        return _notify(source.node, client, gaps)

    def tick(self, now: float) -> list[Effect]:
        """Who does not answer for too long is not waited for: what it would have sent is lost."""
        self._recalls.forget(lambda number, asked: not self._is_awaited(number, asked))
        reason = f"it has not answered for {ANSWER_WITHIN:g} seconds"
        return [
            effect
            for number, asked in self._recalls.late(now)
            for at in [max(asked.recall.after, 0)]
            for effect in self.recalled(asked.broker, Recalled(number, (), at, at, reason), now)
        ]

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._recalls.shift(by)

    # --- what comes of it ---

    def recalled(self, broker: NodeId, message: Recalled, now: float) -> list[Effect]:
        """A broker has answered; where there is more that has to be asked for, ask."""
        asked = self._recalls.get(message.number)
        if asked is None or asked.broker != broker or asked.has(message):
            return []
        if asked.replays and not self._is_awaited(message.number, asked):
            self._recalls.pop(message.number)
            return []
        replaying = None
        for asker in asked.askers if asked.replays else ():
            replaying = self._replaying(asker)
            if replaying is not None and message.number in replaying.waiting:
                replaying.take(broker, message)
        if not asked.replays:
            self._make_up_for(asked, message)
        if message.is_part:
            recall = structs.replace(asked.recall, after=message.after, upto=message.upto)
            asked = self._recalls.advance(message.number, recall)
            if replaying is None or not replaying.can_flow:
                released = [] if replaying is None else self._release(replaying)
                return released if message.more else [*released, *self._recalls.send(broker, recall)]
            if not message.more:
                self._recalls.hold(message.number)
            return [effect for asker in asked.askers for effect in self.go_on(asker, now)]
        self._recalls.pop(message.number)
        return self._answered(message.number, asked, now)

    def _make_up_for(self, asked: Asked, message: Recalled) -> None:
        """The routing table knows which subscriptions want an event; some of these were asked for, and lack it."""
        lacking = {
            source: subscription
            for source in sorted(asked.askers)
            if isinstance(source, Source) and (subscription := self._subscription(source))
            if subscription.epoch in asked.epochs and asked.broker in subscription.lacks
        }
        for taken in message.taken:
            for source in self._router.targets(taken.event, self._name).subscriptions:
                making_up = self._clients[source.node].making_up if source in lacking else None
                if making_up is not None and lacking[source].is_without(taken, asked.broker):
                    making_up.take(asked.broker, lacking[source].epoch, taken)
        for source, subscription in lacking.items():
            making_up = self._clients[source.node].making_up
            if making_up is not None and message.lost:
                making_up.lost.append((subscription.epoch, f"{asked.broker}: {message.lost}"))
            subscription.lacks[asked.broker] = max(message.after, subscription.lacks[asked.broker])
            if not message.is_part:
                del subscription.lacks[asked.broker]
                subscription.had.pop(asked.broker, None)
                if making_up is not None:
                    making_up.holes.discard((subscription.epoch, asked.broker))

    def _answered(self, number: int, asked: Asked, now: float) -> list[Effect]:
        """A broker has sent all, or will not: with the last of them nothing is missing any more."""
        effects: list[Effect] = []
        if not asked.replays:
            for node in sorted({asker.node for asker in asked.askers} & self._clients.keys()):
                making_up = self._clients[node].making_up
                if making_up is not None and number in making_up.waiting:
                    making_up.waiting.discard(number)
                    effects += [] if making_up.waiting else self._made_up(node, making_up, now)
            return effects
        for asker in sorted(asked.askers):
            replaying = self._replaying(asker)
            if replaying is not None and number in replaying.waiting:
                replaying.waiting.discard(number)
                if isinstance(asker, Source) and replaying.can_flow:
                    if replaying.flow is not None:
                        replaying.flow.end(asked.broker)
                    effects += self.go_on(asker, now)
                else:
                    effects += self._release(replaying)
                    effects += [] if replaying.waiting else self._replayed(asker, replaying, now)
        return effects

    def _release(self, replaying: Replaying) -> list[Effect]:
        """Ask for all that was not asked for yet."""
        held = self._recalls.held(replaying.waiting)
        return [effect for number in held for effect in self._recalls.resume(number)]

    def go_on(self, asker: Asker, now: float) -> list[Effect]:
        """Hand over what there is room for of the past, and ask for more of it."""
        replaying, subscription = self._replaying(asker), self._subscription(asker)
        if replaying is None or subscription is None or not isinstance(asker, Source) or not replaying.can_flow:
            return []
        flow = replaying.flow or self._flow_of(replaying)
        if flow is None:
            return []
        deliveries = self._flown(subscription, replaying, flow, now)
        client = self._clients[asker.node]
        effects = _notify(asker.node, client, deliveries)
        for number, asked in self._recalls.held(replaying.waiting).items():
            effects += self._recalls.resume(number) if flow.wants(asked.broker) else []
        if flow.is_over:
            return effects + self._caught_up(asker, replaying, now)
        if subscription.room <= 0 and client.takes:
            effects.append(Send(asker.node, Last(((subscription.epoch, subscription.told),))))
        return effects

    def _flow_of(self, replaying: Replaying) -> Confluence | None:
        """The past, once all brokers have begun to send it."""
        open = {asked.broker for asked in self._recalls.held(replaying.waiting).values()}
        if len(open) < len(replaying.waiting):
            return None
        flow = replaying.begin_flow()
        for broker in replaying.reached.keys() - open:
            flow.end(broker)
        return flow

    def _flown(self, subscription: Subscription, replaying: Replaying, flow: Confluence, now: float) -> list[Delivery]:
        """What there is room for, numbered."""
        lost, replaying.lost = replaying.lost, []
        deliveries = [subscription.add(None, next(self._places), gap=reason) for reason in lost]
        subscription.make_room(max(0, subscription.room))
        while subscription.room > 0 and (taken := flow.next()) is not None:
            event = taken.event
            if _follows(event, replaying.newest) and subscription.filter.matches(event) and not has_expired(event, now):
                replaying.newest[event.stream] = event.seq or 0
                replayed = replaying.is_past(taken)
                deliveries.append(subscription.add(event, next(self._places), replayed=replayed, again=True))
        return deliveries

    def _caught_up(self, source: Source, replaying: Replaying, now: float) -> list[Effect]:
        """All of the past was handed over: what waits comes next, and where some of it is not here, it is recalled."""
        client, subscription = self._clients[source.node], self._subscription(source)
        assert subscription is not None
        reached = {broker: at for broker, at in sorted(replaying.reached.items()) if broker in self._within_reach}
        if replaying.is_behind and reached:
            wanted = Recall(0, (others(subscription.filter),), EVERYTHING)
            replaying.is_behind, replaying.is_later, replaying.flow = False, True, Confluence(reached)
            return [
                effect
                for broker, at in reached.items()
                for effect in self._ask(broker, structs.replace(wanted, after=at), [source], replays=True)
            ]
        subscription.replaying = None
        known = replaying.handed
        deliveries = [subscription.add(None, next(self._places), gap=reason) for reason in replaying.lost]
        live = [(event, again) for event, again in replaying.live if _follows(event, replaying.newest)]
        subscription.make_room(len(live))
        if client.behind is not None:
            client.behind.ends(subscription)
        for event, again in live:
            if place_of(event) not in known and not has_expired(event, now):
                known.add(place_of(event))
                deliveries += self._hand_out(client, event, [subscription], again=again)
        return [*_notify(source.node, client, deliveries), *self.look_again(source.node, now)]

    def _made_up(self, node: NodeId, making_up: MakingUp, now: float) -> list[Effect]:
        """What is missing for good, then what was missed and what came meanwhile; some of it was missed later.

        A broker that is out of reach again will be asked again, also for what came of it meanwhile.
        """
        client = self._clients[node]
        client.making_up = None
        subscriptions = {subscription.epoch: subscription for subscription in client.subscriptions.values()}
        coming = [(event, epochs, True) for event, epochs in making_up.missed()]
        known = {(place_of(event), epoch) for event, epochs, _ in coming for epoch in epochs}
        for event, epochs in making_up.live:
            new = [epoch for epoch in epochs if (place_of(event), epoch) not in known]
            coming.append((event, [epoch for epoch in new if not making_up.is_behind_hole(event, epoch)], False))
        coming = [coming[place] for place in by_stream([event for event, _, _ in coming])]
        counts = Counter(epoch for _, epochs, _ in coming for epoch in epochs)
        counts.update(epoch for epoch, _ in making_up.lost)
        for epoch in counts.keys() & subscriptions.keys():
            subscriptions[epoch].make_room(counts[epoch])
        deliveries: list[Delivery] = []
        for epoch, reason in making_up.lost:
            if epoch in subscriptions:
                deliveries.append(subscriptions[epoch].add(None, next(self._places), gap=reason))
        for event, epochs, again in coming:
            wanting = [subscriptions[epoch] for epoch in epochs if epoch in subscriptions]
            deliveries += self._hand_out(client, event, wanting, again=again) if not has_expired(event, now) else ()
        return _notify(node, client, deliveries)

    def _hand_out(
        self, client: Client, event: Event, subscriptions: list[Subscription], *, again: bool
    ) -> Iterator[Delivery]:
        """Number an event in these subscriptions, but for those that still wait for something."""
        ready = [Ready(event, subscriptions, again)] if subscriptions else []
        if client.behind is not None:
            ready = client.behind.take(event, subscriptions, again=again)
        for one in ready:
            yield one.numbered(next(self._places))

    def look_again(self, node: NodeId, now: float) -> list[Effect]:
        """Some subscriptions of a client wait no longer, or there are some no more: hand out what waited for them."""
        client = self._clients.get(node)
        if client is None or client.behind is None:
            return []
        ready = client.behind.look_again(client.subscriptions.values())
        if client.behind.is_over:
            client.behind = None
        fresh = [one for one in ready if not has_expired(one.event, now)]
        return _notify(node, client, [one.numbered(next(self._places)) for one in fresh])

    def _replayed(self, asker: Asker, replaying: Replaying, now: float) -> list[Effect]:
        """What is missing for good, then the past, then what came meanwhile.

        Of a stream, that is what follows the past. What came before and is not among it was not asked for, unless the
        subscription had begun before.
        """
        if isinstance(asker, Request):
            return self._errands.pop(asker).finish(replaying)
        client, subscription = self._clients[asker.node], self._subscription(asker)
        assert subscription is not None
        past = [event for event in replaying.past(subscription.filter) if not has_expired(event, now)]
        subscription.make_room(len(replaying.lost) + len(past))
        deliveries = [subscription.add(None, next(self._places), gap=reason) for reason in replaying.lost]
        replaying.lost = []
        begins, newest = replaying.told is None, replaying.newest
        for event in past:
            deliveries.append(subscription.add(event, next(self._places), replayed=True, again=begins))
            replaying.handed.add(place_of(event))
        for event in past if begins else ():
            newest[event.stream] = max(newest.get(event.stream, 0), event.seq or 0)
        return [*_notify(asker.node, client, deliveries), *self._caught_up(asker, replaying, now)]

    # --- asking ---

    @property
    def _within_reach(self) -> list[NodeId]:
        return sorted(self._surroundings.positions)

    def _replay(self, asker: Asker, wanted: Filter, replay: Replay) -> list[Effect]:
        return self._ask_all(Recall(0, (wanted,), replay), asker)

    def _ask_all(self, recall: Recall, asker: Asker) -> list[Effect]:
        return [effect for broker in self._within_reach for effect in self._ask(broker, recall, [asker], replays=True)]

    def _make_up(self, broker: NodeId, sources: list[Source]) -> list[Effect]:
        """Recall what these subscriptions lack of a broker."""
        lacking = [subscription for source in sources if (subscription := self._subscription(source))]
        after = min(subscription.lacks[broker] for subscription in lacking)
        filters = tuple(dict.fromkeys(subscription.filter for subscription in lacking))
        for source, subscription in zip(sources, lacking, strict=True):
            client = self._clients[source.node]
            client.making_up = client.making_up or MakingUp()
            client.making_up.holes.add((subscription.epoch, broker))
        return self._ask(broker, Recall(0, filters, EVERYTHING, after=after), sources, replays=False)

    def _ask(self, broker: NodeId, recall: Recall, askers: Sequence[Asker], *, replays: bool) -> list[Effect]:
        epochs = [subscription.epoch for asker in askers if (subscription := self._subscription(asker))]
        number, effects = self._recalls.ask(broker, recall, askers, epochs, replays=replays)
        for asker in askers:
            replaying = self._replaying(asker) if replays else None
            making_up = None if replays else self._clients[asker.node].making_up
            if replaying is not None:
                replaying.waiting.add(number)
                replaying.asked.add(broker)
            if making_up is not None:
                making_up.waiting.add(number)
        return effects

    # --- for whom ---

    def _subscriptions(self) -> Iterator[tuple[Source, Subscription]]:
        for node, client in self._clients.items():
            for name, subscription in client.subscriptions.items():
                yield Source(node, name), subscription

    def _subscription(self, asker: Asker) -> Subscription | None:
        if isinstance(asker, Request) or asker.node not in self._clients:
            return None
        return self._clients[asker.node].subscriptions.get(asker.name)

    def _is_awaited(self, number: int, asked: Asked) -> bool:
        """Whether somebody still wants the rest of a replay."""
        return any(r is not None and number in r.waiting for r in map(self._replaying, asked.askers))

    def _replaying(self, asker: Asker) -> Replaying | None:
        if isinstance(asker, Request):
            return self._errands[asker].replaying if asker in self._errands else None
        subscription = self._subscription(asker)
        return None if subscription is None else subscription.replaying


def _interrupted(subscription: Subscription, brokers: Iterable[NodeId]) -> list[NodeId]:
    """The brokers of which it lacks what waited for the past and is not here: all behind what they have sent of it."""
    replaying = subscription.replaying
    if replaying is None or not (replaying.is_behind or replaying.is_later):
        return []
    found = [broker for broker in brokers if broker in replaying.reached]
    for broker in found:
        subscription.lacks[broker] = replaying.interrupted(broker)
        subscription.had.pop(broker, None)
    return found


def _follows(event: Event, newest: Mapping[Pair | None, int]) -> bool:
    """Whether an event comes after the newest of its stream."""
    return event.seq is None or event.seq > newest.get(event.stream, 0)


def _notify(node: NodeId, client: Client, deliveries: list[Delivery]) -> list[Effect]:
    if not client.takes:
        return []
    return [Send(node, Notify(page)) for page in pages(deliveries, lambda delivery: delivery.event)]
