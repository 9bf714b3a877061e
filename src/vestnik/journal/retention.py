"""Which segments have to go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from vestnik.journal.records import Record, size_of
from vestnik.journal.segments import HEADER_SIZE, Segment
from vestnik.journal.settings import Settings


def is_full(segment: Segment, settings: Settings, now: int | None = None) -> bool:
    """Whether a segment is to be closed: by its size, by its count, and where it is `now`, by the age of its first."""
    if segment.size <= HEADER_SIZE:
        return False
    most, oldest = settings.segment_count, settings.segment_age
    by_count = most is not None and segment.count >= most
    by_age = oldest is not None and now is not None and segment.began < now - oldest
    return segment.size >= settings.segment_size or by_count or by_age


def surplus(segments: Sequence[Segment], settings: Settings, now: int | None = None) -> int:
    """How many segments at the front are beyond what is retained; never the last one, which has room to grow."""
    size = sum(segment.size for segment in segments[:-1]) + settings.segment_size
    count = sum(segment.count for segment in segments)
    for number, segment in enumerate(segments[:-1]):
        if not _is_beyond(size, count, segment.latest, settings, now):
            return number
        size -= segment.size
        count -= segment.count
    return len(segments) - 1


def _is_beyond(size: int, count: int, latest: int, settings: Settings, now: int | None) -> bool:
    by_count = settings.retain_count is not None and count > settings.retain_count
    by_age = settings.retain_age is not None and now is not None and latest < now - settings.retain_age
    return size > settings.retain_size or by_count or by_age


def is_oversized(segment: Segment, settings: Settings) -> bool:
    """Whether a segment is twice as large as `settings` make one, so that dropping it drops too much."""
    most, oldest = settings.segment_count, settings.segment_age
    by_count = most is not None and segment.count > 2 * most
    by_age = oldest is not None and segment.count > 1 and segment.latest - segment.began > 2 * oldest
    return segment.size > 2 * settings.segment_size or by_count or by_age


def first_kept(
    segments: Sequence[Segment], settings: Settings, now: int, read: Callable[[Segment], list[Record]]
) -> tuple[int, int]:
    """Return the position after the last record that is not retained, and the number of its segment.

    `read` returns the records of a segment. It is called for one segment at most.
    """
    count = inf if settings.retain_count is None else settings.retain_count
    oldest = -inf if settings.retain_age is None else now - settings.retain_age
    size = settings.retain_size - settings.segment_size
    for number, segment in reversed(list(enumerate(segments))):
        if segment.count > count or segment.size > size or (segment.count and segment.began < oldest):
            size -= HEADER_SIZE * (size // settings.segment_size + 1)
            for record in reversed([record for record in read(segment) if record.position <= segment.last]):
                count, size = count - 1, size - size_of(record)
                if count < 0 or size < 0 or record.time < oldest:
                    return record.position + 1, number
            return segment.first, number
        count, size = count - segment.count, size - segment.size
    return segments[0].first, 0
