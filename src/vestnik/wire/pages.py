"""Many events, in messages of a size that can be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from vestnik.errors import FilterTooComplex, InvalidEvent, WrongType
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.bounds import LARGEST
from vestnik.wire.frames import filter_size
from vestnik.wire.packing import pack

PAGE: Final = 500
"""Events in a message, at most."""
PAGE_SIZE: Final = 1 << 20
"""Bytes of events in a message, unless it is a single one."""
LARGEST_SAID: Final = LARGEST - 256 * 1024
"""Bytes of a message of a client: an event in it fits into other messages, with what is added to it on its way."""
LARGEST_EVENT: Final = LARGEST_SAID - 1024
"""Bytes of an event that is published, or of a filter that is said."""

Item = TypeVar("Item")


def packed_to_publish(event: Event) -> bytes:
    """An event as it is sent; InvalidEvent where it is none that can be published."""
    if not isinstance(event, Event):
        raise WrongType("an Event is published", event)
    packed = pack(event)
    if len(packed) > LARGEST_EVENT:
        raise InvalidEvent(f"event {event.id} has {len(packed):,} bytes; at most {LARGEST_EVENT:,} are published")
    return packed


def fitting(wanted: Filter) -> Filter:
    """The filter; FilterTooComplex where it is larger than a message."""
    if filter_size(wanted) > LARGEST_EVENT:
        raise FilterTooComplex("bytes as it is sent", LARGEST_EVENT)
    return wanted


def pages(items: Iterable[Item], event_of: Callable[[Item], Event | None]) -> Iterator[tuple[Item, ...]]:
    """All items in order; there may be none."""
    page: list[Item] = []
    size = 0
    for item in items:
        event = event_of(item)
        more = 0 if event is None else len(pack(event))
        if page and (len(page) == PAGE or size + more > PAGE_SIZE):
            yield tuple(page)
            page, size = [], 0
        page.append(item)
        size += more
    if page:
        yield tuple(page)
