"""Appends as a broker makes them, for tests of stores."""

from __future__ import annotations

from vestnik import Event
from vestnik.broker.effects import Append
from vestnik.wire.packing import pack


def append_at(first: int, *events: Event, request: int = 1) -> Append:
    """Return an append at offsets from `first` on. Events that have a seq get their offset as such."""
    stamped = tuple([one if one.seq is None else one.stamped("b", first + n) for n, one in enumerate(events)])
    return Append("c", stamped, request, first=first, time=first, packed=tuple(map(pack, stamped)))
