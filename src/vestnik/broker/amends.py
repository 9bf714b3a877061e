"""Asks brokers for what subscriptions have missed of them, and hands it over before what came meanwhile."""

from __future__ import annotations

from collections import Counter

from vestnik.broker.catching import MakingUp
from vestnik.broker.clients import has_expired
from vestnik.broker.effects import Effect
from vestnik.broker.handover import Handover
from vestnik.broker.recalls import Asked, Recalls
from vestnik.broker.replays import EVERYTHING
from vestnik.broker.sequences import by_stream, place_of
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import Delivery, NodeId, Recall, Recalled


class Amends:
    """What subscriptions lack is known to them; here is how it comes."""

    def __init__(self, name: NodeId, recalls: Recalls, handover: Handover, router: Router) -> None:
        self._name = name
        self._recalls = recalls
        self._handover = handover
        self._router = router

    def begin(self, broker: NodeId, sources: list[Source]) -> list[Effect]:
        """Recall what these subscriptions lack of a broker."""
        lacking = [subscription for source in sources if (subscription := self._handover.subscription(source))]
        after = min(subscription.lacks[broker] for subscription in lacking)
        filters = tuple(dict.fromkeys(subscription.filter for subscription in lacking))
        recall = Recall(0, filters, EVERYTHING, after=after)
        epochs = [subscription.epoch for subscription in lacking]
        number, effects = self._recalls.ask(broker, recall, sources, epochs, replays=False)
        for source, subscription in zip(sources, lacking, strict=True):
            client = self._handover.clients[source.node]
            client.making_up = client.making_up or MakingUp()
            client.making_up.holes.add((subscription.epoch, broker))
            client.making_up.waiting.add(number)
        return effects

    def take(self, asked: Asked, message: Recalled, now: float) -> list[Effect]:
        """A part of an answer, or the rest of it."""
        self._take(asked, message)
        if not message.is_part:
            self._recalls.pop(message.number)
            return self.answered(message.number, asked, now)
        recall = asked.rest(message)
        self._recalls.advance(message.number, recall)
        return [] if message.more else self._recalls.send(asked.broker, recall)

    def _take(self, asked: Asked, message: Recalled) -> None:
        """Give what has come to the subscriptions that lack it and want it."""
        clients = self._handover.clients
        lacking = {
            source: subscription
            for source in asked.askers
            if isinstance(source, Source) and (subscription := self._handover.subscription(source))
            if subscription.epoch in asked.epochs and asked.broker in subscription.lacks
        }
        for taken in message.taken:
            for source in self._router.targets(taken.event, self._name).subscriptions:
                making_up = clients[source.node].making_up if source in lacking else None
                if making_up is not None and lacking[source].is_without(taken, asked.broker):
                    making_up.take(asked.broker, lacking[source].epoch, taken)
        for source, subscription in lacking.items():
            making_up = clients[source.node].making_up
            if making_up is not None and message.lost:
                making_up.lost.append((subscription.epoch, f"{asked.broker}: {message.lost}"))
            subscription.lacks[asked.broker] = max(message.after, subscription.lacks[asked.broker])
            if not message.is_part:
                del subscription.lacks[asked.broker]
                subscription.had.pop(asked.broker, None)
                if making_up is not None:
                    making_up.holes.discard((subscription.epoch, asked.broker))

    def answered(self, number: int, asked: Asked, now: float) -> list[Effect]:
        """A broker has sent all, or will not: with the last of them nothing is missing any more."""
        effects: list[Effect] = []
        for node in sorted({asker.node for asker in asked.askers} & self._handover.clients.keys()):
            making_up = self._handover.clients[node].making_up
            if making_up is not None and number in making_up.waiting:
                making_up.waiting.discard(number)
                effects += [] if making_up.waiting else self._made_up(node, making_up, now)
        return effects

    def _made_up(self, node: NodeId, making_up: MakingUp, now: float) -> list[Effect]:
        """What is missing for good, then what was missed and what came meanwhile; some of it was missed later.

        A broker that is out of reach again will be asked again, also for what came of it meanwhile.
        """
        client = self._handover.clients[node]
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
                deliveries += self._handover.gaps(subscriptions[epoch], [reason])
        for event, epochs, again in coming:
            wanting = [subscriptions[epoch] for epoch in epochs if epoch in subscriptions]
            if not has_expired(event, now):
                deliveries += self._handover.hand_out(client, event, wanting, again=again)
        return self._handover.notify(node, deliveries)
