"""Kept: whatever happens, what is accepted is handed to those who want it, in the end.

Liveness speaks of times in which nothing disturbs the network. This rule speaks of those in which something does. An
event is accepted when it is published. Bound is a subscription that all brokers knew when the event was accepted: what
the client said had settled while it was connected and the network was whole. With advertisements the publisher must
have one for the event of which all brokers knew, since it last came to a broker. It is due at the end, the last record
by which all has settled with all brokers up and all links there; what was cut off, crashed or moved in between is no
excuse. That it comes once and in the order of its stream, other rules demand.

An event that its publisher published at two brokers is one event: it is to be handed over once.

Excused is what has expired by then, a subscription that has ended or changed, a client that is not there, and as many
as the client was told are lost. That an unknown number may be missing excuses what was accepted before, but it may be
told only of a subscription that not all brokers have known yet.

It may be claimed of a network whose brokers store what they accept, and whose links, those of clients too, lose nothing
and keep the order unless they are cut. Where single messages are lost, a renewal may come too late, and a client may
not be told how far it has come. Where tables were corrupted, it may be claimed from the time on by which they have
healed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple, TypeAlias

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.times import MICROS
from vestnik.trace.records import Acknowledged, Dropped, Lost, Missing, Notified, Published
from vestnik.verify.connections import Connections
from vestnik.verify.histories import History, Span, key_of
from vestnik.verify.publications import offered, wanted
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named

Place: TypeAlias = tuple[Pair | None, int | None]


def acknowledged(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """What a client was told is stored was published before; what is held until `not_before`, by the end."""
    end = Connections(history).end()
    for number, record in history.of(Acknowledged):
        if record.at < since:
            continue
        event, due = record.event, number
        if event.not_before is not None:
            if end is None or number > end or event.not_before / MICROS > history.records[end].at:
                continue
            due = end
        if not history.published(event, due):
            said = f"{record.client} was told that {named(event)} is stored, which was not published"
            yield Violation("acknowledged", said, record.client, event=event, records=(record,))


class Claim(NamedTuple):
    """What was published at record `number` is to be handed over for a subscription."""

    span: Span
    number: int


def kept(history: History, since: float = ALWAYS, *, advertisements: bool = False) -> Iterator[Violation]:
    """What was accepted from time `since` on and was not handed over."""
    connections = Connections(history)
    end = connections.end()
    if end is None:
        return
    dropped: dict[Place, Dropped] = {}
    for number, record in history.of(Dropped):
        if number < end:
            dropped.setdefault((record.event.stream, record.event.seq), record)
    for claim in _not_told(history, unmet(history, since, advertisements=advertisements), end):
        yield _violation(history, claim, end, dropped.get(_place(history, claim)))
    yield from _needless(history, connections, since)


def unmet(history: History, since: float = ALWAYS, *, advertisements: bool = False) -> list[Claim]:
    """What was not handed over, whether the client was told or not."""
    connections = Connections(history)
    end = connections.end()
    if end is None:
        return []
    claims: dict[tuple[str, ...], Claim] = {}
    for claim in _claims(history, connections, end, since, advertisements):
        claims.setdefault((claim.span.client, claim.span.name, *key_of(_published(history, claim).event)), claim)
    for number, record in history.of(Notified):
        if number < end:
            for name, _ in record.numbers:
                claims.pop((record.client, name, *key_of(record.event)), None)
    return list(claims.values())


def _claims(
    history: History, connections: Connections, end: int, since: float, advertisements: bool
) -> Iterator[Claim]:
    known: dict[Span, int] = {}
    offering = (offers for _, _, offers in offered(history)) if advertisements else repeat(None)
    for (number, record, wanting), offers in zip(wanted(history), offering, strict=False):
        if record.at < since or not _is_due(history, record.event, number, end):
            continue
        if offers is not None and not any(_was_offered(connections, span, number) for span in offers):
            continue
        for span in wanting:
            if span.end <= end or not connections.is_there(span.client, end):
                continue
            if span not in known:
                known[span] = connections.known(span.client, span.start)
            if known[span] <= number:
                yield Claim(span, number)


def _is_due(history: History, event: Event, number: int, end: int) -> bool:
    until = history.records[end].at
    held = event.not_before is not None and event.not_before / MICROS > until
    expired = event.expires is not None and event.expires / MICROS <= until
    return history.settles(number) <= end and not held and not expired


def _was_offered(connections: Connections, span: Span, number: int) -> bool:
    said = max(span.start, connections.last_move(span.client, number))
    return connections.is_there(span.client, number) and connections.known(span.client, said) <= number


def _not_told(history: History, claims: Iterable[Claim], end: int) -> Iterator[Claim]:
    """Those of subscriptions of which fewer were said to be lost, since the first of them."""
    missed: dict[Span, list[Claim]] = {}
    for claim in claims:
        missed.setdefault(claim.span, []).append(claim)
    for span, of_span in missed.items():
        later = history.records[of_span[0].number : end]
        told = [record for record in later if isinstance(record, Lost)]
        lost = [record for record in told if (record.client, record.name) == (span.client, span.name)]
        if len(of_span) > sum(record.last - record.first + 1 for record in lost):
            yield from of_span


def _needless(history: History, connections: Connections, since: float) -> Iterator[Violation]:
    """What clients were told may be missing, though all brokers knew that it is wanted."""
    for number, record in history.of(Missing):
        if record.at >= since:
            span = history.subscription(record.client, record.name, number)
            if span is not None and connections.known(span.client, span.start) <= number:
                said = f"{span.client} was told that something of {span.name} may be missing, of which all brokers knew"
                records = history.records[span.start], record
                yield Violation("kept", said, span.client, span.name, records=records)


def _place(history: History, claim: Claim) -> Place:
    event = _published(history, claim).event
    return event.stream, event.seq


def _published(history: History, claim: Claim) -> Published:
    record = history.records[claim.number]
    assert isinstance(record, Published)
    return record


def _violation(history: History, claim: Claim, end: int, dropped: Dropped | None) -> Violation:
    span, published = claim.span, _published(history, claim)
    said = f"{span.client} was never notified of {named(published.event)} for {span.name}, which wants it"
    said += f"; it was dropped at {dropped.node}: {dropped.reason}" if dropped else ""
    witnesses = [published, *([dropped] if dropped else []), history.records[end]]
    records = history.records[span.start], *witnesses
    return Violation("kept", said, span.client, span.name, published.event, records)
