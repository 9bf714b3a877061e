"""A history: keeps what it subscribes to, and answers when others want it replayed."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Final, Self

from vestnik.client.arguments import as_filter, check_number, check_seconds, check_text, check_timeout
from vestnik.client.connect import default_url
from vestnik.client.notifications import Notification
from vestnik.errors import Unreachable
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import ordinary
from vestnik.server.history import MOST, Bounds, HistoryStore
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.services.local import HERE, LocalBus, within
from vestnik.transport.addresses import read_address
from vestnik.wire.replays import Replay

LOOK_EVERY: Final = 0.01


class History:
    """Enter it to let it run. It is a broker of its own, and nobody else is its client. `join` is where the broker is
    that it is a neighbour of, or a LocalBus that was entered.

    It keeps the `last` events that are wanted, those of the last `age` seconds, the latest by the value of a path;
    together, what all allow. An event that matches `purge` ends all that was kept before. With a folder `data` it goes
    on in its next life where it was. It begins with what others have of the past. That it subscribes is no reason for
    anybody to produce. `routing` and `advertisements` must be as those of the brokers that it joins, which may want to
    see a certificate.
    """

    def __init__(
        self,
        wanted: Filter | str,
        *,
        join: str | LocalBus | None = None,
        name: str | None = None,
        last: int = MOST,
        age: float | None = None,
        latest_by: str | None = None,
        purge: Filter | str | None = None,
        data: Path | None = None,
        routing: str = "merging",
        advertisements: bool = False,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
        tls_ca: Path | None = None,
        timeout: float = 10.0,
    ) -> None:
        check_text("the name of a history", name)
        check_number("the last of a history", last)
        check_seconds("the age of a history", age)
        check_timeout("the timeout of a history", timeout)
        self.filter = ordinary(as_filter(wanted))
        ends = None if purge is None else ordinary(as_filter(purge))
        self._asked = self.filter if ends is None else self.filter | ends
        self._bounds = Bounds(last=last, age=age, latest_by=latest_by, purge=ends)
        self._local = join if isinstance(join, LocalBus) else None
        at = None if isinstance(join, LocalBus) else read_address(join or default_url())
        self._at = HERE if at is None else str(at)
        self._link: asyncio.Task[object] | None = None
        self._data = data
        self._timeout = timeout
        self._settings = Settings(
            name=name or f"history-{secrets.token_hex(8)}",
            join=() if at is None else (at,),
            routing=routing,
            advertisements=advertisements,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
        )

    async def __aenter__(self) -> Self:
        self._store = HistoryStore(self._bounds, self._data)
        self._broker = Broker(self._settings, listens=False, history=self._store)
        await self._broker.__aenter__()
        try:
            if self._local is not None:
                self._link = asyncio.create_task(self._broker.host.greet(self._local.reached_by(self._broker.host)))
            await self._linked()
            self._client = within(self._broker, name=f"{self._settings.name}-client")
            await self._client.__aenter__()
            replay = Replay(last=self._bounds.last, latest_by=self._bounds.latest_by)
            await self._client.subscribe(self._asked, self._take, queue=10_000, replay=replay)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._stop()

    async def _stop(self) -> None:
        await self._broker.__aexit__()
        if self._link is not None:
            await self._link

    @property
    def events(self) -> list[Event]:
        """What is kept."""
        return [event for _, event in self._store.taken()]

    def _take(self, notification: Notification) -> None:
        self._store.keep(notification.event)

    async def _linked(self) -> None:
        """Wait for the link; what is replayed comes through it."""
        try:
            async with asyncio.timeout(self._timeout):
                while len(self._broker.host.core.surroundings.positions) < 2:
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise Unreachable(self._at, f"no answer in {self._timeout:g} seconds") from None
