"""One thread per process for work that would block the event loop.

The interpreter switches between the two threads. A caller with much work submits it in pieces, so that others get their
turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from vestnik.threads import Worker

Result = TypeVar("Result")

_THREAD: Final = Worker("vestnik-heavy")


def begin(work: Callable[[], Result], *, first: bool = False) -> asyncio.Future[Result]:
    """Run `work` on the thread, `first` or after all that was submitted before. Cancelling drops it."""
    return _THREAD.start(work, asyncio.get_running_loop(), first=first)


def submit(work: Callable[[], object]) -> None:
    """Run `work` on the thread; nobody waits for the result."""
    _THREAD.submit(work)
