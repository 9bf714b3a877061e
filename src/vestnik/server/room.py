"""Room for messages that are in memory while something else is waited for."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """A semaphore that counts bytes: at most `size` are inside, or one larger message. The rest waits in order."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def has_room(self, size: int) -> bool:
        """Return whether `enter` would not wait."""
        return not self._waiting and self._fits(size)

    async def enter(self, size: int) -> None:
        """Wait for room, and take it until `leave`."""
        if self.has_room(size):
            self._used += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._let_in()  # those after it, if it was the first
            else:
                self.leave(size)
            raise

    def leave(self, size: int) -> None:
        self._used -= size
        self._let_in()

    def _fits(self, size: int) -> bool:
        return not self._used or self._used + size <= self._size

    def _let_in(self) -> None:
        while self._waiting and (self._waiting[0][1].cancelled() or self._fits(self._waiting[0][0])):
            size, turn = self._waiting.popleft()
            if not turn.cancelled():
                self._used += size
                turn.set_result(None)
