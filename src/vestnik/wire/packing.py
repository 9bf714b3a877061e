"""Events as MessagePack: type, source, id, data, a map of what seldom is there; then the broker and the seq, if any.

What most events are like is checked by the decoder itself, as it reads them (`Plain`). All others are checked by Event.
"""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta, Struct, msgpack

from vestnik.errors import InvalidEvent
from vestnik.model.events import NOTHING, Event, Pair, checked_event
from vestnik.model.frozen import MAX_INT, FrozenDict
from vestnik.model.times import FIRST, LAST

Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Finite: TypeAlias = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Scalar: TypeAlias = bool | Annotated[int, Meta(le=MAX_INT)] | Finite | str | None
Instant: TypeAlias = Annotated[int, Meta(ge=FIRST, le=LAST)]

_SELDOM: Final = ("subject", "time", "priority", "not_before", "expires", "causes", "extensions")
_DEFAULTS: Final = (None, None, 4, None, None, (), NOTHING)
_seldom = attrgetter(*_SELDOM)
_encode = msgpack.Encoder().encode


class Seldom(Struct, forbid_unknown_fields=True, gc=False):
    """What may be in the map of a plain event."""

    subject: Text | None = None
    time: Instant | None = None
    priority: Annotated[int, Meta(ge=0, le=9)] = 4
    not_before: Instant | None = None
    expires: Instant | None = None


class Plain(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """An event as it is packed, where its data are scalars and it names neither causes nor extensions."""

    type: Text
    source: Text
    id: Text
    data: dict[str, Scalar]
    seldom: Seldom | None
    broker: Text | None = None
    seq: Annotated[int, Meta(ge=1, le=MAX_INT)] | None = None


def pack(event: Event) -> bytes:
    seldom = _seldom(event)
    found = None if seldom == _DEFAULTS else _differing(seldom)
    stream, seq = event.stream, event.seq
    if stream is None and seq is None:
        return _encode((event.type, event.source, event.id, event.data, found))
    return _encode((event.type, event.source, event.id, event.data, found, stream and stream[0], seq))


def _differing(seldom: tuple[Any, ...]) -> dict[str, Any]:
    rows = zip(_SELDOM, seldom, _DEFAULTS, strict=True)
    return {name: value for name, value, default in rows if value != default}


def unpack(packed: Any) -> Event:
    """The event of a decoded array; InvalidEvent, and nothing else, where it is none."""
    if not isinstance(packed, list) or not 5 <= len(packed) <= 7 or not isinstance(packed[4], dict | None):
        raise InvalidEvent("an event is an array of type, source, id, data and a map")
    type, source, id, data, seldom, broker, seq = (*packed, None, None)[:7]
    stream = None if broker is None else (broker, source)
    try:
        return Event(type, data, source=source, id=id, **(seldom or {}), stream=stream, seq=seq)
    except TypeError as error:
        raise InvalidEvent(str(error)) from None


def opened(plain: Plain) -> Event:
    """As `unpack`, of what the decoder has checked."""
    source, broker, seldom = plain.source, plain.broker, plain.seldom
    stream: Pair | None = None if broker is None else (broker, source)
    data = FrozenDict(plain.data)
    if seldom is None:
        return checked_event(
            plain.type, data, source, plain.id, None, None, 4, None, None, (), NOTHING, stream, plain.seq
        )
    return checked_event(
        plain.type,
        data,
        source,
        plain.id,
        seldom.subject,
        seldom.time,
        seldom.priority,
        seldom.not_before,
        seldom.expires,
        (),
        NOTHING,
        stream,
        plain.seq,
    )
