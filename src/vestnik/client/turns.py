"""Taking turns: after some notifications, those for whom they are have time to take them before there are more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from vestnik.transport.ends import End
from vestnik.wire.messages import Message, Notify, count_of, split

TURN: Final = 250
"""Notifications after which it is the application's turn: less than wait for a subscription unless told otherwise."""


class Turns:
    """Has the messages of a connection handled in order. While there are more than can be, no others are read."""

    def __init__(self, handle: Callable[[End, Message], None]) -> None:
        self._handle = handle
        self._left: deque[Message] = deque()
        self._next: asyncio.Handle | None = None

    def take(self, end: End, messages: Iterable[Message]) -> None:
        self._left.extend(messages)
        if self._next is None:
            self._turn(end)

    def finish(self, end: End) -> None:
        """The connection is over: have all that is left handled now."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        while self._left:
            self._handle(end, self._left.popleft())

    def _turn(self, end: End) -> None:
        was_behind, self._next = self._next is not None, None
        try:
            self._handle_some(end)
        finally:
            end.flush()
            if self._left:
                self._next = asyncio.get_running_loop().call_soon(self._turn, end)
                if not was_behind:
                    end.pause()
            elif was_behind:
                end.resume()

    def _handle_some(self, end: End) -> None:
        room = TURN
        while self._left and room > 0:
            message = self._left.popleft()
            if isinstance(message, Notify):
                count = count_of(message.deliveries)
                if count > room:
                    now, later = split(message.deliveries, room)
                    self._left.appendleft(Notify(later, message.logs))
                    message = Notify(now, message.logs)
                room -= count
            self._handle(end, message)
