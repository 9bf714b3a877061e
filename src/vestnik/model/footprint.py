"""How much memory an event takes: a byte on the wire may become an object of sixty."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

from vestnik.model.events import Event
from vestnik.model.frozen import FrozenDict, FrozenList

_ENVELOPE: Final = 500
"""Bytes of an event without its data."""
_VALUE: Final = 64
"""Bytes of a value, without its characters if it is a string."""


def footprint(event: Event, most: int = sys.maxsize) -> int:
    """Return the bytes that an event takes in memory, roughly; or some number above `most` if they are more."""
    size = _ENVELOPE
    maps: list[dict[str, Any]] = [event.body]
    lists: list[list[Any]] = []
    while (maps or lists) and size <= most:
        values: Iterable[Any]
        if maps:
            names = maps.pop()
            size += _VALUE * len(names) + len("".join(names))
            values = names.values()
        else:
            values = found = lists.pop()
            size += _VALUE * len(found)
        if size > most:
            break
        for value in values:
            kind = type(value)
            if kind is str:
                size += len(value)
            elif kind is dict or kind is FrozenDict:
                maps.append(value)
            elif kind is list or kind is FrozenList:
                lists.append(value)
    return size
