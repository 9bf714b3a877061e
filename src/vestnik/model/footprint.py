"""How much memory an event takes: a byte on the wire may become an object of sixty."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from vestnik.model.events import Event
from vestnik.model.frozen import FrozenDict, FrozenList

LOOKED_AT: Final = 20_000
"""Values of one event that are looked at; two milliseconds or so. Long lists of numbers do not count."""
_ENVELOPE: Final = 500
"""Bytes of an event without its data."""
_VALUE: Final = 64
"""Bytes of a value, without its characters if it is a string."""
_LONG: Final = 100
"""Values in a list that may be one of numbers only, such as a signal."""
_NUMBERS: Final = frozenset({int, float, bool, type(None)})


def footprint(event: Event) -> int | None:
    """Return the bytes that an event takes in memory, roughly; None if it has too many values to look at them."""
    size = _ENVELOPE
    looked_at = 0
    maps: list[dict[str, Any]] = [event.body]
    lists: list[list[Any]] = []
    while maps or lists:
        values: Collection[Any]
        if maps:
            names = maps.pop()
            size += len("".join(names))
            values = names.values()
        else:
            values = lists.pop()
        count = len(values)
        size += _VALUE * count
        if count > _LONG and _NUMBERS.issuperset(map(type, values)):
            continue
        looked_at += count
        if looked_at > LOOKED_AT:
            return None
        for value in values:
            kind = type(value)
            if kind is str:
                size += len(value)
            elif kind is dict or kind is FrozenDict:
                maps.append(value)
            elif kind is list or kind is FrozenList:
                lists.append(value)
    return size
