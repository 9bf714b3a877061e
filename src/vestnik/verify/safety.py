"""Safety: whatever a client is handed was published, is wanted by an active subscription of its own, and comes once.

With advertisements, also: what was published outside of its publisher's active advertisements is handed to nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from vestnik.trace.records import AnyRecord, Notified, Published, Rejected
from vestnik.verify.histories import History, Span, key_of
from vestnik.verify.violations import Violation, named

ALWAYS = float("-inf")


def eventual_safety(history: History, since: float, *, advertisements: bool = False) -> Iterator[Violation]:
    """Formula (9): safety of what is handed over from time `since` on; from ALWAYS on, formulas (3) and (11)."""
    seen: dict[tuple[str, str, int, str, str], Notified] = {}
    for number, record in enumerate(history.records):
        if isinstance(record, Notified) and record.at >= since:
            yield from _published(history, number, record)
            if advertisements:
                yield from _advertised(history, number, record)
            yield from _wanted(history, number, record)
            yield from _once(history, number, record, seen)


def _published(history: History, number: int, handed: Notified) -> Iterator[Violation]:
    """Somebody published the event, before and as it is."""
    published = [history.records[place] for place in history.published(handed.event, number)]
    if any(isinstance(record, Published) and record.event == handed.event for record in published):
        return
    refused = [record for record in history.records[:number] if _is_refusal(record, handed)]
    if published:
        reason = "which was published with other content"
    elif refused:
        reason = "which was refused to its publisher"
    else:
        reason = "which nobody had published"
    yield _violation("published", handed, reason, *published, *refused)


def _is_refusal(record: AnyRecord, handed: Notified) -> bool:
    return isinstance(record, Rejected) and key_of(record.event) == key_of(handed.event)


def _advertised(history: History, number: int, handed: Notified) -> Iterator[Violation]:
    """The publisher had an active advertisement for the event when it published it."""
    places = history.published(handed.event, number)
    for place in places:
        record = history.records[place]
        assert isinstance(record, Published)
        if any(span.filter.matches(record.event) for span in history.offered(record.client, place)):
            return
    if places:
        records = [history.records[place] for place in places]
        yield _violation("advertised", handed, "which is outside of what its publisher advertised", *records)


def _wanted(history: History, number: int, handed: Notified) -> Iterator[Violation]:
    """Each subscription that it is handed over for is one of the client's, active, and matches."""
    if not handed.numbers:
        yield _violation("active", handed, "for no subscription")
    for name, _ in handed.numbers:
        spans = history.subscription(handed.client, name, number)
        active = [span for span in spans if not history.is_over(span, number)]
        if not spans:
            yield _violation("active", handed, f"for {name}, to which it had not subscribed", subscription=name)
        elif not active:
            said = f"for {name}, from which it had unsubscribed"
            begun, ended = history.records[spans[-1].start], history.records[spans[-1].end]
            yield _violation("active", handed, said, begun, ended, subscription=name)
        elif not any(span.filter.matches(handed.event) for span in active):
            said = f"for {name}, which wants {_shown(active)}"
            records = [history.records[span.start] for span in active]
            yield _violation("matching", handed, said, *records, subscription=name)


def _once(
    history: History, number: int, handed: Notified, seen: dict[tuple[str, str, int, str, str], Notified]
) -> Iterator[Violation]:
    """No subscription gets an event twice."""
    for name, _ in handed.numbers:
        spans = history.subscription(handed.client, name, number)
        begun = spans[0].first if spans else -1
        key = handed.client, name, begun, *key_of(handed.event)
        if key in seen:
            yield _violation("once", handed, f"for {name} a second time", seen[key], subscription=name)
        seen[key] = handed


def _shown(spans: list[Span]) -> str:
    return " or ".join(f"({span.filter})" for span in spans)


def _violation(rule: str, handed: Notified, said: str, *records: AnyRecord, subscription: str = "") -> Violation:
    sentence = f"{handed.client} was notified of {named(handed.event)}, {said}"
    return Violation(rule, sentence, handed.client, subscription, handed.event, (*records, handed))
