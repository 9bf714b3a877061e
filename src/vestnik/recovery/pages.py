"""Reads a page of a log. Disk and memory are read by the same rules, so that readers cannot tell them apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.origins import ReadTerms, Slice, Span


class LogEntry(NamedTuple):
    """An event at its offset, and the time in microseconds at which it was accepted. Times never fall in a log."""

    offset: int
    time: int
    event: Event


class LogView(Protocol):
    """What can be read of a log."""

    @property
    def start(self) -> int:
        """The first offset that was not dropped."""

    @property
    def holes(self) -> Sequence[Span]:
        """Offsets that the log should have and has lost, in order."""

    def entries(self, span: Span) -> Iterator[LogEntry]:
        """Yield what is there, in order."""

    def offset_since(self, time: int) -> int:
        """Return the offset after the last event that was accepted before a time.

        0 if events that were accepted later may have been dropped, and `start` if there is no such event.
        """


def read_page(view: LogView, terms: ReadTerms, end: int) -> Slice:
    """Read what is below offset `end`. A page tells at most one gap, and ends before the next hole."""
    first = terms.start if terms.since is None else max(terms.start, view.offset_since(terms.since))
    is_wanted = any_of(terms.filters)
    if terms.last:
        before = (entry.event for entry in view.entries(Span(view.start, first)) if is_wanted(entry.event))
        return Slice(first, tuple(deque(before, maxlen=terms.last)), first)
    at, gap = first, None
    if at < view.start:
        at, gap = view.start, Span(at, view.start)
    for hole in view.holes:
        if hole.end <= at or hole.first >= end:
            continue
        if hole.first <= at and gap is None:
            at, gap = hole.end, Span(at, hole.end)
        else:
            end = max(hole.first, at)
    events: list[Event] = []
    for entry in view.entries(Span(at, end)):
        if is_wanted(entry.event):
            if len(events) == terms.limit:
                return Slice(first, tuple(events), (events[-1].seq or 0) + 1, gap)
            events.append(entry.event)
    return Slice(first, tuple(events), max(at, end), gap)


def any_of(filters: Iterable[Filter]) -> Callable[[Event], bool]:
    """Return whether an event matches any of some filters, as a function."""
    tests = [one.matches for one in filters]
    return tests[0] if len(tests) == 1 else lambda event: any(test(event) for test in tests)
