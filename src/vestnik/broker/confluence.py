"""Sequences become one while they become known."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from vestnik.broker.sequences import pair_of, rank_of
from vestnik.model.envelope import Pair
from vestnik.wire.messages import NodeId, Taken

FEW: Final = 1000
"""So few of a sequence are here that more is wanted."""


class Confluence:
    """What brokers took: of those that are next, by time, source and seq. Each sequence keeps its order.

    None comes before a cause that is here in another sequence, or that another has not come to by its broker's clock.
    """

    def __init__(self, brokers: Iterable[NodeId]) -> None:
        self._here: dict[NodeId, deque[Taken]] = {broker: deque() for broker in brokers}
        self._open = set(self._here)
        self._home: dict[Pair, NodeId] = {}

    def take(self, broker: NodeId, taken: Iterable[Taken]) -> None:
        """More of a sequence."""
        for one in taken:
            self._here[broker].append(one)
            self._home[pair_of(one)] = broker

    def end(self, broker: NodeId) -> None:
        """There is no more of a sequence."""
        self._open.discard(broker)

    def wants(self, broker: NodeId) -> bool:
        return len(self._here[broker]) < FEW

    @property
    def is_over(self) -> bool:
        return not self._open and not any(self._here.values())

    def next(self) -> Taken | None:
        """What comes next; None where that is not known yet, or nothing does."""
        if not all(self._here[broker] for broker in self._open):
            return None
        firsts = [broker for broker, here in self._here.items() if here]
        if not firsts:
            return None
        if len(firsts) > 1:
            free = [broker for broker in firsts if not self._waits(broker)]
            firsts = [min(free or firsts, key=lambda broker: rank_of(self._here[broker][0]))]
        taken = self._here[firsts[0]].popleft()
        self._home.pop(pair_of(taken), None)
        return taken

    def _waits(self, broker: NodeId) -> bool:
        """Whether what is next of a broker is an effect of what is, or may be, behind what is next of others."""
        first = self._here[broker][0]
        if not first.event.causes:
            return False
        if any(self._home.get(cause, broker) != broker for cause in first.event.causes):
            return True
        return any(self._here[other][-1].time < first.time for other in self._open if other != broker)
