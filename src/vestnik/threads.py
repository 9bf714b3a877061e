"""A thread for work that takes long, as by a disk or on a large message. A process that ends does not wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Semaphore, Thread
from typing import TypeVar

Result = TypeVar("Result")


class Worker:
    """Does one piece of work after the other, in a thread that does not outlive the process.

    A process waits for the threads of an executor when it ends, and a disk that hangs would keep it from ending.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: deque[Callable[[], None] | None] = deque()
        self._others: deque[Callable[[], None] | None] = deque()
        self._ready = Semaphore(0)  # as many as there are jobs
        self._thread: Thread | None = None

    def submit(self, work: Callable[[], Result], *, first: bool = False) -> Future[Result]:
        """Do `work` after all that was submitted before; or, if it comes `first`, after what comes first like it.

        If its future is cancelled before the work begins, the work is dropped at once with all that it holds.
        """
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        done: Future[Result] = Future()
        held = [work]
        done.add_done_callback(lambda _: held.clear())
        self._put(partial(_settle, done, held), first=first)
        return done

    def start(
        self, work: Callable[[], Result], loop: asyncio.AbstractEventLoop, *, first: bool = False
    ) -> asyncio.Future[Result]:
        """As `submit`, with a future of an event loop."""
        return asyncio.wrap_future(self.submit(work, first=first), loop=loop)

    def end(self) -> None:
        """Let the thread end when all is done."""
        if self._thread is not None:
            self._put(None)
            self._thread = None

    def _put(self, job: Callable[[], None] | None, *, first: bool = False) -> None:
        (self._first if first else self._others).append(job)
        self._ready.release()

    def _next(self) -> Callable[[], None] | None:
        self._ready.acquire()
        return (self._first or self._others).popleft()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job()
            del job  # which holds the result, while the thread waits for the next


def _settle(done: Future[Result], held: list[Callable[[], Result]]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(held.pop()())
    except BaseException as error:  # whoever waits is told
        done.set_exception(error)
