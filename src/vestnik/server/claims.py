"""Which parts of the logs of brokers a history has."""

from __future__ import annotations

from collections.abc import Sequence

from vestnik.wire.messages import NodeId, Taken
from vestnik.wire.origins import Cover, Origin, Span


class _Claim:
    """Everything wanted from offset `first` to below `end` was kept, at `position` in the history or later."""

    def __init__(self, origin: Origin, first: int, position: int) -> None:
        self.origin = origin
        self.first = first
        self.end = first
        self.position = position


class Claims:
    """Parts of logs of which everything was given to a history live, one of each broker.

    A history drops its oldest events first: of what it was given since a claim began, a beginning.
    """

    def __init__(self) -> None:
        self._claims: dict[NodeId, _Claim] = {}

    def note(self, origin: Origin, offset: int, position: int, first: int) -> None:
        """Note an event that was kept. Everything wanted from offset `first` of its log on was kept, too."""
        claim = self._claims.get(origin.broker)
        if claim is None or claim.origin != origin:
            claim = self._claims[origin.broker] = _Claim(origin, min(first, offset), position)
        claim.end = max(claim.end, offset + 1)

    def drop(self, broker: NodeId) -> None:
        """Claim nothing of the log of a broker."""
        self._claims.pop(broker, None)

    def clear(self) -> None:
        """Claim nothing: something was lost on the way, of a log that is not known."""
        self._claims.clear()

    def covers(self, kept: Sequence[Taken]) -> tuple[Cover, ...]:
        """Return what is claimed, given all events that are kept now, in order."""
        covers = [Cover(claim.origin, Span(_first(claim, kept), claim.end)) for claim in self._claims.values()]
        return tuple([cover for cover in covers if cover.span.first < cover.span.end])


def _first(claim: _Claim, kept: Sequence[Taken]) -> int:
    """Return the offset from which on nothing was dropped."""
    if kept and kept[0].position <= claim.position:
        return claim.first
    broker, since = claim.origin.broker, claim.position
    offsets = [one.event.seq for one in kept if one.event.broker == broker and one.position >= since]
    return min([offset for offset in offsets if offset is not None], default=claim.end)
