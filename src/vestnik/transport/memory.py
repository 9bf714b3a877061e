"""Connections within a process: messages are handed over as they are."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from vestnik.transport.ends import CLOSED, End, Receiver
from vestnik.wire.messages import Message


class MemoryEnd(End):
    def __init__(self, receiver: Receiver, loop: asyncio.AbstractEventLoop, peer: str) -> None:
        self.peer = peer
        self._receiver = receiver
        self._loop = loop
        self._other: MemoryEnd | None = None
        self._out: list[Message] = []
        self._is_paused = False
        self._is_ending = False  # the other end has closed the connection
        self._held: deque[Message] = deque()  # what has arrived and was not handed over

    def send(self, message: Message) -> None:
        self._out.append(message)

    def flush(self) -> None:
        out, self._out = self._out, []
        if out and self._other is not None:
            self._loop.call_soon(self._other._arrive, out)

    def close(self) -> None:
        self.flush()
        other, self._other = self._other, None
        if other is not None:
            self._loop.call_soon(other._end)

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        if self._is_ending:
            self._loop.call_soon(self._end)
        elif self._held:
            self._loop.call_soon(self._arrive, [])

    def _arrive(self, messages: list[Message]) -> None:
        self._held += messages
        if not self._is_paused:
            self._take_held()

    def _take_held(self) -> None:
        if self._held and self._other is not None:
            self._receiver.received(self, self._messages())

    def _messages(self) -> Iterator[Message]:
        while self._held and not self._is_paused:
            yield self._held.popleft()

    def _end(self) -> None:
        self._is_ending = True
        if not self._is_paused:
            self._take_held()
        if not self._is_paused and self._other is not None:
            self._other = None
            self._receiver.closed(self, CLOSED)


def pair(one: Receiver, other: Receiver, names: tuple[str, str] = ("one", "other")) -> tuple[End, End]:
    """The two ends of a new connection; `one` is at the first."""
    loop = asyncio.get_running_loop()
    first, second = MemoryEnd(one, loop, names[1]), MemoryEnd(other, loop, names[0])
    first._other, second._other = second, first
    one.connected(first)
    other.connected(second)
    return first, second
