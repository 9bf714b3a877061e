"""A history: keeps what it subscribes to, and answers when others want it replayed."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Self

from vestnik.client.arguments import as_filter, check_number, check_seconds, check_text
from vestnik.client.connect import default_url
from vestnik.client.notifications import Notification
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import ordinary
from vestnik.server.history import MOST, Bounds, HistoryStore
from vestnik.services.embedded import Embedded
from vestnik.services.local import LocalBus
from vestnik.transport.addresses import read_address
from vestnik.wire.origins import ENDLESS, Origin
from vestnik.wire.replays import Replay


class History:
    """Enter it to let it run. It is a broker of its own, and nobody else is its client. `join` is where the broker is
    that it is a neighbour of, or a LocalBus that was entered.

    It keeps the `last` events that are wanted, those of the last `age` seconds, the latest by the value of a path;
    together, what all allow. An event that matches `purge` ends all that was kept before. With a folder `data` it goes
    on in its next life where it was. It begins with what others have of the past. That it subscribes is no reason for
    anybody to produce.

    It routes as the broker that it joins; if `routing` or `advertisements` are given, that broker must route so.
    Whoever enters it waits until they are linked: Unreachable if that takes longer than `timeout` seconds, TurnedAway
    with the reason if the other refuses. That one may want to see a certificate.
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
        routing: str | None = None,
        advertisements: bool | None = None,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
        tls_ca: Path | None = None,
        timeout: float | None = 10.0,
    ) -> None:
        check_text("the name of a history", name)
        check_number("the last of a history", last)
        check_seconds("the age of a history", age)
        self.filter = ordinary(as_filter(wanted))
        ends = None if purge is None else ordinary(as_filter(purge))
        self._asked = self.filter if ends is None else self.filter | ends
        self._bounds = Bounds(last=last, age=age, latest_by=latest_by, purge=ends)
        self._data = data
        self._has_missed = False
        self._embedded = Embedded(
            name or f"history-{secrets.token_hex(8)}",
            join.uplink if isinstance(join, LocalBus) else read_address(join or default_url()),
            routing=routing,
            advertisements=advertisements,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
            timeout=timeout,
        )

    async def __aenter__(self) -> Self:
        self._store = HistoryStore(self._bounds, self._data, self.filter)
        self._client = self._embedded.client(f"{self._embedded.name}-client")
        try:
            await self._embedded.start(self._store)
            await self._client.__aenter__()
            replay = Replay(last=self._bounds.last, latest_by=self._bounds.latest_by)
            self._subscription = await self._client.subscribe(self._asked, self._take, queue=10_000, replay=replay)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._embedded.stop()
        await self._store.close()

    @property
    def events(self) -> list[Event]:
        """What is kept."""
        return [event for _, event in self._store.taken([])]

    def _take(self, notification: Notification) -> None:
        event = notification.event
        if notification.gap is not None:
            self._has_missed = True
            self._store.missed()
        log = None if notification.replayed else self._log_of(event)
        begun = {} if self._has_missed else self._client.begun(self._subscription)
        self._store.keep(event, log, begun.get(str(log), ENDLESS))

    def _log_of(self, event: Event) -> Origin | None:
        """Return the log of a live event: the latest of its broker."""
        logs = [Origin.parse(log) for log in self._client.seen(self._subscription)]
        return max([log for log in logs if log.broker == event.broker], default=None)
