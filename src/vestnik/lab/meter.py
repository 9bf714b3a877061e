"""How large messages between brokers are, and what they say.

One encoding for all: a message is the list of its kind and its fields, filters are the plain data of `Filter.to_dict`,
events that of `Event.to_json`, and the whole is MessagePack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Raw, json, msgpack

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import AdminA, AdminS, Interest, Message
from vestnik.wire.origins import Routed


class Meter:
    """Adds up messages: their bytes by kind, and the filters that neighbours were told and told to forget."""

    def __init__(self) -> None:
        self.bytes: Counter[type[Message]] = Counter()
        self.added = 0
        self.removed = 0

    def take(self, message: Message) -> None:
        self.bytes[type(message)] += size(message)
        if isinstance(message, AdminS):
            self.added += len(message.add)
            self.removed += len(message.remove)


def size(message: Message) -> int:
    """Return how many bytes a message between brokers has."""
    return len(msgpack.encode([type(message).__name__, *_fields(message)]))


def _fields(message: Message) -> list[Any]:
    match message:
        case Routed(origin=origin, events=events):
            return [origin, [_event(event) for event in events]]
        case AdminS(add, remove) | AdminA(add, remove):
            return [_interests(add), _interests(remove)]
    raise TypeError(f"brokers here do not send {type(message).__name__}")


def _interests(interests: Iterable[Interest]) -> list[Any]:
    return [[_filter(one.filter), one.tag, one.lease] for one in interests]


@lru_cache(maxsize=65_536)
def _filter(wanted: Filter) -> Raw:
    return Raw(msgpack.encode(wanted.to_dict()))


@lru_cache(maxsize=4096)
def _event(event: Event) -> Raw:
    return Raw(msgpack.encode(json.decode(event.to_json())))
