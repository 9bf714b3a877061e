"""A thread for work that takes long, as by a disk or on a large message. A process that ends does not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


class Worker:
    """Does one piece of work after the other, in a thread that does not outlive the process.

    A process waits for the threads of an executor when it ends, and a disk that hangs would keep it from ending.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Do `work` after all that was submitted before; if its future is cancelled by then, leave it out."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        done: Future[Result] = Future()
        self._work.put(lambda: _settle(done, work))
        return done

    def start(self, work: Callable[[], Result], loop: asyncio.AbstractEventLoop) -> asyncio.Future[Result]:
        """As `submit`, with a future of an event loop."""
        return asyncio.wrap_future(self.submit(work), loop=loop)

    def end(self) -> None:
        """Let the thread end when all is done."""
        if self._thread is not None:
            self._work.put(None)
            self._thread = None

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def _settle(done: Future[Result], work: Callable[[], Result]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(work())
    except BaseException as error:  # whoever waits is told
        done.set_exception(error)
