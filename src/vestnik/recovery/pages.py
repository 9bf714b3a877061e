"""Reads a page of a log. Disk and memory are read by the same rules, so that readers cannot tell them apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from vestnik.matching.single.index import Matcher
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.recovery.selection import Selection, left_out
from vestnik.wire.origins import PLACES, Placed, ReadTerms, Slice, Span
from vestnik.wire.packing import pack, unpack
from vestnik.wire.pages import pages
from vestnik.wire.replays import Replay
from vestnik.wire.sieve import Sieve, sieve_of

PAGE_SIZE: Final = 256 * 1024
"""Bytes of a page, or one event more."""
SIFTED: Final = 256
"""Offsets of a span from which on a sieve is made: to make one takes as long as to unpack some hundred entries."""
UNSIFTED: Final = 64 * 1024
"""Bytes of fewer entries that are unpacked before a sieve is made."""
FEW: Final = 16
"""Filters that are asked one after another. More are indexed."""
SCANNED: Final = 20_000
"""Entries that are unpacked for one page, wanted or not, so that no read keeps a log busy for long."""
PASSED: Final = 64 * 1024 * 1024
"""Bytes that are passed over for one page, because nothing in them can be wanted."""
LOOK: Final = 256
"""Bytes that can be passed over in the time in which a sieve looks at one entry."""


class LogEntry(NamedTuple):
    """An event at its offset, packed, and the time in microseconds at which it was accepted. Times never fall."""

    offset: int
    time: int
    packed: bytes

    @property
    def event(self) -> Event:
        return unpack(self.packed)

    @classmethod
    def of(cls, event: Event, time: int) -> LogEntry:
        return cls(event.seq or 0, time, pack(event))


class PassedOver(NamedTuple):
    """A note between entries: a search of `size` bytes has yielded all that may be wanted below offset `upto`."""

    upto: int
    size: int


class LogView(Protocol):
    """What can be read of a log."""

    @property
    def begin(self) -> int:
        """The first offset that the log ever had."""

    @property
    def start(self) -> int:
        """The first offset that was not dropped."""

    @property
    def holes(self) -> Sequence[Span]:
        """Offsets that the log should have and has lost, in order."""

    def entries(self, span: Span) -> Iterator[LogEntry]:
        """Yield what is there, in order."""

    def search(self, span: Span, sieve: Sieve | None) -> Iterator[LogEntry | PassedOver]:
        """Yield entries in order, and what was passed over: maybe entries that the sieve does not let through."""
        yield from self.entries(span)

    def offset_since(self, time: int) -> int:
        """Return the offset after the last event that was accepted before a time.

        0 if events that were accepted later may have been dropped, and `start` if there is no such event.
        """

    def why(self, gap: Span) -> str:
        """Return in words why the log no longer has these offsets."""


def read_page(view: LogView, terms: ReadTerms, end: int) -> Slice:
    """Read what is below offset `end`. A page tells at most one gap, and ends before the next hole."""
    first = terms.start if terms.since is None else max(terms.start, view.offset_since(terms.since))
    first = max(min(first, end), view.begin)
    if terms.pick is not None and terms.limit == PLACES:
        return _place_of_picked(view, terms.filters, terms.pick, first)
    if terms.pick is not None:
        selection, span = _picked(view, terms.filters, terms.pick, first)
        picked = selection.found()
        events, times = tuple([event for event, _ in picked]), tuple([accepted for _, accepted in picked])
        holes = [hole for hole in view.holes if hole.first < span.end and hole.end > span.first]
        reasons = [selection.left_out, *[view.why(hole) for hole in holes]]
        return Slice(first, events, first, None, "; ".join(filter(None, reasons)), times)
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
    reason = "" if gap is None else view.why(gap)
    if not terms.filters:
        return Slice(first, (), max(at, end), gap, reason)
    found, upto, size = _wanted(view, Span(at, max(at, end)), terms)
    offsets = tuple([one.offset for one in found]) if any(one.event.seq != one.offset for one in found) else ()
    times = tuple([one.accepted for one in found])
    return Slice(first, tuple([one.event for one in found]), upto, gap, reason, times, size, offsets)


def parts_of(picked: Slice) -> list[Slice]:
    """Split what was picked into slices that can be sent. The last of them says what was left out."""
    parts = list(pages(list(zip(picked.events, picked.times, strict=True)), lambda one: one[0]))
    first, upto = picked.first, picked.upto
    slices = [
        Slice(first, tuple([event for event, _ in part]), upto, times=tuple([time for _, time in part]), more=True)
        for part in parts[:-1]
    ]
    last = parts[-1] if parts else ()
    events, times = tuple([event for event, _ in last]), tuple([time for _, time in last])
    return [*slices, Slice(first, events, upto, None, picked.reason, times)]


def _picked(view: LogView, filters: tuple[Filter, ...], replay: Replay, end: int) -> tuple[Selection, Span]:
    """Pick from the events below offset `end`; return also the span that was read."""
    for span in _spans(view, replay, end):
        selection = Selection(filters, replay)
        for entry in _sifted(view, span, filters):
            selection.take(entry.event, entry.time)
        if replay.last is not None and selection.count >= replay.last:
            break
    return selection, span


def _place_of_picked(view: LogView, filters: tuple[Filter, ...], replay: Replay, end: int) -> Slice:
    """Return where the last events begin that a replay picks of those below offset `end`, without the events."""
    is_wanted = any_of(filters)
    for span in _spans(view, replay, end):
        places: deque[int] = deque(maxlen=replay.bound)
        count = 0
        for entry in _sifted(view, span, filters):
            if is_wanted(entry.event):
                places.append(entry.offset)
                count += 1
        if replay.last is not None and count >= replay.last:
            break
    is_full = len(places) == replay.bound
    return Slice(places[0] if is_full else span.first, (), end, None, left_out(replay, count))


def _sifted(view: LogView, span: Span, filters: tuple[Filter, ...]) -> Iterator[LogEntry]:
    """Yield the entries that the filters may match."""
    sifting = _Sifting(span, filters)
    for entry in view.search(span, sifting.sieve):
        if isinstance(entry, LogEntry) and sifting.lets_through(entry.packed):
            yield entry


def _spans(view: LogView, replay: Replay, end: int) -> Iterator[Span]:
    """Yield spans in which to pick, until they have enough. For the last events a log is read backwards."""
    first = view.start
    if replay.last is not None and replay.latest_by is None:
        first = max(first, end - 2 * replay.last)
    yield Span(first, end)
    while first > view.start:
        first = max(view.start, end - 4 * (end - first))
        yield Span(first, end)


def _wanted(view: LogView, span: Span, terms: ReadTerms) -> tuple[list[Placed], int, int]:
    """Return the events of a page with their offsets, the offset at which the next page starts, and their size."""
    is_wanted, sifting = any_of(terms.filters), _Sifting(span, terms.filters)
    found: list[Placed] = []
    size = unpacked = passed = 0
    for entry in view.search(span, sifting.sieve):
        if isinstance(entry, PassedOver):
            passed += entry.size
            if passed >= PASSED:
                return found, entry.upto, size
            continue
        if unpacked == SCANNED or len(found) == terms.limit or (found and size + len(entry.packed) > PAGE_SIZE):
            return found, entry.offset, size
        if not sifting.lets_through(entry.packed):
            passed += len(entry.packed) + LOOK
            if passed >= PASSED:
                return found, entry.offset + 1, size
            continue
        event = entry.event
        unpacked += 1
        if is_wanted(event):
            found.append(Placed(entry.offset, entry.time, event))
            size += len(entry.packed)
    return found, span.end, size


class _Sifting:
    """Finds the entries of a span that some filters may match. A `sieve` is made when it takes less time than it saves.

    There may be none: some filters leave nothing to look for.
    """

    def __init__(self, span: Span, filters: tuple[Filter, ...]) -> None:
        self._filters = filters
        self._is_tried = span.end - span.first >= SIFTED
        self._unsifted = 0  # bytes
        self.sieve = sieve_of(filters) if self._is_tried else None

    def lets_through(self, packed: bytes) -> bool:
        """Return whether the filters may match an entry."""
        if not self._is_tried:
            self._unsifted += len(packed)
            if self._unsifted > UNSIFTED:
                self.sieve, self._is_tried = sieve_of(self._filters), True
        return self.sieve is None or self.sieve.lets_through(packed)


def any_of(filters: Sequence[Filter]) -> Callable[[Event], bool]:
    """Return a function that says whether an event matches any of some filters."""
    if len(filters) == 1:
        return filters[0].matches
    if len(filters) <= FEW:
        return lambda event: any(one.matches(event) for one in filters)
    matcher: Matcher[int] = Matcher()
    for place, wanted in enumerate(filters):
        matcher.add(place, wanted)
    return lambda event: bool(matcher.match(event))
