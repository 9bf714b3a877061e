"""Events that several brokers have, in one order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from vestnik.model.envelope import Pair
from vestnik.wire.messages import Taken


def merge(sequences: Iterable[Sequence[Taken]]) -> Iterator[Taken]:
    """Yield one sequence of several, each of which keeps its order: by time, source and seq of those next.

    None comes before a cause that is in another sequence, unless they wait for each other.
    """
    given = list(sequences)
    home = {pair_of(taken): place for place, sequence in enumerate(given) for taken in sequence}
    rests = [iter(sequence) for sequence in given]
    ready: list[tuple[Any, int, Taken]] = []
    parked: dict[Pair, list[tuple[int, Taken]]] = {}

    def queue(place: int, taken: Taken) -> None:
        cause = next((cause for cause in taken.event.causes if home.get(cause, place) != place), None)
        if cause is None:
            heapq.heappush(ready, (rank_of(taken), place, taken))
        else:
            parked.setdefault(cause, []).append((place, taken))

    for place, rest in enumerate(rests):
        for taken in islice(rest, 1):
            queue(place, taken)
    while ready or parked:
        if not ready:
            ready = [(rank_of(taken), place, taken) for place, taken in parked.pop(next(iter(parked)))]
            heapq.heapify(ready)
        _, place, first = heapq.heappop(ready)
        yield first
        home.pop(pair_of(first), None)
        for waiting in parked.pop(pair_of(first), []):
            queue(*waiting)
        for taken in islice(rests[place], 1):
            queue(place, taken)


def rank_of(taken: Taken) -> tuple[int, str, int]:
    event = taken.event
    return taken.time if event.time is None else event.time, event.source, event.seq or 0


def pair_of(taken: Taken) -> Pair:
    return taken.event.source, taken.event.id
