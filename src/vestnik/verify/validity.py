"""Whether routing tables deliver what is wanted, decided by the filter algebra.

A configuration is valid (definition 2) when every broker forwards to each neighbour all that interests a client beyond
it and may be published on the own side (remote validity), and hands each local client exactly what it asked for (local
validity). It is weakly valid (definition 3) when the former holds at least for the subscriptions and advertisements
whose update has finished. A configuration that is not valid has a witness: an event that goes wrong when it is
published. What only constraints of added kinds might tell apart, and no witness is found for, is taken to be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.routing.propagation import Source
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import NodeId

Routers: TypeAlias = Mapping[NodeId, Router]
Clients: TypeAlias = Mapping[NodeId, Mapping[Source, Filter]]
"""At each broker, what its clients asked for or advertised."""

ANYBODY = Source("", "")
"""Who publishes where nobody needs to advertise."""


class Invalid(NamedTuple):
    """Published at `publisher`, the `witness` misses a subscription that wants it, or reaches one that does not.

    `link` is from a broker to the neighbour, or to the client of its own, for which its table lacks `entry`, or has it
    in excess.
    """

    rule: str
    said: str
    link: tuple[NodeId, NodeId]
    subscription: Source
    wanted: Filter
    entry: Filter
    publisher: NodeId
    witness: Event


def validity(routers: Routers, asked: Clients | None = None, offered: Clients | None = None) -> list[Invalid]:
    """What is invalid, given what clients asked for and advertised; if it is not given, the tables are believed."""
    asked = subscribed(routers) if asked is None else asked
    offered = advertised(routers) if offered is None else offered
    return [*remote_validity(routers, asked, offered), *local_validity(routers, asked)]


def weak_validity(routers: Routers, asked: Clients, finished: Clients, offered: Clients) -> list[Invalid]:
    """The same while messages are on their way: `finished` and `offered` are those whose update has ended."""
    return [*remote_validity(routers, finished, offered), *local_validity(routers, asked)]


def remote_validity(routers: Routers, asked: Clients, offered: Clients) -> Iterator[Invalid]:
    """Formula (5): for each link what is not forwarded that should be, a witness for each subscription."""
    for here, router in routers.items():
        for there in router.neighbours:
            passing = list(forwarded(router, there))
            offers = [(broker, offer) for broker in side(routers, here, there) for offer in _at(offered, broker)]
            for broker in side(routers, there, here):
                for source, wanted in asked.get(broker, {}).items():
                    yield from _missing((here, there), source, wanted, offers, passing)


def local_validity(routers: Routers, asked: Clients) -> Iterator[Invalid]:
    """Formula (6): what local clients are not handed that they want, or are handed that they do not want."""
    given = subscribed(routers)
    for broker in routers:
        there, wants = given[broker], asked.get(broker, {})
        for source in sorted(there.keys() | wants.keys()):
            handed, wanted = there.get(source, Filter.none()), wants.get(source, Filter.none())
            yield from _wrong(broker, source, wanted, handed)


def forwarded(router: Router, neighbour: NodeId) -> Iterable[Filter]:
    """Filters for all that a broker forwards to a neighbour."""
    if router.floods(neighbour):
        return [Filter.all()]
    return [entry.filter for entry, sources in router.subscriptions if Source(neighbour) in sources]


def subscribed(routers: Routers) -> Clients:
    """What the tables say that local clients want."""
    found: dict[NodeId, dict[Source, Filter]] = {}
    for broker, router in routers.items():
        wants = found[broker] = {}
        for entry, sources in router.subscriptions:
            for source in sources:
                if source.name:
                    wants[source] = wants.get(source, Filter.none()) | entry.filter
    return found


def advertised(routers: Routers) -> Clients:
    """What may be published at each broker."""
    return {broker: _publishable(router) for broker, router in routers.items()}


def _publishable(router: Router) -> Mapping[Source, Filter]:
    return router.advertised if isinstance(router, AdvertisingRouter) else {ANYBODY: Filter.all()}


def side(routers: Routers, here: NodeId, there: NodeId) -> list[NodeId]:
    """The brokers on the side of `here` of its link to `there`, the nearest first."""
    found = [here]
    for broker in found:
        found += [n for n in routers[broker].neighbours if n not in found and (broker, n) != (here, there)]
    return found


def difference(wide: Filter, narrow: Iterable[Filter]) -> Filter:
    """What of `wide` is in none of `narrow`."""
    filters = list(narrow)
    if any(other.covers(wide) for other in filters):
        return Filter.none()
    for other in filters:
        if other.overlaps(wide):
            wide = wide & ~other
    return wide


def _at(clients: Clients, broker: NodeId) -> list[Filter]:
    return list(clients.get(broker, {}).values())


def _missing(
    link: tuple[NodeId, NodeId],
    source: Source,
    wanted: Filter,
    offers: Iterable[tuple[NodeId, Filter]],
    passing: list[Filter],
) -> Iterator[Invalid]:
    lacking = difference(wanted, passing)
    for publisher, offer in offers if lacking.region else ():
        witness = (lacking & offer).example()
        if witness is not None:
            said = f"{link[0]} does not forward to {link[1]} what {_shown(source)} beyond wants: ({lacking})"
            yield Invalid("remote validity", said, link, source, wanted, lacking, publisher, witness)
            return


def _wrong(broker: NodeId, source: Source, wanted: Filter, handed: Filter) -> Iterator[Invalid]:
    link = broker, source.node
    for entry, verb, what in (
        (difference(wanted, [handed]), "does not hand", "all that"),
        (difference(handed, [wanted]), "hands", "more than"),
    ):
        witness = entry.example()
        if witness is not None:
            said = f"{broker} {verb} {_shown(source)} {what} it wants: ({entry})"
            yield Invalid("local validity", said, link, source, wanted, entry, broker, witness)


def _shown(source: Source) -> str:
    return f"{source.node}/{source.name}"
