"""A broker as a process: listens, joins its neighbours, and ends when it is told to."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from typing import Final, Self

from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Append
from vestnik.routing.propagation import Leases
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.server.host import BrokerHost
from vestnik.server.settings import Settings
from vestnik.server.store import JournalStore
from vestnik.transport.addresses import Address
from vestnik.transport.tcp import address, dial, listen

SLOWEST_RETRY: Final = 5.0
"""Seconds between two attempts to join a neighbour, at most."""


class Broker:
    """Enter it to let it run. `say` is told what people may want to know.

    One that does not listen is for clients in its own process, and for neighbours that it joins.
    """

    def __init__(
        self, settings: Settings, say: Callable[[str], None] = lambda _: None, *, listens: bool = True
    ) -> None:
        self.settings = settings
        self._listens = listens
        self._say = say
        self.address = ""  # where it listens
        self._server: asyncio.Server | None = None
        self._joins: list[asyncio.Task[None]] = []
        self._store: JournalStore | None = None

    async def __aenter__(self) -> Self:
        settings = self.settings
        kind = AdvertisingRouter if settings.advertisements else Router
        leases = Leases(settings.lease, settings.lease / 4)
        router = kind(make_strategy(settings.routing), leases)
        stored: Iterable[Append] = ()
        if settings.data is not None:
            self._store = JournalStore(settings.data / "journal")
            if not self._store.recovery.is_clean:
                self._say(str(self._store.recovery))
            stored = self._store.stored()
        core = BrokerCore(settings.name, router, settings.sweep, stored, first_seq=time.time_ns() // 1000)
        takes_clients = settings.role != "router"
        self.host = BrokerHost(core, settings.way_of_routing, self._store, takes_clients=takes_clients, say=self._say)
        if self._listens:
            try:
                self._server = await listen(self.host, *settings.listen)
            except OSError:
                await self.__aexit__()
                raise
            self.address = address(self._server.sockets[0].getsockname())
            self._say(f"listening on {self.address}")
        self._joins = [asyncio.create_task(self._join(at)) for at in settings.join]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._joins:
            task.cancel()
        await asyncio.gather(*self._joins, return_exceptions=True)
        self.host.close()
        if self._server is not None:
            await self._server.wait_closed()
        if self._store is not None:
            await self._store.close()

    async def _join(self, at: Address) -> None:
        """Keep the link to a neighbour; less and less often try to make it while it does not last."""
        pause = 0.0
        while True:
            begun = time.monotonic()
            try:
                reason = await self.host.greet(await dial(self.host, *at, limits=None))
            except OSError as error:
                self._say(f"cannot join {at}: {error.strerror or error}")
            else:
                self._say(f"the link to {at} is over: {reason}")
            if time.monotonic() - begun > SLOWEST_RETRY:
                pause = 0.0
            pause = min(max(2 * pause, 0.05), SLOWEST_RETRY)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
