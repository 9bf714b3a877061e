"""Replays of several origins as one: merged in the order of time, or what is picked of all together."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.recovery.filling import Filling
from vestnik.recovery.selection import Selection
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Origin, Placed, Slice, Span
from vestnik.wire.replays import Replay

MANY: Final = 1_000
"""Events that are picked of one log and given at once."""

Rank: TypeAlias = tuple[int, int, str, Origin, int]
"""The time of an event, whether it comes before or after others of that time, its source, its origin and its seq."""


class Held(NamedTuple):
    """The events of a page that are not given yet, up to which offset it went, and the bytes of one on average."""

    events: deque[Placed]
    upto: int
    size: int


class Merge:
    """The pages of a replay that are here and not given yet, at most one of each origin.

    If it reads `histories`, these may fill gaps at the start of logs.
    """

    def __init__(self, histories: Iterable[Origin] = ()) -> None:
        known = list(histories)
        self.filling = Filling(known) if known else None
        self._held: dict[Origin, Held] = {}

    def holds(self, origin: Origin) -> bool:
        return origin in self._held

    def hold(self, origin: Origin, page: Slice) -> None:
        self._held[origin] = Held(deque(page.placed()), page.upto, page.average_size)

    def size_at(self, origin: Origin) -> int:
        """Return the bytes of an event in the page of an origin, on average."""
        return self._held[origin].size

    def drop(self, origin: Origin) -> None:
        """Forget the page of an origin; it is fetched again."""
        self._held.pop(origin, None)

    def earliest(self, origins: Iterable[Origin]) -> tuple[Origin, Placed]:
        """Return the event that is next in the order of time, and its origin. All these origins have a page here.

        A copy in a history has its place in its own log: it comes after what that log has before it, and not later
        than what the log has after it. None comes before a cause that is in a page of another origin, unless they wait
        for each other.
        """
        heads = [(self._held[origin].events[0], origin) for origin in origins]
        logs: dict[NodeId | None, Placed] = {
            origin.broker: placed for placed, origin in heads if not _is_copy(placed, origin)
        }
        heads.sort(key=lambda head: _rank(head[0], head[1], logs.get(head[0].event.broker)))
        for placed, origin in heads:
            if not placed.event.causes or not self._waits(placed.event, origin):
                return origin, placed
        placed, origin = heads[0]
        return origin, placed

    def _waits(self, effect: Event, origin: Origin) -> bool:
        """Return whether a cause of an event is in the page of another origin."""
        others = [held.events for one, held in self._held.items() if one != origin]
        return any((one.event.source, one.event.id) in effect.causes for events in others for one in events)

    def pop(self, origin: Origin) -> int | None:
        """Remove the next event of an origin. After the last one, return up to which offset its page went."""
        held = self._held[origin]
        held.events.popleft()
        return None if held.events else self._held.pop(origin).upto


class Picks:
    """The picks of a replay at each origin, until all that were asked have answered. One that is lost is left out.

    It picks of what was accepted before the time `until`, or of all. If the last events `are_many` and of one log, they
    are not held: the log says where they begin, and the reader reads them page by page.
    """

    def __init__(self, replay: Replay, until: int | None = None) -> None:
        self.replay = replay
        self.until = until
        self.is_asked = False
        self.reasons: list[str] = []  # what is missing, in words
        self._parts: dict[Origin, list[Slice]] = {}
        self.are_many = False

    def ask(self, origins: Iterable[Origin], missing: Iterable[str]) -> None:
        """Wait for these origins; others are missing."""
        self.is_asked = True
        self.reasons += missing
        self._parts = {origin: [] for origin in origins}
        are_last = self.replay.latest_by is None and self.replay.since is None
        self.are_many = are_last and len(self._parts) == 1 and (self.replay.bound or 0) > MANY

    def origins(self) -> list[Origin]:
        return list(self._parts)

    def places(self) -> dict[Origin, Span]:
        """Return where what is picked begins and ends, if it is read page by page."""
        parts = self._parts.items() if self.are_many else ()
        return {origin: Span(part[-1].first, part[-1].upto) for origin, part in parts}

    def found(self, origin: Origin, part: Slice) -> None:
        if origin in self._parts:
            self._parts[origin].append(part)
            self.reasons += [f"{origin.title}: {part.reason}"] if part.reason else []

    def drop(self, origin: Origin, reason: str) -> None:
        """Leave out an origin that has not answered."""
        if origin in self._parts and not self._has_answered(origin):
            self.reasons.append(reason)
            del self._parts[origin]

    def _has_answered(self, origin: Origin) -> bool:
        parts = self._parts[origin]
        return bool(parts) and not parts[-1].more

    @property
    def is_complete(self) -> bool:
        return self.is_asked and all(map(self._has_answered, self._parts))

    def ends(self) -> dict[Origin, int]:
        """Return the offset of each origin at which the replay ends, and the live events start."""
        return {origin: parts[-1].upto for origin, parts in self._parts.items()}

    def picked(self, wanted: Filter) -> list[tuple[Origin, Event]]:
        """Return what the replay picks of all origins together, in the order of time, but causes before effects.

        An event that was published at several brokers counts where it was accepted first.
        """
        found: dict[Pair, tuple[Origin, Placed]] = {}  # copies of histories are the same events
        for origin, parts in self._parts.items():
            for placed in [one for part in parts for one in part.placed()]:
                pair = placed.event.source, placed.event.id
                found[pair] = min((origin, placed), found.get(pair, (origin, placed)), key=_preference)
        logs: dict[NodeId | None, list[Placed]] = {}
        for origin, placed in found.values():
            if not _is_copy(placed, origin):
                logs.setdefault(origin.broker, []).append(placed)

        def rank(found: tuple[Origin, Placed]) -> Rank:
            log = logs.get(found[1].event.broker, [])
            after = bisect_right(log, found[1].event.seq or 0, key=lambda one: one.offset)
            return _rank(found[1], found[0], log[after] if after < len(log) else None)

        selection, origins = Selection((wanted,), self.replay), dict[int, Origin]()
        for origin, placed in _causes_first(sorted(found.values(), key=rank)):
            origins[id(placed.event)] = origin
            selection.take(placed.event, placed.accepted)
        return [(origins[id(event)], event) for event, _ in selection.found()]


def _is_copy(placed: Placed, origin: Origin) -> bool:
    """Return whether an event is one that another broker accepted: a history has the time at which it came there."""
    return placed.event.broker != origin.broker


def _preference(found: tuple[Origin, Placed]) -> tuple[bool, int]:
    """Return a key that is lower for the log that accepted an event, and for the broker that did so earlier."""
    origin, placed = found
    return _is_copy(placed, origin), placed.accepted


def _rank(placed: Placed, origin: Origin, near: Placed | None) -> Rank:
    """Return the place of an event in the order of time. A copy goes by an event near it in its own log, if given.

    An event that a client answered comes after those of the same time: a log may have the same event.
    """
    seq, time, side = placed.event.seq or 0, placed.time, int(origin.is_of_client)
    if near is not None and _is_copy(placed, origin):
        time, side = (min(time, near.time), -1) if seq < near.offset else (max(time, near.time), 1)
    return time, side, placed.event.source, origin, seq


def _causes_first(found: list[tuple[Origin, Placed]]) -> list[tuple[Origin, Placed]]:
    """Return events in the same order, but each after its causes that are among them, unless these wait for it.

    A cause takes along what precedes it in its stream.
    """
    if not any(placed.event.causes for _, placed in found):
        return found
    left = {(one[1].event.source, one[1].event.id): one for one in found}
    before: dict[Pair, Pair] = {}
    streams: dict[Pair | None, Pair] = {}
    for _, placed in sorted(found, key=lambda one: one[1].event.seq or 0):
        pair, stream = (placed.event.source, placed.event.id), placed.event.stream
        if stream in streams:
            before[pair] = streams[stream]
        streams[stream] = pair
    ordered: list[tuple[Origin, Placed]] = []
    for first in list(left):
        path = {first: None}  # each but the first is a cause of the one before
        while path:
            pair = next(reversed(path))
            causes = (before.get(pair, pair), *left[pair][1].event.causes) if pair in left else ()
            cause = next((one for one in causes if one in left and one not in path), None)
            if cause is not None:
                path[cause] = None
                continue
            del path[pair]
            if pair in left:
                ordered.append(left.pop(pair))
    return ordered
