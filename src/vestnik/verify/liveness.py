"""Liveness: what is wanted is handed over.

Bound is an event that was published when a subscription that wants it had settled: formula (4). With advertisements
its publisher must have one for it that had settled, too: formula (12), where publisher and advertiser are one client.
Such an event is due when its publication has settled. The subscription and the advertisement must last until then, the
clients that have them be connected, and nothing disturb the brokers and their links; what was disturbed must have
settled before the publication. A client that is away or crashes excuses itself alone, and so does one that does not
take its notifications. An event that expires before it is due need not arrive, and one with `not_before` is due only
after that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import repeat
from typing import NamedTuple

from vestnik.model.times import MICROS
from vestnik.trace.records import Attached, Crashed, Detached, Dropped, Notified, Published, Resumed, Stalled
from vestnik.verify.connections import DISTURBANCES, disturbs
from vestnik.verify.histories import History, Settlement, Span, key_of
from vestnik.verify.presence import movements
from vestnik.verify.publications import offered, wanted
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId


class Claim(NamedTuple):
    """What was published at record `number` is to be handed over for a subscription before record `due`."""

    span: Span
    number: int
    due: int


def liveness(history: History, since: float = ALWAYS, *, advertisements: bool = False) -> Iterator[Violation]:
    """What was due and did not arrive, of what was published from time `since` on."""
    claims = _claims(history, since, advertisements)
    missed = list(_missed(history, claims))
    fates = _fates(history, {_key(history, claim)[2:] for claim in missed})
    for claim in missed:
        yield _violation(history, claim, fates)


def _claims(history: History, since: float, advertisements: bool) -> Iterator[list[Claim]]:
    """For each publication, by whom it is to be received."""
    moves = movements(history)
    network = _disturbances(history, moves)
    slow = _slow(history)
    offering = (offers for _, _, offers in offered(history)) if advertisements else repeat(None)
    for (number, record, wanting), offers in zip(wanted(history), offering, strict=False):
        due = _due(history, number, record)
        claims: list[Claim] = []
        if record.at >= since and due is not None and _is_calm(history, network, number, due):
            claims = [Claim(span, number, due) for span in wanting]
            if offers is not None and not any(_is_bound(history, moves, Claim(span, number, due)) for span in offers):
                claims = []
        claims = [claim for claim in claims if _is_bound(history, moves, claim)]
        yield [claim for claim in claims if _is_taking(history, slow.get(claim.span.client, []), claim)]


def _missed(history: History, claims: Iterator[list[Claim]]) -> Iterator[Claim]:
    """The claims that are open when they are due."""
    since: dict[tuple[str, ...], int] = {}  # by subscription and event, the first publication with an open claim
    due: dict[int, list[Claim]] = {}
    handed: set[tuple[object, ...]] = set()  # by subscription, since when it is there, and event
    for number, record in enumerate(history.records):
        for claim in due.pop(number, ()):
            if since.get(_key(history, claim), number) <= claim.number:
                yield claim
        if isinstance(record, Published):
            for claim in next(claims):
                if (claim.span.first, *_key(history, claim)) in handed:
                    continue  # it was published before, at another broker
                since.setdefault(_key(history, claim), number)
                due.setdefault(claim.due, []).append(claim)
        elif isinstance(record, Notified):
            for name, _ in record.numbers:
                since.pop((record.client, name, *key_of(record.event)), None)
                span = history.subscription(record.client, name, number)
                if span is not None:
                    handed.add((span.first, record.client, name, *key_of(record.event)))


def _key(history: History, claim: Claim) -> tuple[str, ...]:
    record = history.records[claim.number]
    assert isinstance(record, Published)
    return claim.span.client, claim.span.name, *key_of(record.event)


def _due(history: History, number: int, record: Published) -> int | None:
    """The record before which an event is to be handed over; None where it need not."""
    settled = _settlement(history, number, record)
    expires = record.event.expires
    expired = expires is not None and expires / MICROS <= settled.at
    return None if expired or settled.number == len(history.records) else settled.number


def _settlement(history: History, number: int, record: Published) -> Settlement:
    held = record.event.not_before
    return history.settlement(number, ALWAYS if held is None else held / MICROS)


def _is_bound(history: History, moves: dict[NodeId, list[int]], claim: Claim) -> bool:
    """Whether the span has settled before the publication, and lasts and has its client connected until that is due."""
    span, number, due = claim
    there = moves[span.client]
    before = bisect_left(there, number)
    gone = before > 0 and isinstance(history.records[there[before - 1]], Detached | Crashed)
    lasts = history.settles(span.start) <= number and due <= span.end
    return lasts and not gone and _is_calm(history, there, number, due)


def _is_taking(history: History, slow: list[int], claim: Claim) -> bool:
    """Whether a client takes what comes, from the publication until that is due."""
    before = bisect_left(slow, claim.number)
    stalled = before > 0 and isinstance(history.records[slow[before - 1]], Stalled)
    return not stalled and _is_calm(history, slow, claim.number, claim.due)


def _is_calm(history: History, disturbances: list[int], number: int, due: int) -> bool:
    """Whether none of these falls between, and the last one before has settled."""
    before = bisect_left(disturbances, number)
    between = before < len(disturbances) and disturbances[before] < due
    return not between and (before == 0 or history.settles(disturbances[before - 1]) <= number)


def _disturbances(history: History, clients: Collection[NodeId]) -> list[int]:
    """Where something happens to brokers or links between them."""
    return [number for number, record in history.of(*DISTURBANCES) if disturbs(record, clients)]


def _slow(history: History) -> dict[NodeId, list[int]]:
    """Where each client stops taking notifications, and where it takes them again."""
    found: dict[NodeId, list[int]] = {}
    for number, record in history.of(Stalled, Resumed, Attached):
        if isinstance(record, Stalled) or (isinstance(record, Resumed | Attached) and record.client in found):
            found.setdefault(record.client, []).append(number)
    return found


def _fates(history: History, events: set[tuple[str, ...]]) -> dict[tuple[str, ...], list[int]]:
    """Where these events were dropped, and where they were handed to each subscription."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number, record in history.of(Dropped, Notified) if events else ():
        match record:
            case Dropped(event=event) if key_of(event) in events:
                found.setdefault(key_of(event), []).append(number)
            case Notified(client=client, event=event, numbers=numbers) if key_of(event) in events:
                for name, _ in numbers:
                    found.setdefault((client, name, *key_of(event)), []).append(number)
    return found


def _violation(history: History, claim: Claim, fates: dict[tuple[str, ...], list[int]]) -> Violation:
    span, number, _ = claim
    key = _key(history, claim)
    published = history.records[number]
    assert isinstance(published, Published)
    late = [place for place in fates.get(key, ()) if place > number]
    dropped = [place for place in fates.get(key[2:], ()) if place > number]
    said = f"{span.client} was {'not in time' if late else 'not'} notified of {named(published.event)}"
    said += f" for {span.name}, which wants it"
    for record in (history.records[place] for place in dropped[:1]):
        assert isinstance(record, Dropped)
        said += f"; it was dropped at {record.node}: {record.reason}"
    settled = _settlement(history, number, published).shown
    records = [history.records[place] for place in (span.start, number, *sorted([*late, *dropped]))]
    records += [] if settled is None else [settled]
    return Violation("liveness", said, span.client, span.name, published.event, tuple(records))
