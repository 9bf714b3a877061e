"""Notifications of several priorities: the more urgent ones first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from vestnik.model.envelope import Pair

if TYPE_CHECKING:
    from vestnik.client.notifications import Notification


class Urgency:
    """Notifications by priority, in order within each.

    None comes out before a cause of its event that was here first: then those of lower priority go ahead. The oldest
    notification waits for none, so there always is one that can go.
    """

    def __init__(self, items: Iterable[Notification]) -> None:
        self._by_priority: dict[int, deque[Notification]] = {}
        self._numbers: dict[Pair, int] = {}  # of the events that are here
        self._size = 0
        for item in items:
            self.put(item)

    def __len__(self) -> int:
        return self._size

    def put(self, item: Notification) -> None:
        event = item.event
        queue = self._by_priority.get(event.priority)
        if queue is None:
            queue = self._by_priority[event.priority] = deque()
            self._by_priority = dict(sorted(self._by_priority.items(), reverse=True))
        queue.append(item)
        self._numbers[event.source, event.id] = item.number
        self._size += 1

    def pop(self) -> Notification:
        """Remove the most urgent one that does not wait for a cause."""
        for priority, queue in self._by_priority.items():
            if not self._waits(queue[0]):
                return self._remove(priority)
        raise IndexError("no notification is here")

    def drop(self) -> Notification:
        """Remove the oldest of the lowest priority."""
        return self._remove(next(reversed(self._by_priority)))

    def replace_first(self, item: Notification) -> None:
        """Put a notification in the place of the first one of its priority."""
        self._by_priority[item.event.priority][0] = item

    def first(self, priority: int) -> Notification | None:
        """Return the first notification of a priority, if there is one."""
        queue = self._by_priority.get(priority)
        return None if queue is None else queue[0]

    @property
    def lowest(self) -> int:
        """The lowest number of a notification that is here."""
        return min(queue[0].number for queue in self._by_priority.values())

    def _waits(self, item: Notification) -> bool:
        """Return whether a cause of an event is here and came earlier."""
        numbers, own = self._numbers, item.number
        return any(numbers.get(cause, own) < own for cause in item.event.causes)

    def _remove(self, priority: int) -> Notification:
        queue = self._by_priority[priority]
        item = queue.popleft()
        if not queue:
            del self._by_priority[priority]
        self._numbers.pop((item.event.source, item.event.id), None)
        self._size -= 1
        return item
