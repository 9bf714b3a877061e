"""Readings of a broker for Prometheus, through the gateway in its process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vestnik.gateway.metrics import Durations, Reading
from vestnik.observe.counts import MEANINGS
from vestnik.observe.histograms import Histogram
from vestnik.observe.lags import lags
from vestnik.server.process import Broker

WORST: Final = 20
"""Subscriptions whose lag is told one by one: those that lag most."""
NAMES: Final = {
    "taken": "events_taken",
    "passed": "events_passed",
    "read": "events_read",
    "forwarded": "events_forwarded",
    "notified": "notifications",
    "gaps": "gaps",
    "expired": "events_expired",
    "not_stored": "events_not_stored",
    "refused": "events_refused",
    "requests_refused": "requests_refused",
}


def readings(broker: Broker) -> Iterator[Reading | Durations]:
    """Yield all that is measured of a broker now."""
    yield from _state(broker)
    yield from _lag(broker)
    yield from _queues(broker)
    for name, total in broker.host.counts.totals.items():
        yield _one(f"{NAMES[name]}_total", MEANINGS[name], total)
    measures = broker.host.measures
    yield _durations("loop_lag_seconds", "By how much the event loop is late.", measures.loop_lag)
    if measures.fsync is not None:
        yield _durations("fsync_seconds", "How long it takes to sync the journal to disk.", measures.fsync)


def _state(broker: Broker) -> Iterator[Reading]:
    core = broker.host.core
    clients = core.clients.values()
    subscriptions = [one for client in clients for one in client.subscriptions.values()]
    in_flight = sum([one.reader.in_flight for one in subscriptions])
    yield _one("neighbours", "Brokers that it is linked with.", len(core.router.neighbours))
    yield _one("clients", "Clients that are there.", sum(client.connected for client in clients))
    yield _one("clients_full", "Clients that do not take what they are sent.", sum(one.is_full for one in clients))
    yield _one("subscriptions", "Subscriptions of its clients.", len(subscriptions))
    yield _one("in_flight", "Notifications that were sent and not taken yet.", in_flight)
    failed = float(bool(broker.failure))
    yield _one("store_failed", "1 if its disk has failed and it stores nothing any more.", failed)
    yield _one("entries", "Entries of the routing table.", len(core.router.subscriptions))


def _lag(broker: Broker) -> Iterator[Reading]:
    """Yield how far subscriptions lag, with their names only if everybody may know the names of clients."""
    found = lags(broker.host.core)
    yield _one("subscriptions_lagging", "Subscriptions that read a log behind its end.", len(found))
    worst = found[0].offsets if found else 0
    yield _one("lag_offsets", "By how many offsets the one lags that lags most.", worst)
    if broker.settings.access is None:
        values = [({"client": one.client, "subscription": one.name}, float(one.offsets)) for one in found[:WORST]]
        meaning = f"By how many offsets a subscription lags, for the {WORST} that lag most."
        yield Reading("broker_subscription_lag_offsets", meaning, values)


def _queues(broker: Broker) -> Iterator[Reading]:
    queues = broker.host.measures.queues()
    events = [({"queue": "storing"}, float(queues.storing)), ({"queue": "routing"}, float(queues.routing))]
    sockets = [({"to": "clients"}, float(queues.client_bytes)), ({"to": "neighbours"}, float(queues.neighbour_bytes))]
    yield Reading("broker_queue_events", "Events that wait to be stored, and to be routed.", events)
    yield Reading("broker_queue_bytes", "Bytes that were sent and are not out yet.", sockets)


def _one(name: str, meaning: str, value: float) -> Reading:
    return Reading(f"broker_{name}", meaning, [({}, value)])


def _durations(name: str, meaning: str, found: Histogram) -> Durations:
    return Durations(f"broker_{name}", meaning, list(found.buckets()), found.total)
