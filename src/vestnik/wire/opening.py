"""Messages that the decoder does not follow: they are decoded as plain data, and the events in them one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from msgspec import convert, inspect

from vestnik.model.events import Event
from vestnik.wire.known import AnyMessage
from vestnik.wire.messages import Message
from vestnik.wire.packing import decode_plain, event_of

Hook: TypeAlias = Callable[[type, Any], Any]


def opened(body: bytes, hook: Hook) -> Message:
    """The message; `hook` makes what is neither plain data nor an event. One of UNREADABLE where it is none."""
    read: Message = convert(_with_events(_kinds(), decode_plain(body)), AnyMessage, dec_hook=hook)
    return read


@cache
def _kinds() -> inspect.Type:
    return inspect.type_info(AnyMessage)


def _with_events(kind: inspect.Type, value: Any) -> Any:
    """`value` with events in the place of what they are decoded to; what is of another kind is left as it is."""
    if isinstance(kind, inspect.StructType) and kind.cls is Event:
        return event_of(value)
    if not isinstance(value, list) or not value:
        return value
    if isinstance(kind, inspect.VarTupleType):
        return [_with_events(kind.item_type, item) for item in value]
    if isinstance(kind, inspect.UnionType):
        of = [inner for inner in kind.types if isinstance(inner, inspect.StructType) and inner.tag in (None, value[0])]
        return _with_events(of[0], value) if of else value
    if isinstance(kind, inspect.StructType):
        tag = [value[0]] if kind.tag is not None else []
        types = [field.type for field in kind.fields]
        return [*tag, *map(_with_events, types, value[len(tag) :])]
    return value
