"""Events that several brokers have, in one order."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from msgspec import structs

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.wire.messages import NodeId, Taken

Place: TypeAlias = tuple[Pair | None, int | None]


def place_of(event: Event) -> Place:
    """What tells an event from all others on its way."""
    return event.stream, event.seq


def by_origin(found: Mapping[NodeId, Sequence[Taken]]) -> list[list[Taken]]:
    """For each broker one sequence of what it took, each event once, whoever has it; streams keep their order.

    Copies have the times at which they came to a history. So they do not go by these, where the broker itself has later
    ones: they are what it has no more.
    """
    own: dict[NodeId, dict[Place, Taken]] = {}
    copies: dict[NodeId, dict[Place, Taken]] = {}
    for broker, sequence in found.items():
        for taken in sequence:
            origin = broker if taken.event.stream is None else taken.event.stream[0]
            holder = own if origin == broker else copies
            holder.setdefault(origin, {}).setdefault(place_of(taken.event), taken)
    return [_completed(own.get(origin, {}), copies.get(origin, {})) for origin in sorted({*own, *copies})]


def _completed(own: Mapping[Place, Taken], copies: Mapping[Place, Taken]) -> list[Taken]:
    """What a broker has, with copies: each before what follows in its stream; all that are older, before everything."""
    first: dict[Pair | None, int] = {}
    for taken in own.values():
        first.setdefault(taken.event.stream, _seq(taken))
    older: dict[Pair | None, list[Taken]] = {}
    between: dict[Pair | None, deque[Taken]] = {}
    for place, taken in sorted(copies.items(), key=lambda item: _seq(item[1])):
        stream = taken.event.stream
        if place in own:
            continue
        if stream in first and _seq(taken) > first[stream]:
            between.setdefault(stream, deque()).append(taken)
        else:
            older.setdefault(stream, []).append(taken)
    earliest = [taken.time for taken in islice(own.values(), 1)]
    whole = [structs.replace(taken, time=min([taken.time, *earliest])) for taken in merge(older.values())]
    for taken in own.values():
        waiting = between.get(taken.event.stream, deque())
        while waiting and _seq(waiting[0]) < _seq(taken):
            whole.append(structs.replace(waiting.popleft(), time=taken.time))
        whole.append(taken)
    return [*whole, *chain.from_iterable(between.values())]


def _seq(taken: Taken) -> int:
    return taken.event.seq or 0


def by_stream(events: Sequence[Event]) -> list[int]:
    """The places of events, each stream in its order and none before a cause that is in another; else as they are."""
    streams: dict[Pair | None, list[Taken]] = {}
    for place, event in enumerate(events):
        streams.setdefault(event.stream, []).append(Taken(place, 0, event))
    return [taken.position for taken in merge([sorted(one, key=_seq) for one in streams.values()], _position)]


def merge(sequences: Iterable[Sequence[Taken]], rank: Callable[[Taken], Any] | None = None) -> Iterator[Taken]:
    """One sequence of several, each of which keeps its order: by `rank` of those next, or by time, source and seq.

    None comes before a cause that is in another sequence, unless they wait for each other.
    """
    given, rank = list(sequences), rank or rank_of
    home = {pair_of(taken): place for place, sequence in enumerate(given) for taken in sequence}
    rests = [iter(sequence) for sequence in given]
    ready: list[tuple[Any, int, Taken]] = []
    parked: dict[Pair, list[tuple[int, Taken]]] = {}

    def queue(place: int, taken: Taken) -> None:
        cause = next((cause for cause in taken.event.causes if home.get(cause, place) != place), None)
        if cause is None:
            heapq.heappush(ready, (rank(taken), place, taken))
        else:
            parked.setdefault(cause, []).append((place, taken))

    for place, rest in enumerate(rests):
        for taken in islice(rest, 1):
            queue(place, taken)
    while ready or parked:
        if not ready:
            ready = [(rank(taken), place, taken) for place, taken in parked.pop(next(iter(parked)))]
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
    return taken.time if event.time is None else event.time, event.source, _seq(taken)


def _position(taken: Taken) -> int:
    return taken.position


def pair_of(taken: Taken) -> Pair:
    return taken.event.source, taken.event.id
