"""A trace as its checkers see it: who wanted and offered what from when to when, and when things had settled.

All is seen from the client's side. A subscription is active from its Subscribed record to its Unsubscribed record,
which stands where the client stops being handed anything: where the answer of its broker has come, or earlier where the
client itself passes over what comes until then. A filter that was changed in place counts beside the new one until the
change has settled. The same holds for advertisements.

What happened has settled at the next Settled record, or when the settling time, if there is one, is over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.trace.records import (
    Advertised,
    Anew,
    AnyRecord,
    Published,
    Settled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from vestnik.wire.messages import NodeId

Key: TypeAlias = tuple[str, str]
"""The source and id of an event, or a client and a name."""


class Span(NamedTuple):
    """A filter that a client has under a name, from record number `start` on, and before record number `end`."""

    client: NodeId
    name: str
    filter: Filter
    first: int  # where what goes by the name began, if maybe with another filter
    start: int
    end: int
    changed: bool = False  # at the end, to another filter of the same name


class History:
    """A trace. Records go by their number, from 0; `len(records)` stands for what is not in it any more."""

    def __init__(self, records: Sequence[AnyRecord], settling: float | None = None) -> None:
        self.records = records
        self.subscriptions = _spans(records, Subscribed, Unsubscribed)
        self.advertisements = _spans(records, Advertised, Unadvertised)
        self._subscriptions = _by_name(self.subscriptions)
        self._advertisements = _by_client(self.advertisements)
        self._published: dict[Key, list[int]] = {}
        for number, record in enumerate(records):
            if isinstance(record, Published):
                self._published.setdefault(key_of(record.event), []).append(number)
        self._settling = settling
        self._settled = [number for number, record in enumerate(records) if isinstance(record, Settled)]
        self._times = list(accumulate((record.at for record in records), max))

    def settles(self, number: int, at: float | None = None) -> int:
        """The first record by which what happened at record `number`, or is to happen at time `at`, has settled."""
        later = bisect_right(self._settled, number)
        settled = self._settled[later] if later < len(self._settled) else len(self.records)
        if self._settling is None:
            return settled
        start = self.records[number].at if at is None else at
        return min(settled, bisect_right(self._times, start + self._settling))

    def is_over(self, span: Span, number: int) -> bool:
        """Whether a span has ended at record `number`, and nothing that comes of it can be on its way any more."""
        return span.end < number and not (span.changed and number < self.settles(span.end))

    def subscription(self, client: NodeId, name: str, number: int) -> list[Span]:
        """The spans of the last subscription that a client had begun under a name before record `number`."""
        begun = [span for span in self._subscriptions.get((client, name), ()) if span.start < number]
        return [span for span in begun if span.first == begun[-1].first]

    def offered(self, client: NodeId, number: int) -> list[Span]:
        """What a client advertised at record `number`."""
        spans = self._advertisements.get(client, ())
        return [span for span in spans if span.start < number and not self.is_over(span, number)]

    def published(self, event: Event, number: int) -> list[int]:
        """The records before `number` in which an event of this identity was published."""
        return [place for place in self._published.get(key_of(event), ()) if place < number]


def key_of(event: Event) -> Key:
    return event.source, event.id


def _spans(
    records: Sequence[AnyRecord],
    begins: type[Subscribed] | type[Advertised],
    ends: type[Unsubscribed] | type[Unadvertised],
) -> list[Span]:
    """In the order in which they end; those that do not, last, in the order in which they began."""
    current: dict[Key, Span] = {}
    found: list[Span] = []
    for number, record in enumerate(records):
        if isinstance(record, begins | ends) or (isinstance(record, Anew) and begins is Subscribed):
            key = record.client, record.name
            before = current.pop(key, None)
            changed = isinstance(record, begins)
            if before is not None:
                found.append(before._replace(end=number, changed=changed))
            if isinstance(record, begins):
                first = number if before is None else before.first
                current[key] = Span(*key, record.filter, first, number, len(records))
            elif before is not None and isinstance(record, Anew):
                current[key] = before._replace(start=number)
    return [*found, *current.values()]


def _by_name(spans: Iterable[Span]) -> dict[Key, list[Span]]:
    found: dict[Key, list[Span]] = {}
    for span in spans:
        found.setdefault((span.client, span.name), []).append(span)
    return found


def _by_client(spans: Iterable[Span]) -> dict[NodeId, list[Span]]:
    found: dict[NodeId, list[Span]] = {}
    for span in spans:
        found.setdefault(span.client, []).append(span)
    return found
