"""Events as MessagePack: what is always there in an array, what seldom is in a map after it."""

from __future__ import annotations

from typing import Any

from msgspec import msgpack

from vestnik.errors import InvalidEvent
from vestnik.model.events import Event

_encode = msgpack.Encoder().encode
_SELDOM = ("subject", "time", "not_before", "expires", "seq")


def pack(event: Event) -> bytes:
    return _encode([event.type, event.source, event.id, event.data, _seldom(event)])


def unpack(packed: Any) -> Event:
    """The event of a decoded array; InvalidEvent, and nothing else, where it is none."""
    if not isinstance(packed, list) or len(packed) != 5 or not isinstance(packed[4], dict | None):
        raise InvalidEvent("an event is an array of type, source, id, data and a map")
    type, source, id, data, seldom = packed
    try:
        return Event(type, data, source=source, id=id, **(seldom or {}))
    except TypeError as error:
        raise InvalidEvent(str(error)) from None


def _seldom(event: Event) -> dict[str, Any] | None:
    found = {name: value for name in _SELDOM if (value := getattr(event, name)) is not None}
    if event.priority != 4:
        found["priority"] = event.priority
    if event.causes:
        found["causes"] = event.causes
    if event.extensions:
        found["extensions"] = event.extensions
    if event.stream is not None:
        found["stream"] = event.stream
    return found or None
