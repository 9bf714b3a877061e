"""Replays: a subscription that asked for the past is given it, and then what comes.

What is replayed comes before what is live, and of the last k there are no more than k. Whatever was accepted after the
first that is replayed comes too, replayed or live, when it has settled: between the past and what comes there is no
gap. Where fewer are replayed than were asked for, there are no others. What has expired need not come. An event that
was accepted at two brokers counts at either place: the brokers that picked the last k may have sent only the later one.

This is claimed where all was connected and had settled before the client subscribed, and nothing disturbs the network
or the client until that has settled, too. How long that takes depends on how much there is: only Settled records tell.
With advertisements it is claimed of the past alone: what comes is bound by other rules. That it comes once, in order
and matches, is demanded of all notifications.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vestnik.model.times import MICROS
from vestnik.trace.records import AnyRecord, Notified, Published, Subscribed
from vestnik.verify.connections import Connections
from vestnik.verify.histories import History, Span, key_of
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named


class Begun(NamedTuple):
    """A subscription that began with a replay: the last so many or all, what it was handed by a record, and as what."""

    span: Span
    last: int | None
    due: int
    handed: list[Notified]


def replays(history: History, since: float = ALWAYS, *, advertisements: bool = False) -> Iterator[Violation]:
    """What is wrong with replays of all, or of the last ones, asked for from time `since` on."""
    history = history.timeless()
    connections = Connections(history)
    for span in history.subscriptions:
        begun = _begun(history, connections, span)
        if begun is not None and history.records[span.start].at >= since:
            yield from _in_order(history, begun)
            yield from _whole(history, begun, span.start if advertisements else begun.due)


def _begun(history: History, connections: Connections, span: Span) -> Begun | None:
    subscribed = history.records[span.start]
    if not isinstance(subscribed, Subscribed) or span.first != span.start or subscribed.replay is None:
        return None
    due = history.settles(span.start)
    is_calm = connections.is_calm(span.client, span.start, due)
    if not is_calm or due >= span.end or subscribed.replay.since is not None or subscribed.replay.latest_by is not None:
        return None
    handed = [
        record
        for record in history.records[span.start : due]
        if isinstance(record, Notified) and record.client == span.client and span.name in dict(record.numbers)
    ]
    return Begun(span, subscribed.replay.bound, due, handed)


def _in_order(history: History, begun: Begun) -> Iterator[Violation]:
    live: dict[str | None, Notified] = {}  # by the broker that accepted it
    for record in begun.handed:
        if not record.replayed:
            live.setdefault(record.event.broker, record)
        elif record.event.broker in live:
            said = "was replayed after what is live"
            yield _violation(history, begun, record, said, live[record.event.broker])
    replayed = [record for record in begun.handed if record.replayed]
    if begun.last is not None and len(replayed) > begun.last:
        yield _violation(history, begun, replayed[begun.last], f"was replayed beyond the last {begun.last}")


def _whole(history: History, begun: Begun, before: int) -> Iterator[Violation]:
    """Yield events that were accepted before a record, should have come and did not.

    An expired event may be one of the last that were picked, even if it was accepted after the client subscribed.
    """
    end = history.records[begun.due].at
    wanted, expired = [], 0
    for number, record in history.of(Published):
        if number < begun.due and begun.span.filter.matches(record.event):
            if record.event.expires is not None and record.event.expires / MICROS <= end:
                expired += 1
            elif number < before and history.settles(number) <= begun.due:
                wanted.append(record)
    places: dict[tuple[str, ...], list[Published]] = {}  # an event that was published at two brokers is one
    for record in wanted:
        places.setdefault(key_of(record.event), []).append(record)
    replayed = [key_of(record.event) for record in begun.handed if record.replayed]
    first = min([places[place][-1].at for place in replayed if place in places], default=end)
    if begun.last is None or len(replayed) + expired < begun.last:
        first = ALWAYS
    handed = {key_of(record.event) for record in begun.handed}
    for place, accepted in places.items():
        if accepted[0].at > first and place not in handed:
            yield _violation(history, begun, accepted[0], "was not among what was replayed")


def _violation(
    history: History, begun: Begun, record: Published | Notified, what: str, *others: AnyRecord
) -> Violation:
    said = f"{named(record.event)} {what} to {begun.span.client} for {begun.span.name}"
    records = (history.records[begun.span.start], *others, record)
    return Violation("replays", said, begun.span.client, begun.span.name, record.event, records)
