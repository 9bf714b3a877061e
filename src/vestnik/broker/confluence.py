"""Sequences become one while they become known."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from vestnik.broker.sequences import pair_of, rank_of
from vestnik.model.envelope import Pair
from vestnik.wire.messages import NodeId, Taken

FEW_HERE: Final = 1000
"""So few of a sequence are here that more is wanted."""


class Late(NamedTuple):
    """What came of a broker meanwhile, in the order in which it came."""

    broker: NodeId


Key: TypeAlias = NodeId | Late


class Confluence:
    """What brokers took: of those that are next, by time, source and seq. Each sequence keeps its order.

    None comes before a cause that is here in another sequence, or that another has not come to by its broker's clock.
    What came meanwhile comes when nothing else can. A broker is open as long as there is more behind the position up to
    which all that it took is here.
    """

    def __init__(self, reached: Mapping[NodeId, int]) -> None:
        self._here: dict[Key, deque[Taken]] = {}
        self._open: dict[NodeId, int] = {}
        self._home: dict[Pair, Key] = {}
        for broker, position in reached.items():
            self.open(broker, position)

    def open(self, broker: NodeId, position: int) -> None:
        """All that a broker took up to a position is here; there is more."""
        self._open[broker] = position

    def end(self, broker: NodeId) -> None:
        """There is no more of a sequence."""
        self._open.pop(broker, None)

    def take(self, key: Key, taken: Iterable[Taken]) -> None:
        """More of a sequence; of a broker, what it took earlier may come later."""
        for one in taken:
            here = self._here.setdefault(key, deque())
            if here and one.position < here[-1].position:
                insort(here, one, key=_position)
            else:
                here.append(one)
            self._home[pair_of(one)] = key

    def keep_late(self, is_kept: Callable[[Taken], bool]) -> None:
        """Drop some of what came meanwhile."""
        for key in [key for key in self._here if isinstance(key, Late)]:
            here = self._here.pop(key)
            for one in here:
                if self._home.get(pair_of(one)) == key:
                    del self._home[pair_of(one)]
            self.take(key, [one for one in here if is_kept(one)])

    def wants(self, broker: NodeId) -> bool:
        """Whether little is here of what can come next of a broker."""
        here = self._here.get(broker, deque())
        known = bisect_right(here, self._open[broker], key=_position) if broker in self._open else len(here)
        return known < FEW_HERE

    @property
    def is_over(self) -> bool:
        return not self._open and not any(self._here.values())

    @property
    def is_late(self) -> bool:
        """Whether nothing is left but what came meanwhile."""
        return not self._open and all(isinstance(key, Late) for key, here in self._here.items() if here)

    def next(self) -> tuple[Key, Taken] | None:
        """What comes next, and of which sequence; None where that is not known yet, or nothing does."""
        firsts = [key for key, here in self._here.items() if here]
        if not firsts or not all(self._is_known(broker) for broker in self._open):
            return None
        if len(firsts) > 1:
            free = [key for key in firsts if not self._waits(key)]
            sure = [key for key in free if not self._may_wait(key)]
            firsts = [min(sure or free or firsts, key=self._rank)]
        key = firsts[0]
        taken = self._here[key].popleft()
        self._home.pop(pair_of(taken), None)
        if not self._here[key]:
            del self._here[key]
        return key, taken

    def _is_known(self, broker: NodeId) -> bool:
        """Whether what is next of a broker is here."""
        here = self._here.get(broker)
        return here is not None and bool(here) and here[0].position <= self._open[broker]

    def _waits(self, key: Key) -> bool:
        """Whether what is next of a sequence is an effect of what is behind what is next of others."""
        if isinstance(key, Late) and key.broker in self._open:
            return True
        return any(self._home.get(cause, key) != key for cause in self._here[key][0].event.causes)

    def _may_wait(self, key: Key) -> bool:
        """Whether what is next of a sequence may be an effect of what is not here."""
        first = self._here[key][0]
        if not first.event.causes:
            return False
        return any(self._come_to(other) < first.time for other in self._open if other != key)

    def _come_to(self, broker: NodeId) -> int:
        """The time up to which all that a broker took is here, by its clock."""
        here, position = self._here[broker], self._open[broker]
        last = -1 if here[-1].position <= position else bisect_right(here, position, key=_position) - 1
        return here[last].time

    def _rank(self, key: Key) -> tuple[bool, tuple[int, str, int]]:
        first = self._here[key][0]
        return (True, (first.position, "", 0)) if isinstance(key, Late) else (False, rank_of(first))


def _position(taken: Taken) -> int:
    return taken.position
