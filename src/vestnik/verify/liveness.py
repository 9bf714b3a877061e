"""Liveness: what is wanted is handed over.

Bound is an event that was published when a subscription that wants it had settled: formula (4). With advertisements
its publisher must have one for it that had settled, too: formula (12), where publisher and advertiser are one client.
Such an event is due when its publication has settled. The subscription and the advertisement must last until then, the
client be connected, and nothing disturb the network; what was disturbed must have settled before the publication. An
event that expires before it is due need not arrive, and one with `not_before` is due only after that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from vestnik.matching import Matcher
from vestnik.trace.records import (
    AnyRecord,
    Attached,
    Corrupted,
    Crashed,
    Cut,
    Detached,
    Dropped,
    Linked,
    Notified,
    Published,
    Restarted,
)
from vestnik.verify.histories import History, Key, Span, key_of
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId

MICROS = 1_000_000
DISTURBANCES = Crashed, Restarted, Linked, Cut, Corrupted


def liveness(history: History, since: float = ALWAYS, *, advertisements: bool = False) -> Iterator[Violation]:
    """What was due and did not arrive, of what was published from time `since` on."""
    handed = _handed(history)
    network = [number for number, record in enumerate(history.records) if isinstance(record, DISTURBANCES)]
    connections = _connections(history)
    for number, record, wanting in _publications(history):
        due = _due(history, number, record)
        if record.at < since or due is None or not _is_calm(history, network, number, due):
            continue
        offers = [span for span in history.offered(record.client, number) if span.filter.matches(record.event)]
        if advertisements and not any(_is_bound(history, span, number, due) for span in offers):
            continue
        for span in wanting:
            there = connections.get(span.client, [])
            if _is_bound(history, span, number, due) and _is_connected(history, there, number, due):
                arrived = handed.get((span.client, span.name), {}).get(key_of(record.event), [])
                if not any(number < place < due for place in arrived):
                    yield _violation(history, span, number, due)


def _publications(history: History) -> Iterator[tuple[int, Published, list[Span]]]:
    """The publications, each with the subscriptions at that moment that want it."""
    spans = history.subscriptions
    starts = {span.start: place for place, span in enumerate(spans)}
    ends: dict[int, int] = {span.end: place for place, span in enumerate(spans)}
    matcher: Matcher[int] = Matcher()
    for number, record in enumerate(history.records):
        if number in ends:
            matcher.remove(ends[number])
        if number in starts:
            matcher.add(starts[number], spans[starts[number]].filter)
        if isinstance(record, Published):
            yield number, record, [spans[place] for place in sorted(matcher.match(record.event))]


def _due(history: History, number: int, record: Published) -> int | None:
    """The record before which an event is to be handed over; None where it need not."""
    event = record.event
    at = record.at if event.not_before is None else max(record.at, event.not_before / MICROS)
    due = history.settles(number, at)
    if due == len(history.records):
        return None
    expired = event.expires is not None and event.expires / MICROS <= history.records[due].at
    return None if expired else due


def _is_bound(history: History, span: Span, number: int, due: int) -> bool:
    """Whether a span has settled before record `number`, and lasts until `due`."""
    return history.settles(span.start) <= number and due <= span.end


def _is_calm(history: History, disturbances: list[int], number: int, due: int) -> bool:
    """Whether none of these falls between, and the last one before has settled."""
    before = bisect_left(disturbances, number)
    between = before < len(disturbances) and disturbances[before] < due
    return not between and (before == 0 or history.settles(disturbances[before - 1]) <= number)


def _is_connected(history: History, connections: list[int], number: int, due: int) -> bool:
    before = bisect_left(connections, number)
    gone = before > 0 and isinstance(history.records[connections[before - 1]], Detached | Crashed)
    return not gone and _is_calm(history, connections, number, due)


def _connections(history: History) -> dict[NodeId, list[int]]:
    """Where each client came and went; brokers, which crash, too, are nobody's clients."""
    found: dict[NodeId, list[int]] = {}
    for number, record in enumerate(history.records):
        match record:
            case Attached(client=node) | Detached(client=node) | Crashed(node=node) | Restarted(node=node):
                found.setdefault(node, []).append(number)
    return found


def _handed(history: History) -> dict[Key, dict[Key, list[int]]]:
    """Where each subscription was handed each event."""
    found: dict[Key, dict[Key, list[int]]] = {}
    for number, record in enumerate(history.records):
        if isinstance(record, Notified):
            for name, _ in record.numbers:
                events = found.setdefault((record.client, name), {})
                events.setdefault(key_of(record.event), []).append(number)
    return found


def _violation(history: History, span: Span, number: int, due: int) -> Violation:
    published = history.records[number]
    assert isinstance(published, Published)
    event = published.event
    about = [record for record in history.records[number + 1 :] if _is_about(record, span, event.source, event.id)]
    late = any(isinstance(record, Notified) for record in about)
    fate = "not in time" if late else "not"
    dropped = next((f"; it was dropped at {r.node}: {r.reason}" for r in about if isinstance(r, Dropped)), "")
    return Violation(
        "liveness",
        f"{span.client} was {fate} notified of {named(event)} for {span.name}, which wants it{dropped}",
        span.client,
        span.name,
        event,
        (history.records[span.start], published, *about, history.records[due]),
    )


def _is_about(record: AnyRecord, span: Span, *key: str) -> bool:
    match record:
        case Dropped(event=event):
            return key_of(event) == key
        case Notified(client=client, event=event):
            return client == span.client and key_of(event) == key and span.name in dict(record.numbers)
        case _:
            return False
