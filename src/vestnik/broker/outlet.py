"""Sends events on: to the neighbours and the local clients that want them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vestnik.broker.clients import Client, Subscription, has_expired
from vestnik.broker.effects import Effect, Note, Send
from vestnik.model.events import Event
from vestnik.model.streams import WINDOW
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import Delivery, Forward, NodeId, Notify


class Outlet:
    """Where events leave a broker. `places` number them in the order in which local clients get them."""

    def __init__(self, router: Router, clients: Mapping[NodeId, Client], places: Iterator[int]) -> None:
        self._router = router
        self._clients = clients
        self._places = places

    def route(self, message: Forward, sender: NodeId, now: float) -> list[Effect]:
        """Send events on to where they are wanted: a batch as one."""
        effects: list[Effect] = []
        going: Sequence[Event] = message.events
        if any(event.seldom is not None for event in going):
            effects += [Note(event, sender, "expired") for event in going if has_expired(event, now)]
            going = _by_priority([event for event in going if not has_expired(event, now)])
        onward: dict[NodeId, list[Event]] = {}
        local: dict[NodeId, list[Delivery]] = {}
        for event, (neighbours, subscriptions) in self._router.route(going, sender):
            for neighbour in neighbours:
                onward.setdefault(neighbour, []).append(event)
            if subscriptions:
                self._number(event, subscriptions, local)
        for neighbour, events in onward.items():
            whole = going is message.events and len(events) == len(going)
            effects.append(Send(neighbour, message if whole else Forward(tuple(events))))
        effects += [Send(client, Notify(tuple(deliveries))) for client, deliveries in local.items() if deliveries]
        return effects

    def _number(self, event: Event, sources: list[Source], local: dict[NodeId, list[Delivery]]) -> None:
        """One copy for each client, with a number for each of its subscriptions that wants the event."""
        place = next(self._places)
        wanting: dict[NodeId, list[Subscription]] = {}
        for node, name in sources:
            client = self._clients.get(node)
            one = None if client is None else client.subscriptions.get(name)
            if one is None:
                continue
            if node in wanting:
                wanting[node].append(one)
            else:
                wanting[node] = [one]
        for node, some in wanting.items():
            client = self._clients[node]
            if client.making_up is not None:
                client.making_up.wait(event, some)
            elif client.behind is not None:
                ready = [one.numbered(next(self._places)) for one in client.behind.take(event, some)]
                if client.takes:
                    local.setdefault(node, []).extend(ready)
            else:
                delivery = Delivery(event, tuple([(one.epoch, one.number(event, place)) for one in some]))
                if not client.takes:
                    continue
                if node in local:
                    local[node].append(delivery)
                else:
                    local[node] = [delivery]


def _by_priority(events: list[Event]) -> list[Event]:
    """The more urgent events first, equally urgent ones in their order; none before what it names as its cause.

    None overtakes so many that these would be taken for duplicates.
    """
    if len({event.priority for event in events}) == 1 or any(event.causes for event in events):
        return events
    pieces = [events[start : start + WINDOW // 2] for start in range(0, len(events), WINDOW // 2)]
    return [event for piece in pieces for event in sorted(piece, key=lambda event: -event.priority)]
