"""Which segments have to go."""

from __future__ import annotations

from collections.abc import Sequence

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
