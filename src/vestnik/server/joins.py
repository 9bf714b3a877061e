"""A link that a broker makes, and makes again when it breaks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Container
from typing import Final

from vestnik.server.host import BrokerHost, Parting
from vestnik.transport.ends import CLOSED, Dial, End
from vestnik.transport.foreign import FOREIGN

AT_ONCE: Final = 1.0
"""Seconds before which a connection that ends has hardly begun."""
SLOWEST_RETRY: Final = 5.0
"""Seconds between two attempts to join a neighbour, at most."""
FINAL: Final = frozenset({"version", "name", "connected", "routing", "cycle", "role", "frame", "rights", FOREIGN})
"""Words with which a broker says that it will not be a neighbour as long as both are set up as they are."""
LASTING: Final = "that stays so until one of the two is set up otherwise; it is tried again now and then"


class Join:
    """A link to the neighbour that `dial` connects to; `at` says where that is, for people. `say` is told of changes.

    `failed` is why the last attempt or the last link ended.
    """

    def __init__(self, at: str, dial: Dial, say: Callable[[str], None] = lambda _: None) -> None:
        self._at = at
        self._dial = dial
        self._say = say
        self._end: End | None = None
        self.failed: Parting | None = None

    def is_up(self, host: BrokerHost) -> bool:
        """Whether the neighbour is linked with this host."""
        return self._end is not None and host.is_linked(self._end)

    async def keep(self, host: BrokerHost, until: Container[str] = ()) -> Parting:
        """Keep the link; less and less often try to make it while it does not last.

        Return when the neighbour refuses it for a reason with a code in `until`.
        """
        pause, said = 0.0, ""
        while True:
            begun = time.monotonic()
            try:
                self._end = await self._dial(host)
                self.failed = await host.greet(self._end)
            except OSError as error:
                self.failed = Parting("", error.strerror or str(error))
                text = f"cannot join {self._at}: {self.failed.reason}; trying again"
            else:
                code, reason = self.failed
                text = f"there is no link to {self._at}: {reason}; {LASTING}" if code in FINAL else ""
                text = text or f"the link to {self._at} is over: {hinted(reason, begun)}; trying again"
            if self.failed.code and self.failed.code in until:
                return self.failed
            if text != said:
                self._say(text)
                said = text
            pause = longer(0.0 if time.monotonic() - begun > SLOWEST_RETRY else pause)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))


def longer(pause: float) -> float:
    """Return the next pause between two attempts, in seconds."""
    return min(max(2 * pause, 0.05), SLOWEST_RETRY)


def hinted(reason: str, begun: float) -> str:
    """Return why a connection that was begun then is over, with a hint if it hardly began."""
    if reason != CLOSED or time.monotonic() - begun > AT_ONCE:
        return reason
    return f"{CLOSED} at once; maybe only one of the two speaks TLS, or does not take the other's certificate"
