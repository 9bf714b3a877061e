"""A link that a broker makes, and makes again when it breaks."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Container
from typing import Final

from vestnik.logs import emit
from vestnik.server.handshake import Parting
from vestnik.server.host import BrokerHost
from vestnik.transport.ends import CLOSED, Dial, End
from vestnik.transport.foreign import FOREIGN

LOG: Final = logging.getLogger(__name__)

AT_ONCE: Final = 1.0
"""Seconds before which a connection that ends has hardly begun."""
SLOWEST_RETRY: Final = 5.0
"""Seconds between two attempts to join a neighbour, at most."""
FINAL: Final = frozenset(
    {"version", "name", "connected", "routing", "lease", "cycle", "role", "frame", "rights", FOREIGN}
)
"""Words with which a broker says that it will not be a neighbour as long as both are set up as they are."""
REACHED: Final = frozenset({"connected", "cycle"})
"""Words with which a broker says that it can be reached already, without this link."""
LASTING: Final = "that stays so until one of the two is set up otherwise; it is tried again now and then"


class Join:
    """A link to the neighbour that `dial` connects to; `at` says where that is, for people.

    `failed` is why the last attempt or the last link ended.
    """

    def __init__(self, at: str, dial: Dial) -> None:
        self._at = at
        self._dial = dial
        self._end: End | None = None
        self.failed: Parting | None = None

    def is_up(self, host: BrokerHost) -> bool:
        """Whether the neighbour is linked with this host."""
        return self._end is not None and host.is_linked(self._end)

    async def keep(self, host: BrokerHost, until: Container[str] = ()) -> Parting:
        """Keep the link; less and less often try to make it while it does not last.

        Return when the neighbour refuses it for a reason with a code in `until`.
        """
        try:
            return await self._keep(host, until)
        finally:
            host.joined(self._at)

    async def _keep(self, host: BrokerHost, until: Container[str]) -> Parting:
        pause, told = 0.0, ""
        host.joining(self._at)
        while True:
            begun = time.monotonic()
            try:
                self._end = await self._dial(host)
                self.failed = await host.greet(self._end, self._at)
            except OSError as error:
                self.failed = Parting("", error.strerror or str(error))
            if self.failed.code in REACHED:
                host.joined(self._at)
            else:
                host.joining(self._at)
            if self.failed.code and self.failed.code in until:
                return self.failed
            reason = hinted(self.failed.reason, begun)
            if reason != told:
                self._tell(self.failed.code, reason)
                told = reason
            pause = longer(0.0 if time.monotonic() - begun > SLOWEST_RETRY else pause)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    def _tell(self, code: str, reason: str) -> None:
        message = f"no link to {self._at}; {LASTING if code in FINAL else 'trying again'}"
        emit(LOG, logging.WARNING, "link.failed", message, address=self._at, code=code, reason=reason)


def longer(pause: float) -> float:
    """Return the next pause between two attempts, in seconds."""
    return min(max(2 * pause, 0.05), SLOWEST_RETRY)


def hinted(reason: str, begun: float) -> str:
    """Return why a connection that was begun then is over, with a hint if it hardly began."""
    if reason != CLOSED or time.monotonic() - begun > AT_ONCE:
        return reason
    return f"{CLOSED} at once; maybe only one of the two speaks TLS, or does not take the other's certificate"
