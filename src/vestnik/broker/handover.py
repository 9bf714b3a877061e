"""What comes late for local clients is numbered and sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vestnik.broker.behind import Ready
from vestnik.broker.clients import Client, Subscription, has_expired
from vestnik.broker.effects import Effect, Send
from vestnik.broker.recalls import Asker, Request
from vestnik.model.events import Event
from vestnik.routing.propagation import Source
from vestnik.wire.messages import Delivery, NodeId, Notify
from vestnik.wire.pages import pages


class Handover:
    """Where what was asked for leaves a broker. `places` number it in the order in which local clients get it."""

    def __init__(self, clients: Mapping[NodeId, Client], places: Iterator[int]) -> None:
        self.clients = clients
        self._places = places

    def subscriptions(self) -> Iterator[tuple[Source, Subscription]]:
        for node, client in self.clients.items():
            for name, subscription in client.subscriptions.items():
                yield Source(node, name), subscription

    def subscription(self, asker: Asker) -> Subscription | None:
        if isinstance(asker, Request) or asker.node not in self.clients:
            return None
        return self.clients[asker.node].subscriptions.get(asker.name)

    def add(self, subscription: Subscription, event: Event, **terms: Any) -> Delivery:
        return subscription.add(event, next(self._places), **terms)

    def gaps(self, subscription: Subscription, reasons: Iterable[str]) -> list[Delivery]:
        """What is missing for good."""
        return [subscription.add(None, next(self._places), gap=reason) for reason in reasons]

    def hand_out(
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
        client = self.clients.get(node)
        if client is None or client.behind is None:
            return []
        ready = client.behind.look_again(client.subscriptions.values())
        if client.behind.is_over:
            client.behind = None
        fresh = [one for one in ready if not has_expired(one.event, now)]
        return self.notify(node, [one.numbered(next(self._places)) for one in fresh])

    def notify(self, node: NodeId, deliveries: Iterable[Delivery]) -> list[Effect]:
        if not self.clients[node].takes:
            return []
        return [Send(node, Notify(page)) for page in pages(deliveries, lambda delivery: delivery.event)]
