"""The turns of connections that have more than fits into one: each waits until those before it have had theirs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """Lets one of the connections go on in each turn of the event loop, so that others are served in between.

    Whoever decodes a large message holds `decoding`: decoded, it may take a hundred times the memory of its bytes, and
    such messages do not pile up before anybody takes them.
    """

    def __init__(self) -> None:
        self.decoding = asyncio.Lock()
        self._waiting = deque[Callable[[], None]]()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when it is the turn of who waits."""
        self._waiting.append(go_on)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        go_on = self._waiting[0]
        try:
            go_on()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._next)
