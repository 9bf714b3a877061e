"""Work that takes long is done on a thread of its own: the event loop goes on, and gets the interpreter in between.

There is one such thread in a process. Who has much to do asks for it piece by piece, so that others get their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from vestnik.threads import Worker

Result = TypeVar("Result")

_THREAD: Final = Worker("vestnik-heavy")


def begin(work: Callable[[], Result]) -> asyncio.Future[Result]:
    """Have `work` done, after what others have asked for before."""
    return _THREAD.start(work, asyncio.get_running_loop())


def submit(work: Callable[[], object]) -> None:
    """Have `work` done for nobody who waits."""
    _THREAD.submit(work)
