"""Which pages to read: readers that wait at about the same place of a log share one read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from vestnik.model.filters import Filter
from vestnik.recovery.feed import Feed
from vestnik.wire.origins import Origin, ReadTerms

PAGE: Final = 1_000
"""Events of a page, at most."""
NEAR: Final = 2_000
"""Offsets between cursors that share a read."""
FEW_FILTERS: Final = 64
"""Filters of a read that are compared with each other, so that only the widest travel."""


class PageRequest(NamedTuple):
    """A page that is wanted of the log of an origin."""

    origin: Origin
    request: int
    terms: ReadTerms


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


def widest(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return filters that match the same events, without those that another covers."""
    distinct: Sequence[Filter] = list(dict.fromkeys(filters))
    if len(distinct) > FEW_FILTERS:
        return tuple(distinct)
    kept: list[Filter] = []
    for one in distinct:
        if not any(other.covers(one) for other in kept):
            kept = [other for other in kept if not one.covers(other)]
            kept.append(one)
    return tuple(kept)
