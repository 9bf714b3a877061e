"""What is found of the past, at several brokers, becomes one sequence."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from vestnik.broker.selection import Selection
from vestnik.model.events import Event, Pair
from vestnik.model.filters import Filter
from vestnik.wire.messages import NodeId, Taken
from vestnik.wire.replays import Replay


class Replaying:
    """The past is being asked for, by numbered recalls, and what comes meanwhile waits."""

    def __init__(self, replay: Replay) -> None:
        self.waiting: set[int] = set()  # the numbers of the recalls
        self.lost: list[str] = []
        self.live: list[tuple[Event, bool]] = []  # and whether it comes again
        self._replay = replay
        self._found: dict[NodeId, list[Taken]] = {}

    def take(self, broker: NodeId, taken: Iterable[Taken]) -> None:
        self._found.setdefault(broker, []).extend(taken)

    def past(self, wanted: Filter) -> list[Event]:
        """What is replayed."""
        selection = Selection((wanted,), self._replay)
        known: set[Place] = set()  # several may have the same
        for taken in merge(self._found.values()):
            if place_of(taken.event) not in known:
                known.add(place_of(taken.event))
                selection.take(taken)
        return [taken.event for taken in selection.taken()]


class MakingUp:
    """What subscriptions of a client lack is being asked for, by numbered recalls.

    What comes for any of its subscriptions meanwhile waits: it may be an effect of what is missing. Subscriptions go by
    their numbering.
    """

    def __init__(self) -> None:
        self.waiting: set[int] = set()  # the numbers of the recalls
        self.lost: list[tuple[int, str]] = []  # for which subscription, and why
        self.live: list[tuple[Event, list[int]]] = []  # and the subscriptions that want it
        self.holes: set[tuple[int, NodeId]] = set()  # the subscriptions, and the brokers that have not sent all
        self._found: dict[NodeId, list[Taken]] = {}
        self._wanted_by: dict[Place, list[int]] = {}

    def take(self, broker: NodeId, epoch: int, taken: Taken) -> None:
        wanted_by = self._wanted_by.setdefault(place_of(taken.event), [])
        if not wanted_by:
            self._found.setdefault(broker, []).append(taken)
        wanted_by.append(epoch)

    def is_behind_hole(self, event: Event, epoch: int) -> bool:
        """Whether something is missing before an event: it will come again with that."""
        return event.stream is not None and (epoch, event.stream[0]) in self.holes

    def missed(self) -> Iterator[tuple[Event, list[int]]]:
        """What is made up for, and the subscriptions that want it."""
        in_order = [sorted(taken, key=lambda one: (one.position, one.event.seq or 0)) for taken in self._found.values()]
        for taken in merge(in_order):
            yield taken.event, self._wanted_by[place_of(taken.event)]


Place: TypeAlias = tuple[Pair | None, int | None]


def place_of(event: Event) -> Place:
    """What tells an event from all others on its way."""
    return event.stream, event.seq


def merge(sequences: Iterable[Sequence[Taken]]) -> Iterator[Taken]:
    """One sequence of several, each of which keeps its order: by time, source and seq of those that are next.

    None comes before a cause that is in another sequence, unless they wait for each other.
    """
    given = list(sequences)
    home = {_pair(taken): place for place, sequence in enumerate(given) for taken in sequence}
    rests = [iter(sequence) for sequence in given]
    ready: list[tuple[_Rank, int, Taken]] = []
    parked: dict[Pair, list[tuple[int, Taken]]] = {}

    def queue(place: int, taken: Taken) -> None:
        cause = next((cause for cause in taken.event.causes if home.get(cause, place) != place), None)
        if cause is None:
            heapq.heappush(ready, (_rank(taken), place, taken))
        else:
            parked.setdefault(cause, []).append((place, taken))

    for place, rest in enumerate(rests):
        for taken in islice(rest, 1):
            queue(place, taken)
    while ready or parked:
        if not ready:
            ready = [(_rank(taken), place, taken) for place, taken in parked.pop(next(iter(parked)))]
            heapq.heapify(ready)
        _, place, first = heapq.heappop(ready)
        yield first
        home.pop(_pair(first), None)
        for waiting in parked.pop(_pair(first), []):
            queue(*waiting)
        for taken in islice(rests[place], 1):
            queue(place, taken)


_Rank: TypeAlias = tuple[int, str, int]


def _rank(taken: Taken) -> _Rank:
    event = taken.event
    return taken.time if event.time is None else event.time, event.source, event.seq or 0


def _pair(taken: Taken) -> Pair:
    return taken.event.source, taken.event.id
