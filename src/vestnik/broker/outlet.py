"""Sends events on: to the neighbours and the local clients that want them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vestnik.broker.clients import Client, Subscription, has_expired
from vestnik.broker.effects import Effect, Note, Send
from vestnik.model.events import Event
from vestnik.model.streams import WINDOW
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import Delivery, Forward, NodeId, Notify
from vestnik.wire.packing import pack


class Wanting(NamedTuple):
    """A local client, and those of its subscriptions that want something."""

    node: NodeId
    client: Client
    subscriptions: list[Subscription]


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
        wanting: dict[int, list[Wanting]] = {}  # by targets, which are the same for many
        for event, targets in self._router.route(going, sender):
            for neighbour in targets.neighbours:
                onward.setdefault(neighbour, []).append(event)
            if targets.subscriptions:
                clients = wanting.get(id(targets))
                if clients is None:
                    clients = wanting[id(targets)] = self._wanting(targets.subscriptions)
                self._number(event, clients, local)
        for neighbour, events in onward.items():
            whole = going is message.events and len(events) == len(going)
            effects.append(Send(neighbour, message if whole else Forward(tuple(events))))
        effects += [Send(client, Notify(tuple(deliveries))) for client, deliveries in local.items() if deliveries]
        return effects

    def _wanting(self, sources: list[Source]) -> list[Wanting]:
        """The clients of some subscriptions, each once."""
        found: dict[NodeId, Wanting] = {}
        for node, name in sources:
            client = self._clients.get(node)
            one = None if client is None else client.subscriptions.get(name)
            if client is not None and one is not None:
                found.setdefault(node, Wanting(node, client, [])).subscriptions.append(one)
        return list(found.values())

    def _number(self, event: Event, wanting: list[Wanting], local: dict[NodeId, list[Delivery]]) -> None:
        """One copy for each client, with a number for each of its subscriptions that wants the event."""
        place, packed = next(self._places), b""
        for node, client, some in wanting:
            if client.making_up is not None:
                client.making_up.wait(event, some)
            elif client.behind is not None:
                ready = [one.numbered(next(self._places)) for one in client.behind.take(event, some)]
                if client.takes:
                    local.setdefault(node, []).extend(ready)
            else:
                packed = packed or pack(event)
                numbers = tuple([(one.epoch, one.number(packed, event.expires, place)) for one in some])
                if not client.takes:
                    continue
                delivery = Delivery(event, numbers)
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
