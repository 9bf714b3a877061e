"""Publications, each with what matches it at that moment; and whether brokers take only what is advertised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from vestnik.matching import Matcher
from vestnik.trace.records import Published
from vestnik.verify.histories import History, Span
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId


def wanted(history: History) -> Iterator[tuple[int, Published, list[Span]]]:
    """The publications with their numbers, each with the subscriptions that want it."""
    return _matched(history, history.subscriptions, own=False)


def offered(history: History) -> Iterator[tuple[int, Published, list[Span]]]:
    """The publications with their numbers, each with the advertisements that its publisher has for it."""
    return _matched(history, history.advertisements, own=True)


def admission(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """A broker takes from a client only what this has advertised.

    What it holds until `not_before` it has taken earlier: then any advertisement will do that its publisher had.
    """
    for number, record, offers in offered(history):
        if record.at < since or offers or (record.event.not_before is not None and _was_offered(history, number)):
            continue
        said = f"{record.client} published {named(record.event)}, which is outside of what it advertised"
        yield Violation("admission", said, record.client, event=record.event, records=(record,))


def _was_offered(history: History, number: int) -> bool:
    record = history.records[number]
    assert isinstance(record, Published)
    spans = [span for span in history.advertisements if span.client == record.client and span.start < number]
    return any(span.filter.matches(record.event) for span in spans)


def _matched(history: History, spans: Sequence[Span], *, own: bool) -> Iterator[tuple[int, Published, list[Span]]]:
    """With the spans that are not over; with `own`, only those of the publisher."""
    starts = {span.start: place for place, span in enumerate(spans)}
    ends: dict[int, list[int]] = {}
    for place, span in enumerate(spans):
        ends.setdefault(history.over(span), []).append(place)
    matchers: defaultdict[NodeId, Matcher[int]] = defaultdict(Matcher)
    published = [number for number, _ in history.of(Published)]
    for number in sorted({*starts, *ends, *published} - {len(history.records)}):
        record = history.records[number]
        for place in ends.get(number, ()):
            matchers[spans[place].client if own else ""].remove(place)
        if number in starts:
            span = spans[starts[number]]
            matchers[span.client if own else ""].add(starts[number], span.filter)
        if isinstance(record, Published):
            places = matchers[record.client if own else ""].match(record.event)
            yield number, record, [spans[place] for place in sorted(places)]
