"""Safety: whatever a client is handed was published, is wanted by an active subscription of its own, and comes once."""

from __future__ import annotations

from collections.abc import Iterator

from vestnik.trace.records import AnyRecord, Notified, Published
from vestnik.verify.histories import History, Span, key_of
from vestnik.verify.violations import Violation, named

ALWAYS = float("-inf")


def eventual_safety(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """Formula (9): safety of what is handed over from time `since` on; from ALWAYS on, formula (3)."""
    seen: dict[tuple[object, ...], Notified] = {}
    for number, record in history.of(Notified):
        if record.at >= since:
            yield from _published(history, number, record)
            yield from _wanted(history, number, record)
            yield from _once(history, number, record, seen)


def _published(history: History, number: int, handed: Notified) -> Iterator[Violation]:
    """Somebody published the event, before and as it is, or answered a replay with it."""
    if handed.answered:
        return
    published = [history.records[place] for place in history.published(handed.event, number)]
    if any(isinstance(record, Published) and record.event == handed.event for record in published):
        return
    refused = [history.records[place] for place in history.refused(handed.event, number)]
    if published:
        reason = "which was published with other content"
    elif refused:
        reason = "which was refused to its publisher"
    else:
        reason = "which nobody had published"
    yield _violation("published", handed, reason, *published, *refused)


def _wanted(history: History, number: int, handed: Notified) -> Iterator[Violation]:
    """Each subscription that it is handed over for is one of the client's, active, and matches."""
    if not handed.numbers:
        yield _violation("active", handed, "for no subscription")
    published = min(history.published(handed.event, number), default=number)
    for name, _ in handed.numbers:
        last = history.subscription(handed.client, name, number)
        active = history.active(handed.client, name, number, published)
        if last is None:
            yield _violation("active", handed, f"for {name}, to which it had not subscribed", subscription=name)
        elif not active:
            said = f"for {name}, from which it had unsubscribed"
            begun, ended = history.records[last.start], history.records[last.end]
            yield _violation("active", handed, said, begun, ended, subscription=name)
        elif not any(span.filter.matches(handed.event) for span in active):
            said = f"for {name}, which wants {_shown(active)}"
            records = [history.records[span.start] for span in active]
            yield _violation("matching", handed, said, *records, subscription=name)


def _once(
    history: History, number: int, handed: Notified, seen: dict[tuple[object, ...], Notified]
) -> Iterator[Violation]:
    """No subscription gets an event twice. One that was published again at another broker is another."""
    for name, _ in handed.numbers:
        last = history.subscription(handed.client, name, number)
        key = handed.client, name, last.first if last else -1, handed.event.stream, *key_of(handed.event)
        if key in seen:
            yield _violation("once", handed, f"for {name} a second time", seen[key], subscription=name)
        seen[key] = handed


def _shown(spans: list[Span]) -> str:
    return " or ".join(f"({span.filter})" for span in spans)


def _violation(rule: str, handed: Notified, said: str, *records: AnyRecord, subscription: str = "") -> Violation:
    sentence = f"{handed.client} was notified of {named(handed.event)}, {said}"
    return Violation(rule, sentence, handed.client, subscription, handed.event, (*records, handed))
