"""The publications of a client, sent in order, no more at a time than its broker can recognise as repeats."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from vestnik.model.streams import WINDOW
from vestnik.wire.messages import Publish


class Outbox:
    """Publications that wait, and how many events were published since the first one that is not answered."""

    def __init__(self) -> None:
        self._waiting: deque[Publish] = deque()
        self._count = 0
        self._before: dict[int, int] = {}  # by request, how many were published before it

    def add(self, publication: Publish) -> None:
        self._waiting.append(publication)

    def due(self) -> Iterator[Publish]:
        """Yield what may be sent now: at most WINDOW events past the oldest publication that is not answered."""
        while self._waiting and self._has_room_for(len(self._waiting[0].events)):
            publication = self._waiting.popleft()
            self._before[publication.request] = self._count
            self._count += len(publication.events)
            yield publication

    def _has_room_for(self, events: int) -> bool:
        first = next(iter(self._before.values()), self._count)
        return not self._before or self._count - first + events <= WINDOW

    def answered(self, request: int) -> None:
        self._before.pop(request, None)
