"""Events that wait to be routed. Those of different clients and neighbours take turns.

What comes from one client, and what has a source or a cause in common, is in one lane: it is routed in the order in
which it was put here. Lanes take turns, so nobody waits until all is routed that somebody else has published.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import structs

from vestnik.broker.effects import Appended
from vestnik.model.events import Event
from vestnik.wire.messages import Forward, NodeId

Events: TypeAlias = Forward | Appended
Key: TypeAlias = tuple[str, str]
NODE: Final = "node"
SOURCE: Final = "source"


class Waiting:
    """A message whose events are routed part by part; all that was stored up to `position` is routed before it."""

    def __init__(self, message: Events, sender: NodeId, keys: set[Key], number: int, position: int | None) -> None:
        self.sender = sender
        self.keys = keys
        self.number = number
        self.position = position
        self._message = message
        self._taken = 0

    def take(self, most: int) -> tuple[Events, bool]:
        """Return a message of the next events, and whether these are the last. The last part carries the answer."""
        events, start = events_of(self._message), self._taken
        self._taken = end = start + most
        is_last = end >= len(events)
        if is_last and not start:
            return self._message, True
        if isinstance(self._message, Forward):
            return Forward(events[start:end]), is_last
        part = structs.replace(self._message.what, events=events[start:end])
        return Appended(part if is_last else structs.replace(part, request=0, refused=())), is_last


class Lane:
    """Messages that are routed in the order in which they came."""

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.keys: Counter[Key] = Counter()  # of the messages that wait


class Backlog:
    """The lanes, in the order of their turns."""

    def __init__(self) -> None:
        self._lanes: deque[Lane] = deque()
        self._by_key: dict[Key, Lane] = {}
        self._senders: Counter[NodeId] = Counter()  # of the messages that wait
        self._number = 0
        self._after: deque[tuple[int, Callable[[], None]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def is_behind(self, node: NodeId) -> bool:
        """Return whether something of a client or a neighbour waits."""
        return self._senders[node] > 0

    def put(self, message: Events, sender: NodeId, position: int | None = None) -> None:
        """Let events wait behind all that they may not overtake."""
        keys = _keys(message, sender)
        lane = self._joined({id(lane): lane for key in keys if (lane := self._by_key.get(key)) is not None})
        self._number += 1
        lane.waiting.append(Waiting(message, sender, keys, self._number, position))
        lane.keys.update(keys)
        self._by_key |= dict.fromkeys(keys, lane)
        self._senders[sender] += 1

    def _joined(self, found: dict[int, Lane]) -> Lane:
        """Return one lane with all that waits in these, in the order in which it came."""
        if len(found) == 1:
            return next(iter(found.values()))
        lane = Lane()
        for other in found.values():
            self._remove(other)
            lane.waiting += other.waiting
            lane.keys.update(other.keys)
        lane.waiting = deque(sorted(lane.waiting, key=lambda one: one.number))
        self._by_key |= dict.fromkeys(lane.keys, lane)
        self._lanes.append(lane)
        return lane

    def _remove(self, lane: Lane) -> None:
        self._lanes.remove(lane)
        for key in lane.keys:
            del self._by_key[key]

    def turn(self) -> Lane:
        """Return the lane whose turn it is, or an empty one. Its next turn comes after those of all others."""
        self._lanes.rotate(-1)
        return self._lanes[-1] if self._lanes else Lane()

    def take(self, lane: Lane, most: int) -> tuple[Events, NodeId]:
        """Return up to `most` of the next events of a lane, and who sent them."""
        first = lane.waiting[0]
        message, is_last = first.take(most)
        if is_last:
            lane.waiting.popleft()
            self._done(lane, first)
        if not lane.waiting:
            self._remove(lane)
        return message, first.sender

    def _done(self, lane: Lane, one: Waiting) -> None:
        """Forget a message that does not wait any more."""
        self._senders[one.sender] -= 1
        if not self._senders[one.sender]:
            del self._senders[one.sender]
        for key in one.keys:
            lane.keys[key] -= 1
            if not lane.keys[key]:
                del lane.keys[key], self._by_key[key]

    def drop(self, node: NodeId) -> None:
        """Forget what a neighbour has sent."""
        lane = self._by_key.get((NODE, node))
        if lane is not None:
            dropped = [one for one in lane.waiting if one.sender == node]
            lane.waiting = deque([one for one in lane.waiting if one.sender != node])
            for one in dropped:
                self._done(lane, one)
            if not lane.waiting:
                self._remove(lane)

    def routed(self, position: int) -> int:
        """Return up to where all that is stored has been routed, if it is stored up to `position`."""
        return min([one.position for one in self._all() if one.position is not None], default=position)

    @property
    def has_followers(self) -> bool:
        """Return whether something is to be done after events."""
        return bool(self._after)

    def after(self, then: Callable[[], None]) -> None:
        """Have something done when all that waits now has been routed."""
        self._after.append((self._number, then))

    def ripe(self) -> Iterator[Callable[[], None]]:
        """Return what has waited for events that are routed by now."""
        first = min([one.number for one in self._all()], default=self._number + 1)
        while self._after and self._after[0][0] < first:
            yield self._after.popleft()[1]

    def _all(self) -> Iterator[Waiting]:
        return (one for lane in self._lanes for one in lane.waiting)


def events_of(message: Events) -> tuple[Event, ...]:
    return message.what.events if isinstance(message, Appended) else message.events


def _keys(message: Events, sender: NodeId) -> set[Key]:
    """Return the keys that events share with those that they must not overtake."""
    events: Sequence[Event] = events_of(message)
    sources = {event.source for event in events}.union([source for event in events for source, _ in event.causes])
    return {(NODE, sender), *[(SOURCE, source) for source in sources]}
