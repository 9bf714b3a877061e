"""The report of a broker about itself: its state as maps, lists, strings and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from vestnik.broker.clients import Client
from vestnik.broker.core import BrokerCore
from vestnik.model.cloudevents import from_cloudevent, to_cloudevent
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.observe.chronicle import Chronicle, Ended, Sighting
from vestnik.observe.counts import Counts
from vestnik.observe.lags import lag_of, lags
from vestnik.recovery.reader import ReaderKey
from vestnik.routing.propagation import Source
from vestnik.routing.reductions import Entry
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Origin

MOST: Final = 1_000
"""Subscriptions of a client in an answer, and entries that are looked at for the nearest."""
CLIENTS: Final = 500
"""Clients in an answer, where none is named."""
FEW_SUBSCRIPTIONS: Final = 50
"""Subscriptions of each of them."""
LOOKED_AT: Final = 10_000
"""Entries that a neighbour was told that are looked at: somebody waits for the broker meanwhile."""


def status(core: BrokerCore, begun: float, counts: Counts) -> dict[str, Any]:
    """Return what there is to see at a glance; the broker was started at the time `begun`."""
    router = core.router
    clients, behind = core.clients.values(), lags(core)
    return {
        "broker": core.name,
        "brokers": sorted(core.topology.brokers()),
        "neighbours": {n: sorted(_behind(core, n)) for n in router.neighbours},
        "entries": len(router.subscriptions),
        "advertisements": len(router.advertised),
        "clients": len(core.clients),
        "connected": sum(client.connected for client in clients),
        "full": sum(client.is_full for client in clients),
        "subscriptions": sum(len(client.subscriptions) for client in clients),
        "lagging": len(behind),
        "lag": behind[0].offsets if behind else 0,
        **counts.totals,
        "begun": begun,
    }


def clients(core: BrokerCore, name: str | None = None) -> list[dict[str, Any]]:
    """The local clients, or the one of a name, with their subscriptions and advertisements: the first of them."""
    found = islice(((n, c) for n, c in core.clients.items() if name in (None, n)), CLIENTS)
    most = FEW_SUBSCRIPTIONS if name is None else MOST
    return [
        {
            "client": n,
            "connected": client.connected,
            "full": client.is_full,
            "subscriptions": [
                {
                    "name": s,
                    "filter": str(subscription.filter),
                    "leased": subscription.leased,
                    "last": subscription.last,
                    "kept": subscription.reader.in_flight,
                    "lag": lag_of(core, (n, s)),
                }
                for s, subscription in islice(client.subscriptions.items(), most)
            ],
            "advertisements": [
                {"name": source.name, "filter": str(offered)} for source, offered in islice(_offered(core, n), most)
            ],
        }
        for n, client in found
    ]


def _offered(core: BrokerCore, client: NodeId) -> Iterator[tuple[Source, Filter]]:
    for name in core.clients[client].advertisements:
        source = Source(client, name)
        if source in core.router.advertised:
            yield source, core.router.advertised[source]


def event(
    core: BrokerCore,
    chronicle: Chronicle,
    id: str,
    source: str | None = None,
    client: str | None = None,
    given: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What became of an event here. `given` is the event itself, for brokers that have not seen it."""
    sightings = chronicle.sightings(id, source)
    known = from_cloudevent(given) if given is not None else sightings[-1].event if sightings else None
    answer: dict[str, Any] = {
        "broker": core.name,
        "begun": chronicle.begun,
        "since": chronicle.since,
        "sightings": [_sighting(core, sighting) for sighting in sightings],
        "event": None if known is None else to_cloudevent(known),
        "behind": {n: sorted(_behind(core, n)) for n in core.router.neighbours},
        "links": [[at, node, what] for at, node, what in chronicle.links],
        "ways": {} if known is None else {n: _way(core.router, n, known) for n in core.router.neighbours},
        "client": None if client is None else _client(core, chronicle, client, known),
    }
    return answer


def _behind(core: BrokerCore, neighbour: NodeId) -> frozenset[NodeId]:
    return core.topology.through(neighbour)


def _sighting(core: BrokerCore, sighting: Sighting) -> dict[str, Any]:
    return {
        "at": sighting.at,
        "sender": sighting.sender,
        "source": sighting.event.source,
        "broker": sighting.event.broker,
        "taken": sighting.taken,
        "seq": sighting.event.seq,
        "onward": list(sighting.onward),
        "notified": {c: [[_name(core.clients.get(c), e), n] for e, n in pairs] for c, pairs in sighting.notified},
        "fate": sighting.fate,
        "reason": sighting.reason,
        "accepted": sighting.accepted,
        "not_before": sighting.event.not_before,
        "expires": sighting.event.expires,
    }


def _name(client: Client | None, epoch: int) -> str | None:
    """The subscription with a numbering; None where it has ended."""
    named = {} if client is None else client.subscriptions
    return next((name for name, subscription in named.items() if subscription.epoch == epoch), None)


def _way(router: Router, neighbour: NodeId, event: Event) -> dict[str, Any]:
    """Why an event would go to a neighbour or not, and whether that was asked to send it here."""
    source = Source(neighbour)
    entries = [entry for entry, sources in router.subscriptions if source in sources]
    matching = [
        entry for entry in router.subscriptions.matching([event])[0] if source in router.subscriptions.sources(entry)
    ]
    told = router.subscriptions.told(neighbour)
    advertised: bool | None = None
    if isinstance(router, AdvertisingRouter):
        offers = [entry for entry, sources in router.advertisements if source in sources]
        advertised = any(entry.filter.matches(event) for entry in offers)
    return {
        "wants": bool(matching) or router.floods(neighbour),
        "by": str(matching[0].filter) if matching else None,
        "entries": len(entries),
        "nearest": None if matching else _nearest(entries, event),
        "asked": any(entry.filter.matches(event) for entry in islice(told, LOOKED_AT)),
        "advertised": advertised,
    }


def _nearest(entries: Iterable[Entry], event: Event) -> dict[str, Any] | None:
    """Of filters that do not match, the one that fails by the fewest constraints."""
    explained = [explained_by(entry.filter, event) for entry in islice(entries, MOST)]
    return min(explained, key=lambda one: len(one["failed"]), default=None)


def explained_by(wanted: Filter, event: Event) -> dict[str, Any]:
    """Whether a filter matches, and the fewest constraints that stand in the way."""
    explanation = wanted.explain(event)
    failed = [{"constraint": verdict.constraint, "saw": verdict.saw} for verdict in explanation.failed]
    return {"filter": str(wanted), "matches": explanation.matches, "failed": failed}


def _client(core: BrokerCore, chronicle: Chronicle, name: NodeId, event: Event | None) -> dict[str, Any] | None:
    """What is known of a client, and for each of its subscriptions whether it wants the event."""
    client = core.clients.get(name)
    ended = [one for one in chronicle.ended if one.client == name]
    happenings = [[at, what] for at, node, what in chronicle.clients if node == name]
    if client is None and not ended and not happenings:
        return None
    return {
        "connected": client is not None and client.connected,
        "full": client is not None and client.is_full,
        "subscriptions": [] if client is None else list(_subscriptions(core, client, chronicle, name, event)),
        "ended": [_ended(one, event) for one in ended],
        "happenings": happenings,
    }


def _place(core: BrokerCore, key: ReaderKey, event: Event | None) -> dict[str, Any]:
    """How far a subscription has come in the log of an event: its cursor there, and the state of its feed."""
    if event is None or event.broker is None:
        return {"log": None, "cursor": None, "state": None}
    roster = core.recovery.feeds.roster
    logs = [origin for origin in roster.logs_of(event.broker) if roster.of(key, origin) is not None]
    feed = roster.of(key, max(logs)) if logs else None
    if feed is None:
        return {"log": None, "cursor": None, "state": None}
    return {"log": str(feed.origin), "cursor": feed.cursor, "state": feed.state.name}


def _gap(core: BrokerCore, chronicle: Chronicle, key: ReaderKey, event: Event | None) -> dict[str, Any] | None:
    """Return when and why a subscription was told that it misses an event; None if it was not."""
    if event is None or event.broker is None or event.seq is None:
        return None
    log = _place(core, key, event)["log"]
    for at, client, name, gap in chronicle.gaps:
        if (client, name) == key and gap.first <= event.seq < gap.end and is_of(gap.log, log, event):
            return {"at": at, "reason": gap.reason}
    return None


def is_of(log: str, current: str | None, event: Event) -> bool:
    """Return whether an event is of a log: the current one of its broker, or one before that.

    The log of a broker without a folder starts at an offset that is the id of the log, so no earlier log has it.
    """
    if current is None or log == current:
        return log.rpartition("/")[0] == event.broker
    return log.rpartition("/")[0] == event.broker and (event.seq or 0) < Origin.parse(current).log


def _subscriptions(
    core: BrokerCore, client: Client, chronicle: Chronicle, name: NodeId, event: Event | None
) -> Iterable[dict[str, Any]]:
    made = chronicle.made.get(name, {})
    for subscribed_as, subscription in islice(client.subscriptions.items(), MOST):
        reader = subscription.reader
        kept = [number for number, one in reader.after(0) if event and _is_same(one.event, event)]
        yield {
            "name": subscribed_as,
            "since": made[subscribed_as].at if subscribed_as in made else None,
            "resumed": subscribed_as in made and made[subscribed_as].resumed,
            "last": subscription.last,
            "first_kept": reader.first_in_flight if reader.in_flight else None,
            "number": kept[0] if kept else None,
            "gap": _gap(core, chronicle, (name, subscribed_as), event),
            **_place(core, (name, subscribed_as), event),
            **({"filter": str(subscription.filter)} if event is None else explained_by(subscription.filter, event)),
        }


def _is_same(one: Event | None, other: Event) -> bool:
    return one is not None and (one.source, one.id) == (other.source, other.id)


def _ended(one: Ended, event: Event | None) -> dict[str, Any]:
    explained = {} if event is None else explained_by(one.made.filter, event)
    return {"name": one.name, "since": one.made.at, "at": one.at, "reason": one.reason, **explained}
