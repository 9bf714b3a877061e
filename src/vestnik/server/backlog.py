"""Messages that wait to be handled. What the own log has stored, and what each neighbour sent, take turns.

Each of them is a lane: its messages are handled in the order in which they came. So nobody waits until everything is
routed that somebody else has sent, and no frontier or page overtakes the events before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import structs

from vestnik.broker.effects import Appended
from vestnik.model.events import Event
from vestnik.wire.messages import Message, NodeId
from vestnik.wire.origins import Routed

Lane: TypeAlias = str
OWN: Final[Lane] = ""
"""The lane of the own log. Others are those of neighbours, by name."""


class Waiting:
    """A message. Its events are routed part by part; the last part carries the answer to the publisher."""

    def __init__(self, message: Message, sender: NodeId) -> None:
        self.sender = sender
        self._message = message
        self._taken = 0

    @property
    def events(self) -> int:
        """How many events are to be routed."""
        return len(events_of(self._message)) - self._taken

    def take(self, most: int) -> tuple[Message, bool]:
        """Return a message of the next events, and whether these are the last."""
        events, start = events_of(self._message), self._taken
        self._taken = end = start + most
        is_last = end >= len(events)
        if is_last and not start:
            return self._message, True
        if isinstance(self._message, Routed):
            return Routed(self._message.origin, tuple(events[start:end])), is_last
        assert isinstance(self._message, Appended)
        what = self._message.what
        part = structs.replace(
            what, events=what.events[start:end], packed=what.packed[start:end], first=what.first + start
        )
        return Appended(part if is_last else structs.replace(part, request=0, refused=())), is_last


class Backlog:
    """The lanes, in the order of their turns."""

    def __init__(self) -> None:
        self.lanes: dict[Lane, deque[Waiting]] = {}

    def __bool__(self) -> bool:
        return bool(self.lanes)

    def has(self, lane: Lane) -> bool:
        """Return whether something waits in a lane."""
        return lane in self.lanes

    def put(self, lane: Lane, message: Message, sender: NodeId) -> None:
        self.lanes.setdefault(lane, deque()).append(Waiting(message, sender))

    @property
    def events(self) -> int:
        """How many events wait."""
        return sum([one.events for waiting in self.lanes.values() for one in waiting])

    def turn(self) -> Lane | None:
        """Return the lane whose turn it is. Its next turn comes after those of all others."""
        lane = next(iter(self.lanes), None)
        if lane is not None:
            self.lanes[lane] = self.lanes.pop(lane)
        return lane

    def first(self, lane: Lane) -> Waiting | None:
        """Return the next message of a lane."""
        return self.lanes[lane][0] if lane in self.lanes else None

    def take(self, lane: Lane, most: int) -> tuple[Message, NodeId]:
        """Return a message with up to `most` of the next events of a lane, and who sent them."""
        waiting = self.lanes[lane]
        first = waiting[0]
        message, is_last = first.take(most)
        if is_last:
            waiting.popleft()
            if not waiting:
                del self.lanes[lane]
        return message, first.sender

    def drop(self, lane: Lane) -> None:
        """Forget what waits in a lane."""
        self.lanes.pop(lane, None)


def events_of(message: Message) -> Sequence[Event]:
    """Return the events that a message has routed."""
    if isinstance(message, Appended):
        return message.what.events
    return message.events if isinstance(message, Routed) else ()
