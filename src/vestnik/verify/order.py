"""Order: of what is published and handed over in a stream, of causes and effects, of the numbers of a subscription."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.trace.records import Crashed, Dropped, Lost, Notified, Published, Vanished
from vestnik.verify.histories import History, Key, key_of
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
    for record in history.records:
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


def causal(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """No client is notified of an event before one of its causes, if of both.

    What an event names as a cause is one where its publisher knew of it: had published it, or been notified of it.
    What was lost on its way to a client is asked for again, and may come late for another subscription. What is
    replayed to a subscription stands alone: it is older than the subscription. So does each subscription of a client
    that did not take its notifications, and asks for what it missed of each.
    """
    apart = {record.receiver for record in history.records if isinstance(record, Vanished) and record.kind == "Notify"}
    asked = {cause for record in history.records if isinstance(record, Published) for cause in record.event.causes}
    lost: set[Key] = set()
    known: set[tuple[NodeId, Key]] = set()
    handed: set[tuple[NodeId, int, Key]] = set()
    causes: dict[Key, list[Key]] = {}
    ahead: dict[tuple[NodeId, int, Key], Notified] = {}  # by subscriber and cause, the effect that came first
    for number, record in enumerate(history.records if asked else ()):
        if isinstance(record, Dropped):
            lost.add(key_of(record.event))
        if not isinstance(record, Published | Notified):
            continue
        client, event, key = record.client, record.event, key_of(record.event)
        if isinstance(record, Published):
            causes[key] = [cause for cause in event.causes if (client, cause) in known]
            known.update([(client, key)] if key in asked else ())
            continue
        for subscriber in _subscribers(history, number, record, alone=client in apart):
            effect = ahead.pop((client, subscriber, key), None)
            if effect is not None and effect.at >= since and key not in lost:
                said = f"{client} was notified of {named(event)} after {named(effect.event)}, of which it is a cause"
                yield Violation("causal", said, client, event=event, records=(effect, record))
            for cause in causes.get(key, ()):
                if (client, subscriber, cause) not in handed:
                    ahead.setdefault((client, subscriber, cause), record)
            handed.update([(client, subscriber, key)] if key in asked else ())
        known.update([(client, key)] if key in asked else ())


def _subscribers(history: History, number: int, record: Notified, *, alone: bool) -> set[int]:
    """Where the subscriptions that stand alone began, of those that an event is handed to; -1 for all others."""
    found: set[int] = set()
    for name, _ in record.numbers:
        begun, _ = _begun(history, record.client, name, number)
        found.add(begun if alone or record.replayed else -1)
    return found


def numbers(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """The numbers of a subscription count from 1 without gaps but those that the client was told of."""
    last: dict[tuple[str, str, int], tuple[int, Notified | Lost | None]] = {}
    for number, record in enumerate(history.records):
        if record.at < since or not isinstance(record, Notified | Lost):
            continue
        for name, first, final in _given(record):
            begun, started = _begun(history, record.client, name, number)
            key = record.client, name, begun
            unknown = started < since or begun < 0
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
    for number, record in enumerate(history.records):
        if isinstance(record, Notified) and record.at >= since:
            for name, _ in record.numbers:
                yield name, _begun(history, record.client, name, number)[0], record


def _begun(history: History, client: str, name: str, number: int) -> tuple[int, float]:
    """Where and when the subscription that is meant at record `number` began; -1 where there is none."""
    span = history.subscription(client, name, number)
    return (span.first, history.records[span.first].at) if span else (-1, ALWAYS)
