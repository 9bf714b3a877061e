"""The messages that are being prepared, at most one of each connection. Later ones of that connection wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from vestnik.routing.router import Router
from vestnik.server.dispatch import LOOK_EVERY, Dispatch
from vestnik.server.door import Guest
from vestnik.server.pacing import Pacing
from vestnik.server.parts import Batches
from vestnik.server.preparing import Prepared, preparation_of
from vestnik.server.room import Room
from vestnik.transport.ends import End
from vestnik.wire.messages import Message, Publish
from vestnik.wire.origins import Routed

ROUTED: Final = frozenset({Publish, Routed})
"""Messages of events. Matching these takes long only if filters have tests on values."""
MOST_BYTES_AHEAD: Final = 1024 * 1024
"""Bytes of events of many values that are matched ahead at a time, over all connections."""


class Preparations:
    """Has messages prepared. `handle` is given each of them then, and `failed` the end of one that failed."""

    def __init__(
        self,
        router: Router,
        dispatch: Dispatch,
        pacing: Pacing,
        batches: Batches,
        handle: Callable[[End, Guest, Message], None],
        failed: Callable[[End], None],
    ) -> None:
        self._router = router
        self._dispatch = dispatch
        self._pacing = pacing
        self._batches = batches
        self._handle = handle
        self._failed = failed
        self._tasks: dict[End, asyncio.Task[Prepared]] = {}
        self._room = Room(MOST_BYTES_AHEAD)

    def begin(self, end: End, guest: Guest, message: Message) -> bool:
        """Begin to prepare a message, if it takes long to handle; return whether it does."""
        if type(message) in ROUTED and not self._router.tests(guest.name):
            return False
        preparation = preparation_of(message, guest, end.size, self._router, self._room)
        if preparation is None:
            return False
        self._pacing.preparing(end)
        task = self._tasks[end] = asyncio.get_running_loop().create_task(preparation)
        task.add_done_callback(partial(self._prepared, end, guest))
        return True

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def left(self, end: End) -> None:
        """Drop the work for a connection that is over."""
        if end in self._tasks:
            self._tasks.pop(end).cancel()

    def _prepared(self, end: End, guest: Guest, done: asyncio.Task[Prepared]) -> None:
        if self._tasks.get(end) is done:
            del self._tasks[end]
        if done.cancelled():
            return
        try:
            message, release = done.result()
            try:
                self._handle(end, guest, message)
            finally:
                self._dispatch.when_routed(guest.name, partial(self._routed, end, guest, release))
        except BaseException:
            self._failed(end)
            raise

    def _routed(self, end: End, guest: Guest, release: Callable[[], None]) -> None:
        """Free what was kept for a message, and read on, when all its events are routed."""
        if self._batches.is_open(end):
            again = partial(self._routed, end, guest, release)
            if self._dispatch.is_idle(guest.name):  # the rest waits for slow readers
                asyncio.get_running_loop().call_later(LOOK_EVERY, again)
            else:
                self._dispatch.when_routed(guest.name, again)
            return
        release()
        self._pacing.prepared(end)
