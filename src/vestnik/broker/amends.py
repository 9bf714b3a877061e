"""Asks brokers for what subscriptions have missed of them, and hands it over as the client takes it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from vestnik.broker.clients import Client, Subscription, has_expired
from vestnik.broker.effects import Effect, Send
from vestnik.broker.handover import Handover
from vestnik.broker.missed import MakingUp
from vestnik.broker.reach import Surroundings
from vestnik.broker.recalls import Asked, Recalls
from vestnik.broker.replays import EVERYTHING
from vestnik.model.events import Event
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import UNBOUND, Delivery, Last, NodeId, Recall, Recalled


class Amends:
    """What subscriptions lack is known to them; here is how it comes.

    One recall is made for many. A client that has not taken what is here of it does not get the rest of it: the others
    do not wait for it, and it is asked for again when there is room.
    """

    def __init__(self, recalls: Recalls, handover: Handover, surroundings: Surroundings, router: Router) -> None:
        self._recalls = recalls
        self._handover = handover
        self._surroundings = surroundings
        self._router = router

    def begin(self, broker: NodeId, sources: list[Source]) -> list[Effect]:
        """Recall what these subscriptions lack of a broker. Who wants all that there is does not hear what is lost."""
        found = [(source, self._handover.clients[source.node].subscriptions[source.name]) for source in sources]
        for source, subscription in found:
            client = self._handover.clients[source.node]
            client.making_up = client.making_up or MakingUp(self._surroundings.position_of)
            client.making_up.ask(broker, subscription)
        bound = [one for one in found if one[1].lacks[broker] != UNBOUND]
        unbound = [one for one in found if one[1].lacks[broker] == UNBOUND]
        return [effect for some in (bound, unbound) if some for effect in self._recall(broker, some)]

    def _recall(self, broker: NodeId, lacking: list[tuple[Source, Subscription]]) -> list[Effect]:
        sources, subscriptions = [source for source, _ in lacking], [subscription for _, subscription in lacking]
        after = min(subscription.lacks[broker] for subscription in subscriptions)
        filters = tuple(dict.fromkeys(subscription.filter for subscription in subscriptions))
        recall = Recall(0, filters, EVERYTHING, after=after)
        epochs = [subscription.epoch for subscription in subscriptions]
        return self._recalls.ask(broker, recall, sources, epochs, replays=False)[1]

    def take(self, asked: Asked, message: Recalled, now: float) -> list[Effect]:
        """A part of an answer, or the rest of it; who has room for more stays with it."""
        broker, number = asked.broker, message.number
        lacking = self._lacking(asked)
        self._take(broker, lacking, message)
        effects: list[Effect] = []
        for node in sorted({source.node for source in lacking}):
            effects += self.go_on(node, now)
        staying: list[Source] = []
        for source, (subscription, making_up) in lacking.items():
            if message.more or making_up.wants(broker):
                staying.append(source)
            elif message.is_part:
                making_up.hold(broker, subscription)
        if not message.is_part or not staying:
            self._recalls.pop(number)
            return effects
        self._recalls.advance(number, asked.rest(message), staying)
        return effects if message.more else effects + self._recalls.send(broker, asked.rest(message))

    def _lacking(self, asked: Asked) -> dict[Source, tuple[Subscription, MakingUp]]:
        """Those for whom something was asked, if they lack it still."""
        found: dict[Source, tuple[Subscription, MakingUp]] = {}
        for source in sorted(asked.askers):
            subscription = self._handover.subscription(source)
            if subscription is None or not isinstance(source, Source) or subscription.epoch not in asked.epochs:
                continue
            making_up = self._handover.clients[source.node].making_up
            if making_up is not None and asked.broker in subscription.lacks:
                found[source] = subscription, making_up
        return found

    def _take(self, broker: NodeId, lacking: dict[Source, tuple[Subscription, MakingUp]], message: Recalled) -> None:
        """Give what has come to those that lack it and want it; what is lost is known at the end of a part."""
        for taken in message.taken:
            for source in self._router.targets(taken.event, self._recalls.name).subscriptions:
                subscription, making_up = lacking.get(source, (None, None))
                if subscription is not None and making_up is not None and subscription.is_without(taken, broker):
                    making_up.take(broker, subscription, taken)
        for subscription, making_up in lacking.values():
            making_up.lost += [(subscription, f"{broker}: {message.lost}")] if message.lost else []
            if not message.more:
                subscription.lacks[broker] = max(message.after, subscription.lacks[broker])
            if not message.is_part:
                making_up.end(broker, subscription)

    def vanished(self, brokers: list[NodeId], now: float) -> list[Effect]:
        """Brokers are out of reach again."""
        effects: list[Effect] = []
        for node, client in self._handover.clients.items():
            if client.making_up is not None:
                for broker in brokers:
                    client.making_up.lose(broker)
                effects += self.go_on(node, now)
        return effects

    def go_on(self, node: NodeId, now: float) -> list[Effect]:
        """Hand over what there is room for of what was missed, ask for more of it, and at last what came meanwhile."""
        client = self._handover.clients.get(node)
        making_up = None if client is None else client.making_up
        if client is None or making_up is None:
            return []
        names = {subscription: Source(node, name) for name, subscription in client.subscriptions.items()}
        making_up.look(names.keys())
        effects = self._handover.notify(node, self._flown(client, making_up, now))
        for broker, held in sorted(making_up.held.items()):
            if held and making_up.wants(broker):
                effects += self.begin(broker, sorted(names[subscription] for subscription in held))
        if making_up.is_over:
            client.making_up = None
            return effects
        full = [one for one in names if one in making_up.concerned and one.room <= 0 and one.replaying is None]
        if full and client.takes:
            effects.append(Send(node, Last(tuple([(one.epoch, client.told(one)) for one in full]))))
        return effects

    def _flown(self, client: Client, making_up: MakingUp, now: float) -> list[Delivery]:
        """What is missing for good, and then what there is room for, numbered; nothing waits for room in the end."""
        there = set(client.subscriptions.values())
        lost, making_up.lost = making_up.lost, []
        deliveries = [gap for one, reason in lost if one in there for gap in self._handover.gaps(one, [reason])]
        for found in _fitting(making_up):
            deliveries += self._numbered(client, *found, now)
        if making_up.is_late:
            for one, number in making_up.waiting().items():
                one.make_room(number)
            while late := making_up.next():
                deliveries += self._numbered(client, *late, now)
        return deliveries

    def _numbered(
        self, client: Client, event: Event, subscriptions: list[Subscription], again: bool, now: float
    ) -> Iterator[Delivery]:
        """An event for those of these subscriptions that are there, and want it still."""
        there = [one for one in client.subscriptions.values() if one in subscriptions]
        wanting = [one for one in there if one.filter.matches(event)]
        if wanting and not has_expired(event, now):
            yield from self._handover.hand_out(client, event, wanting, again=again)


def _fitting(making_up: MakingUp) -> Iterator[tuple[Event, list[Subscription], bool]]:
    """What comes next, as long as all that lack something have room for it and anything is missing."""
    concerned = [one for one in making_up.concerned if one.replaying is None]
    while room := max(0, min([one.room for one in concerned], default=sys.maxsize)):
        for one in concerned:
            one.make_room(room)
        for _ in range(room):
            found = None if making_up.is_late else making_up.next()
            if found is None:
                return
            yield found
