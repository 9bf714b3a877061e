"""Requests for pages of logs: what they ask for, who shares one, and which are open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Final, NamedTuple, TypeAlias

from vestnik.model.filters import Filter
from vestnik.model.times import MICROS
from vestnik.recovery.feed import Feed
from vestnik.recovery.reader import Reader
from vestnik.wire.origins import FetchPage, Origin, ReadTerms, Slice

PAGE: Final = 1_000
"""Events of a page, at most."""
NEAR: Final = 2_000
"""Offsets between cursors that share a read."""
FEW_FILTERS: Final = 64
"""Filters of a read that travel. If there are more, the origin uses the filters that its neighbour told it."""

FUTURE: Final = 60 * MICROS
"""Microseconds by which the time of an event may be later than when it was accepted, for replays since a time."""
ANSWER_WITHIN: Final = 30.0
"""Seconds in which a broker answers. After that it is asked again, or the readers go on without it."""

WhenRead: TypeAlias = Callable[[int, Slice, int], None]
"""Takes in the page of a request, with the edge of its origin."""
WhenLost: TypeAlias = Callable[[], None]
"""Told that a page will not come, because the origin is out of reach."""
WhenLate: TypeAlias = Callable[[int], bool]
"""Told that the page of a request has not come in time; returns whether it is wanted still."""


class PageRequest(NamedTuple):
    """A page that is wanted of the log of an origin, for a feed by its number, or for no feed.

    If `readers` are given, they have these filters, and nobody else reads the page.
    """

    origin: Origin
    request: int
    terms: ReadTerms
    feed: int = 0
    readers: Set[Reader] = frozenset()

    def message(self) -> FetchPage:
        """Return the request as it is sent."""
        return FetchPage(self.origin, self.request, self.terms, self.feed)


def neighbours(feeds: Iterable[Feed]) -> Iterator[list[Feed]]:
    """Yield groups of feeds at one origin whose cursors are near to each other."""
    group: list[Feed] = []
    for feed in sorted(feeds, key=lambda feed: feed.cursor):
        if group and feed.cursor > group[0].cursor + NEAR:
            yield group
            group = []
        group.append(feed)
    if group:
        yield group


def terms_of(feed: Feed, filters: Iterable[Filter], limit: int) -> ReadTerms:
    """Return the terms of a read at the cursor of a feed, for all events that match any of the filters."""
    distinct = dict.fromkeys(filters)
    if len(distinct) > FEW_FILTERS:
        return ReadTerms(feed.cursor, (Filter.all(),), limit, feed.since, is_shared=True)
    return ReadTerms(feed.cursor, widest(distinct), limit, feed.since)


def widest(distinct: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return filters that match at least the same events, without those that another covers."""
    kept: list[Filter] = []
    for one in distinct:
        if not any(other.covers(one) for other in kept):
            kept = [other for other in kept if not one.covers(other)]
            kept.append(one)
    return tuple(kept)


class Waiting:
    """An open request: the page that is wanted, when it was asked for last, and who is told what becomes of it."""

    def __init__(
        self, read: PageRequest, at: float, when_read: WhenRead, lost: WhenLost | None, late: WhenLate | None
    ) -> None:
        self.read = read
        self.at = at
        self.when_read = when_read
        self.when_lost = lost
        self.when_late = late


class Requests:
    """The pages that were asked for, and who waits for each.

    Numbers start at the microseconds of the `clock`: the answer to a request of an earlier life of the broker may still
    be on its way, and must not be taken for another.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = 0
        self._open: dict[int, Waiting] = {}

    def new(
        self,
        origin: Origin,
        terms: ReadTerms,
        when_read: WhenRead,
        *,
        feed: int = 0,
        readers: Set[Reader] = frozenset(),
        lost: WhenLost | None = None,
        late: WhenLate | None = None,
    ) -> PageRequest:
        """Return a new request. If the page is `lost` or `late`, these are told."""
        number = self._last = max(self._last + 1, int(self._clock() * MICROS))
        read = PageRequest(origin, number, terms, feed, readers)
        self._open[number] = Waiting(read, self._clock(), when_read, lost, late)
        return read

    def read(self, number: int, origin: Origin, page: Slice, edge: int) -> None:
        """Hand over the page of a request, or a part of it. One that came too late is ignored."""
        one = self._open.get(number)
        if one is None or one.read.origin != origin:
            return
        if page.more:
            one.at = self._clock()
        else:
            del self._open[number]
        one.when_read(number, page, edge)

    def drop(self, origin: Origin) -> list[WhenLost]:
        """Forget the requests to an origin; return who is to be told."""
        lost = [number for number, one in self._open.items() if one.read.origin == origin]
        told = [self._open.pop(number).when_lost for number in lost]
        return [when_lost for when_lost in told if when_lost is not None]

    def late(self) -> list[PageRequest]:
        """Tell those who wait that a page is late; return the requests to send again, because it is wanted still."""
        now = self._clock()
        again: list[PageRequest] = []
        for number, one in list(self._open.items()):
            if now - one.at <= ANSWER_WITHIN or self._open.get(number) is not one:
                continue
            if one.when_late is not None and not one.when_late(number):
                self._open.pop(number, None)
            else:
                one.at = now
                again.append(one.read)
        return again

    def shift(self, by: float) -> None:
        """Move the times of requests, as the clock was."""
        for one in self._open.values():
            one.at += by


def past_start(since: int | None) -> int | None:
    """Return from when on logs are read for a replay since a time."""
    return None if since is None else max(0, since - FUTURE)


def out_of_reach(origin: Origin) -> str:
    return f"{origin.title} cannot be reached"


def no_answer(origin: Origin) -> str:
    return f"{origin.title} has not answered for {ANSWER_WITHIN:g} s"
