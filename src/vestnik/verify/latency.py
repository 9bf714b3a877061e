"""How long events take: from when they are accepted, or may be delivered, to when a client is handed them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import ceil
from typing import Final, NamedTuple

from vestnik.model.times import MICROS
from vestnik.trace.records import Attached, Notified, Published
from vestnik.verify.histories import History, key_of
from vestnik.wire.messages import NodeId

ALL: Final = "all"
SCOPES: Final = (ALL, "broker", "client")
RANKS: Final = (0.5, 0.9, 0.99)


class Delivery(NamedTuple):
    """A client was handed an event, at its broker where that is known, so many seconds after."""

    client: NodeId
    broker: NodeId
    seconds: float


class Percentiles(NamedTuple):
    """The least times within which half, 90 % and 99 % of the deliveries came, and all."""

    deliveries: int
    p50: float
    p90: float
    p99: float
    max: float


def deliveries(history: History, events: Collection[tuple[object, ...]] | None = None) -> Iterator[Delivery]:
    """Of these events, or of all; what is replayed is not counted."""
    homes: dict[NodeId, NodeId] = {}
    for number, record in history.of(Attached, Notified):
        match record:
            case Attached(client=client, broker=broker):
                homes[client] = broker
            case Notified(client=client, event=event, replayed=False) if events is None or key_of(event) in events:
                published = [history.records[place] for place in history.published(event, number)]
                taken = [p.at for p in published if isinstance(p, Published) and p.event.stream == event.stream]
                if taken:
                    since = max(taken[-1], (event.not_before or 0) / MICROS)
                    yield Delivery(client, homes.get(client, ""), record.at - since)


def latency(found: Iterable[Delivery]) -> dict[tuple[str, str], Percentiles]:
    """By scope and name: of all, of each broker's clients, of each client."""
    times: dict[tuple[str, str], list[float]] = {}
    for client, broker, seconds in found:
        for key in zip(SCOPES, ("", broker, client), strict=True):
            times.setdefault(key, []).append(seconds)
    return {key: percentiles(of_key) for key, of_key in sorted(times.items())}


def percentiles(times: Collection[float]) -> Percentiles:
    ordered = sorted(times)
    p50, p90, p99 = (ordered[ceil(rank * len(ordered)) - 1] for rank in RANKS)
    return Percentiles(len(ordered), p50, p90, p99, ordered[-1])
