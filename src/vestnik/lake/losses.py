"""Losses: positions of a journal that cannot be taken in, by broker and reason.

A position is a place in a journal and holds at most one event. Nobody knows how many events were at positions that are
gone, so losses are counted in positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import groupby
from typing import Final

from msgspec import Struct

from vestnik.wire.messages import Unread


class Kind(StrEnum):
    """Why positions are lost."""

    DROPPED = "dropped"
    """Retention removed them before they were read."""
    DAMAGED = "damaged"
    """They should be in the journal, and cannot be read."""
    NO_EVENT = "no event"
    """There is a record, and it holds no event."""
    REPLACED = "replaced"
    """The journal was replaced by another before it was read to its end."""


PHRASES: Final = {
    Kind.DROPPED: ("was dropped by retention before it was read", "were dropped by retention before they were read"),
    Kind.DAMAGED: ("is damaged or missing", "are damaged or missing"),
    Kind.NO_EVENT: ("holds no event", "hold no events"),
}
"""The phrase for one position, and for several."""


class Loss(Struct, frozen=True):
    """The number of `positions` of a broker's journal that are lost, the `first` and the `last` of them.

    `last` and `positions` are None if another journal replaced this one, since its end is not known then.
    """

    broker: str
    kind: Kind
    first: int
    last: int | None
    positions: int | None

    def __str__(self) -> str:
        if self.positions is None:
            return (
                f"another journal took the place of that of {self.broker}: what the old one had from position "
                f"{self.first:,} on was not read; how many positions that is, is not known"
            )
        one, several = PHRASES[self.kind]
        if self.positions == 1:
            return f"position {self.first:,} of the journal of {self.broker} {one}"
        is_all = self.last == self.first + self.positions - 1
        span = f"{self.first:,} to {self.last:,}" if is_all else f"some of {self.first:,} to {self.last:,}"
        return f"{self.positions:,} positions of the journal of {self.broker} {several} ({span})"


def kind_of(one: Unread) -> Kind:
    """Return the kind of a gap; only a record that is no event has a time."""
    if one.dropped:
        return Kind.DROPPED
    return Kind.DAMAGED if one.time is None else Kind.NO_EVENT


def summed(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return one loss for each broker and kind."""
    ordered = sorted(losses, key=_group)
    return tuple([_sum(list(group)) for _, group in groupby(ordered, key=_group)])


def _group(one: Loss) -> tuple[str, str]:
    return one.broker, one.kind


def _sum(losses: list[Loss]) -> Loss:
    lasts = [one.last for one in losses if one.last is not None]
    counts = [one.positions for one in losses if one.positions is not None]
    first = min(one.first for one in losses)
    return Loss(losses[0].broker, losses[0].kind, first, max(lasts) if lasts else None, sum(counts) if counts else None)
