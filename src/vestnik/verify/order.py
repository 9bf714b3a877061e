"""Order: events of one stream are handed over as they were accepted, and the numbers of a subscription have no gaps."""

from __future__ import annotations

from collections.abc import Iterator

from vestnik.trace.records import Lost, Notified
from vestnik.verify.histories import History
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named


def fifo(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """Within a stream, events of equal priority and without `not_before` reach a subscription in the order of `seq`."""
    last: dict[tuple[object, ...], Notified] = {}
    for name, begun, record in _handed(history, since):
        event = record.event
        if event.stream is None or event.seq is None or event.not_before is not None:
            continue
        stream = record.client, name, begun, event.stream, event.priority
        before = last.get(stream)
        if before is not None and event.seq < (before.event.seq or 0):
            said = f"{record.client} was notified of {named(event)} for {name} after {named(before.event)}"
            said += f", which was accepted later: {before.event.seq} after {event.seq}"
            yield Violation("fifo", said, record.client, name, event, (before, record))
        else:
            last[stream] = record


def numbers(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """The numbers of a subscription count from 1 without gaps but those that the client was told of."""
    last: dict[tuple[str, str, int], tuple[int, Notified | Lost | None]] = {}
    for number, record in enumerate(history.records):
        if record.at < since or not isinstance(record, Notified | Lost):
            continue
        given = record.numbers if isinstance(record, Notified) else ((record.name, record.first),)
        for name, found in given:
            begun, started = _begun(history, record.client, name, number)
            key = record.client, name, begun
            unknown = started < since or begun < 0
            before, witness = last.get(key, (found - 1 if unknown else 0, None))
            if found != before + 1:
                event = record.event if isinstance(record, Notified) else None
                said = f"{record.client} was given number {found} in {name}, where {before + 1} comes next"
                records = (record,) if witness is None else (witness, record)
                yield Violation("numbers", said, record.client, name, event, records)
            last[key] = (record.last if isinstance(record, Lost) else found), record


def _handed(history: History, since: float) -> Iterator[tuple[str, int, Notified]]:
    """What is handed over, for each subscription and where this began."""
    for number, record in enumerate(history.records):
        if isinstance(record, Notified) and record.at >= since:
            for name, _ in record.numbers:
                yield name, _begun(history, record.client, name, number)[0], record


def _begun(history: History, client: str, name: str, number: int) -> tuple[int, float]:
    """Where and when the subscription that is meant at record `number` began; -1 where there is none."""
    spans = history.subscription(client, name, number)
    return (spans[0].first, history.records[spans[0].first].at) if spans else (-1, ALWAYS)
