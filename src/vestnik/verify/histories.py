"""A trace as its checkers see it: who wanted and offered what from when to when, and when things had settled.

All is seen from the client's side. A subscription is active from its Subscribed record to its Unsubscribed record,
which stands where the client stops being handed anything: where the answer of its broker has come, or earlier where the
client itself passes over what comes until then. A filter that was changed in place counts beside the new one for what
was published until the change has settled, which it does not before the client is connected. An advertisement counts
until its end has settled: what was published before may still be on its way to the broker that is to take it.

What happened has settled at the next Settled record, when all brokers are quiet and agree (`verify/quiet`), or when the
settling time, if there is one, is over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, overload

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Detached,
    Missing,
    Published,
    Quiet,
    Record,
    Rejected,
    Settled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from vestnik.verify.quiet import agreements
from vestnik.wire.messages import NodeId

Key: TypeAlias = tuple[str, str]
"""The source and id of an event, or a client and a name."""
Kind = TypeVar("Kind", bound=Record)


class Span(NamedTuple):
    """A filter that a client has under a name, from record number `start` on, and before record number `end`."""

    client: NodeId
    name: str
    filter: Filter
    first: int  # where what goes by the name began, if maybe with another filter
    start: int
    end: int
    lingers: bool = False  # counts until its end has settled


class Settlement(NamedTuple):
    """By record `number` and the time `at` something had settled; `shown` says so, unless it is the time that does."""

    number: int
    at: float
    shown: AnyRecord | None = None


START: Final = attrgetter("start")
NUMBER: Final = itemgetter(0)


class History:
    """A trace. Records go by their number, from 0; `len(records)` stands for what is not in it any more."""

    def __init__(
        self, records: Sequence[AnyRecord], settling: float | None = None, clocks: Sequence[float] | None = None
    ) -> None:
        """Of a slice of a trace, `clocks` are the latest times by each record in all of the trace."""
        self.records = records
        self.clocks = list(accumulate((record.at for record in records), max)) if clocks is None else clocks
        self._of_kind: dict[type[Record], list[tuple[int, Any]]] = {}
        for numbered in enumerate(records):
            self._of_kind.setdefault(type(numbered[1]), []).append(numbered)
        self.subscriptions = _spans(self.of(Subscribed, Unsubscribed, Missing), len(records))
        self.advertisements = _spans(self.of(Advertised, Unadvertised), len(records))
        self._subscriptions = _by_name(self.subscriptions)
        self._published = _by_event(self.of(Published))
        self._refused = _by_event(self.of(Rejected))
        self._connections: dict[NodeId, list[int]] = {}
        for number, record in self.of(Attached, Detached):
            if isinstance(record, Attached | Detached):
                self._connections.setdefault(record.client, []).append(number)
        self._settling = settling
        self.agreed = agreements(records) if self.of(Quiet) else []
        told = [number for number, _ in self.of(Settled)]
        self.settled = sorted({*told, *self.agreed})  # records by which all that happened before had settled

    @overload
    def of(self, kind: type[Kind], /) -> Sequence[tuple[int, Kind]]: ...
    @overload
    def of(self, *kinds: type[AnyRecord]) -> Sequence[tuple[int, AnyRecord]]: ...
    def of(self, *kinds: type[Record]) -> Sequence[tuple[int, Any]]:
        """Return the records of these kinds with their numbers, in order."""
        if len(kinds) == 1:
            return self._of_kind.get(kinds[0], [])
        return sorted(chain.from_iterable([self._of_kind.get(kind, []) for kind in kinds]), key=NUMBER)

    def timeless(self) -> History:
        """Return the same, in which only Settled records tell what has settled."""
        timeless = copy(self)
        timeless._settling = None
        return timeless

    def settles(self, number: int, at: float = float("-inf")) -> int:
        """The first record by which what happened at record `number`, or is to happen after it at `at`, has settled."""
        return self.settlement(number, at).number

    def settlement(self, number: int, at: float = float("-inf")) -> Settlement:
        at = max(self.clocks[number], at)
        number = max(number, bisect_left(self.clocks, at) - 1)
        later = bisect_right(self.settled, number)
        settled = self.settled[later] if later < len(self.settled) else len(self.records)
        until = float("inf") if self._settling is None else at + self._settling
        if settled < len(self.records) and self.clocks[settled] <= until:
            return Settlement(settled, self.records[settled].at, self.records[settled])
        return Settlement(bisect_right(self.clocks, until), until)

    def over(self, span: Span) -> int:
        """The record from which on nothing that comes of a span can be on its way any more."""
        if not span.lingers:
            return span.end
        said = self._connected(span.client, span.end)
        return self.settles(said) if said < len(self.records) else said

    def _connected(self, client: NodeId, number: int) -> int:
        """The first record from `number` on at which a client is connected."""
        connections = self._connections.get(client, [])
        later = bisect_right(connections, number)
        if later == 0 or isinstance(self.records[connections[later - 1]], Attached):
            return number
        return connections[later] if later < len(connections) else len(self.records)

    def subscription(self, client: NodeId, name: str, number: int) -> Span | None:
        """The last that a client had begun under a name before record `number`."""
        spans = self._subscriptions.get((client, name), ())
        begun = bisect_left(spans, number, key=START)
        return spans[begun - 1] if begun else None

    def active(self, client: NodeId, name: str, number: int, published: int) -> list[Span]:
        """What counts at record `number`, for what was published at record `published`.

        It is of the last subscription that the client had begun under the name, if that has not ended.
        """
        spans = self._subscriptions.get((client, name), [])
        begun = over = bisect_left(spans, number, key=START)
        if begun and spans[begun - 1].end < number:
            return []
        while over and spans[over - 1].first == spans[begun - 1].first and published < self.over(spans[over - 1]):
            over -= 1
        return spans[over:begun]

    def published(self, event: Event, number: int) -> list[int]:
        """The records before `number` in which an event of this identity was published."""
        return _before(self._published.get(key_of(event), []), number)

    def refused(self, event: Event, number: int) -> list[int]:
        """The records before `number` in which an event of this identity was refused."""
        return _before(self._refused.get(key_of(event), []), number)


def key_of(event: Event) -> Key:
    return event.source, event.id


def _before(places: list[int], number: int) -> list[int]:
    return places[: bisect_left(places, number)]


def _spans(records: Iterable[tuple[int, AnyRecord]], end: int) -> list[Span]:
    """In the order in which they end; those that do not, last, in the order in which they began."""
    current: dict[Key, Span] = {}
    found: list[Span] = []
    for number, record in records:
        if not isinstance(record, Subscribed | Unsubscribed | Missing | Advertised | Unadvertised):
            continue
        key = record.client, record.name
        before = current.pop(key, None)
        lingers = isinstance(record, Subscribed | Advertised | Unadvertised)
        if before is not None:
            found.append(before._replace(end=number, lingers=lingers))
        if isinstance(record, Subscribed | Advertised):
            first = number if before is None else before.first
            current[key] = Span(*key, record.filter, first, number, end)
        elif before is not None and isinstance(record, Missing):
            current[key] = before._replace(start=number)
    return [*found, *current.values()]


def _by_name(spans: Iterable[Span]) -> dict[Key, list[Span]]:
    """Each in the order in which they began."""
    found: dict[Key, list[Span]] = {}
    for span in spans:
        found.setdefault((span.client, span.name), []).append(span)
    return found


def _by_event(records: Iterable[tuple[int, Published | Rejected]]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for number, record in records:
        found.setdefault(key_of(record.event), []).append(number)
    return found
