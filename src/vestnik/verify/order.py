"""Order: of what is published and handed over in a stream, and of the numbers of a subscription."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.trace.records import Crashed, Lost, Notified, Published
from vestnik.verify.histories import History, key_of
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId


def streams(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """Within a stream `seq` rises where events are published, and stands for one event where they are handed over."""
    for before, record in _clashes(history):
        if before.at >= since:
            said = f"{named(record.event)} is number {record.event.seq} of its stream"
            said += f", where {named(before.event)} was number {before.event.seq} before"
            yield Violation("streams", said, record.client, event=record.event, records=(before, record))


def _clashes(history: History) -> Iterator[tuple[Published | Notified, Published | Notified]]:
    """A broker that crashes may number again what it had not stored, and so not sent on."""
    last: dict[NodeId, dict[str, Published]] = {}
    handed: defaultdict[Pair, dict[int, Notified]] = defaultdict(dict)
    for _, record in history.of(Crashed, Published, Notified):
        match record:
            case Crashed(node=node):
                last.pop(node, None)
            case Published(event=Event(stream=(broker, source), seq=int(seq))):
                before = last.setdefault(broker, {}).get(source)
                other = handed[broker, source].get(seq)
                if before is not None and seq <= (before.event.seq or 0):
                    yield before, record
                elif other is not None and key_of(other.event) != key_of(record.event):
                    yield other, record
                last[broker][source] = record
            case Notified(event=Event(stream=(broker, source), seq=int(seq)) as event):
                other = handed[broker, source].setdefault(seq, record)
                if key_of(other.event) != key_of(event):
                    yield other, record


def fifo(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """Within a stream, events of equal priority and without `not_before` reach a subscription in the order of `seq`."""
    last: dict[tuple[object, ...], Notified] = {}
    for name, start, record in _handed(history, since):
        event = record.event
        if event.stream is None or event.seq is None or event.not_before is not None:
            continue
        stream = record.client, name, start, event.stream, event.priority
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
    for number, record in history.of(Notified, Lost):
        if record.at < since or not isinstance(record, Notified | Lost):
            continue
        for name, first, final in _given(record):
            start, started = begun(history, record.client, name, number)
            key = record.client, name, start
            unknown = started < since or start < 0
            before, witness = last.get(key, (first - 1 if unknown else 0, None))
            if first != before + 1 or final < first:
                event = record.event if isinstance(record, Notified) else None
                given = f"number {first}" if first == final else f"numbers {first} to {final}"
                said = f"{record.client} was given {given} in {name}, where {before + 1} comes next"
                records = (record,) if witness is None else (witness, record)
                yield Violation("numbers", said, record.client, name, event, records)
            last[key] = max(first, final), record


def _given(record: Notified | Lost) -> list[tuple[str, int, int]]:
    """The first and last number that a record gives each subscription."""
    if isinstance(record, Lost):
        return [(record.name, record.first, record.last)]
    return [(name, number, number) for name, number in record.numbers]


def _handed(history: History, since: float) -> Iterator[tuple[str, int, Notified]]:
    """What is handed over, for each subscription and where this began."""
    for number, record in history.of(Notified):
        if record.at >= since:
            for name, _ in record.numbers:
                yield name, begun(history, record.client, name, number)[0], record


def begun(history: History, client: str, name: str, number: int) -> tuple[int, float]:
    """Where and when the subscription that is meant at record `number` began; -1 where there is none."""
    span = history.subscription(client, name, number)
    return (span.first, history.records[span.first].at) if span else (-1, ALWAYS)
