"""Group commit: however many wait, one sync at a time makes all durable that came before it."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Protocol, TypeAlias

from vestnik.threads import Worker

Callback: TypeAlias = Callable[[BaseException | None], object]
"""Called with None where what was waited for is durable, else with the reason why it never will be."""


class Log(Protocol):
    """Something that is appended to, and made durable up to where it is."""

    @property
    def last(self) -> int: ...

    @property
    def committed(self) -> int: ...

    def sync(self) -> int: ...


class GroupCommit:
    """Commits a log for those who wait on an event loop, which a slow disk never stops.

    A sync runs in a thread while somebody waits; who comes meanwhile waits for the next. There is no timer: the first
    sync begins when all have had their turn who are ready now.
    """

    def __init__(self, log: Log, took: Callable[[float], None] | None = None) -> None:
        """`took` is told, in another thread, how many seconds each sync takes."""
        self._log = log
        self._took = took
        self._waiting: deque[tuple[int, Callback]] = deque()
        self._thread = Worker("vestnik-commit")
        self._is_running = False

    def when_committed(self, position: int, callback: Callback) -> None:
        """Call back when `position` is durable, soon if it is; callbacks come in the order in which they were given.

        ValueError where nothing was appended at `position` yet.
        """
        if position > self._log.last:
            raise ValueError(f"position {position} is not appended yet; the last one is {self._log.last}")
        loop = get_running_loop()
        if position <= self._log.committed and not self._waiting:
            loop.call_soon(callback, None)
            return
        self._waiting.append((position, callback))
        if not self._is_running:
            self._is_running = True
            loop.call_soon(self._start, loop)

    async def committed(self, position: int) -> None:
        """Wait until `position` is durable; JournalFailed if it will never be."""
        future: Future[None] = get_running_loop().create_future()
        self.when_committed(position, lambda failure: _settle(future, failure))
        await future

    async def close(self) -> None:
        """Wait for all that is waited for; the log stays open."""
        if self._waiting:
            future: Future[None] = get_running_loop().create_future()
            self._waiting.append((0, lambda failure: _settle(future, None)))
            await future
        self._thread.end()

    def _start(self, loop: AbstractEventLoop) -> None:
        self._thread.start(self._sync, loop).add_done_callback(self._done)

    def _sync(self) -> int:
        began = perf_counter()
        try:
            return self._log.sync()
        finally:
            if self._took is not None:
                self._took(perf_counter() - began)

    def _done(self, synced: Future[int]) -> None:
        """Start the next sync if it is waited for, then tell those whom this one was for."""
        loop = synced.get_loop()
        failure = synced.exception()
        waiting = self._waiting
        while waiting and (failure or waiting[0][0] <= synced.result()):
            loop.call_soon(waiting.popleft()[1], failure)
        self._is_running = bool(waiting)
        if waiting:
            self._start(loop)


def _settle(future: Future[None], failure: BaseException | None) -> None:
    if future.done():
        return
    if failure:
        future.set_exception(failure)
    else:
        future.set_result(None)
