"""What brokers say about logs: who is reachable, how far each log was sent, and pages of the past.

A log is what the clients of one broker published, in the order in which the broker accepted it. An event is addressed
by its origin, a log, and its offset there, which is the `seq` of the event.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import Message, NodeId

ENDLESS: Final = (1 << 63) - 1
"""The end of a span of which nobody knows the end."""


class Origin(NamedTuple):
    """A log: the broker that keeps it, and the id of the log. A later log of the same broker has a greater id."""

    broker: NodeId
    log: int

    def __str__(self) -> str:
        return f"{self.broker}/{self.log}"


class Span(NamedTuple):
    """The offsets from `first` on that are below `end`."""

    first: int
    end: int


class Offer(NamedTuple):
    """An advertisement at an origin. Each time it is made it has another `number`."""

    number: int
    filter: Filter


class ReadTerms(Struct, frozen=True, array_like=True):
    """What to read of a log: events from offset `start` on that match any of the filters, at most `limit` of them.

    With `since`, reading starts after the last event that was accepted before that time. With `last`, the last events
    before that place are read instead, so many at most.
    """

    start: int
    filters: tuple[Filter, ...]
    limit: int
    since: int | None = None
    last: int = 0


class Slice(Struct, frozen=True, array_like=True):
    """A part of a log: reading started at offset `first`, and all below `upto` that was wanted is here.

    The log has the events in the `gap` no more; the gap comes before the events.
    """

    first: int
    events: tuple[Event, ...]
    upto: int
    gap: Span | None = None


class OriginHere(Message, frozen=True, tag=26):
    """An origin can be reached through the sender, and clients there advertise these offers."""

    origin: Origin
    offers: frozenset[Offer] = frozenset()


class OriginGone(Message, frozen=True, tag=27):
    """An origin cannot be reached through the sender any more."""

    origin: Origin


class OriginOffers(Message, frozen=True, tag=28):
    """The offers at an origin have changed to these."""

    origin: Origin
    offers: frozenset[Offer]


class Routed(Message, frozen=True, tag=29):
    """Live events of one origin, in the order of their offsets."""

    origin: Origin
    events: tuple[Event, ...]


class Frontiers(Message, frozen=True, tag=30):
    """Everything below these offsets that the receiver asked for was sent before."""

    offsets: tuple[tuple[Origin, int], ...]


class FetchPage(Message, frozen=True, tag=31):
    """Read a part of the log of an origin. `path` is the brokers between, in order from the one that asks."""

    origin: Origin
    request: int
    terms: ReadTerms
    path: tuple[NodeId, ...] = ()


class PageRead(Message, frozen=True, tag=23):
    """The answer to FetchPage. Everything below `edge` was routed by the origin before this was sent."""

    origin: Origin
    request: int
    page: Slice
    edge: int
    path: tuple[NodeId, ...] = ()
