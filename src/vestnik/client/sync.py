"""The synchronous client: the asynchronous one on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from vestnik.client.arguments import is_async
from vestnik.client.connect import connect
from vestnik.client.factories import Factory
from vestnik.client.notifications import Notification, Overflow
from vestnik.client.past import Past
from vestnik.client.services import ServiceBus
from vestnik.client.subscriptions import Subscription
from vestnik.client.sync_services import (
    SyncAnswer,
    SyncFactory,
    SyncMake,
    SyncReplays,
    SyncView,
    SyncWanted,
    in_parts,
    on_a_thread,
)
from vestnik.errors import Disconnected, WrongType
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.session.checking import Checking
from vestnik.wire.messages import Reviewed
from vestnik.wire.replays import Replay

Result = TypeVar("Result")

UNOPENED: Final = "there is no connection; use the client in `with`: with vestnik.connect_sync() as bus: ..."
ON_ITS_OWN_THREAD: Final = (
    "a callback runs on the thread of its client, which would wait for itself; put what is to be done into a "
    "queue.Queue for another thread, or use the asynchronous client, whose callbacks may await"
)


class SyncBus:
    """As `Bus`, for `with`. It may be used from several threads; callbacks are called on its own."""

    def __init__(self, make: Callable[[], ServiceBus]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened: ServiceBus | None = None

    def __repr__(self) -> str:
        return f"<SyncBus, {'not open' if self._opened is None else f'of {self._opened!r}'}>"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vestnik", daemon=True)
        self._thread.start()
        try:
            self._opened = self.run(self._open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave: what was published is sent, subscriptions end."""
        if self._loop is not None:
            self.run(self._bus.close())
            self._stop()

    @property
    def name(self) -> str:
        return self._bus.name

    @property
    def is_durable(self) -> bool:
        return self._bus.is_durable

    @property
    def _bus(self) -> ServiceBus:
        if self._loop is None or self._opened is None:
            raise Disconnected(UNOPENED)
        return self._opened

    def publish(self, event: Event, *, durable: bool = True, timeout: float | None = None) -> None:
        """As `Bus.publish`. TimeoutError where it takes longer: it may be published all the same."""
        self.run(self._bus.publish(event, durable=durable), timeout)

    def publish_many(self, events: Iterable[Event], *, durable: bool = True, timeout: float | None = None) -> None:
        self.run(self._bus.publish_many(events, durable=durable), timeout)

    def subscribe(
        self,
        wanted: Filter | str,
        callback: Callable[[Notification], None] | None = None,
        *,
        name: str | None = None,
        queue: int = 1000,
        overflow: Overflow = "block",
        handback: object = None,
        checking: Checking | None = None,
        replay: Replay | None = None,
        settled: bool = False,
        seen: Mapping[str, int] | None = None,
    ) -> SyncSubscription:
        made = self._bus.subscribe(
            wanted,
            callback,
            name=name,
            queue=queue,
            overflow=overflow,
            handback=handback,
            checking=checking,
            replay=replay,
            settled=settled,
            seen=seen,
        )
        return SyncSubscription(self, self.run(made))

    def fetch(
        self, wanted: Filter | str, *, limit: int | None = 100, since: Any = None, latest_by: str | None = None
    ) -> Past:
        return self.run(self._bus.fetch(wanted, limit=limit, since=since, latest_by=latest_by))

    def review(
        self,
        wanted: Filter | str = "TRUE",
        *,
        after: int = -1,
        upto: int = 0,
        most: int = 0,
        timeout: float | None = None,
    ) -> Reviewed:
        """As `Bus.review`. TimeoutError where it takes longer."""
        return self.run(self._bus.review(wanted, after=after, upto=upto, most=most), timeout)

    def inspect(self, kind: str, to: str = "", **about: Any) -> Any:
        return self.run(self._bus.inspect(kind, to, **about))

    def advertise(self, offered: Filter | str, *, name: str | None = None, settled: bool = False) -> str:
        return self.run(self._bus.advertise(offered, name=name, settled=settled))

    def unadvertise(self, name: str) -> None:
        self.run(self._bus.unadvertise(name))

    def replays(self, offered: Filter | str, answer: SyncAnswer, *, name: str | None = None) -> SyncReplays:
        """As `Bus.replays`; `answer` is called on a thread of its own, and may use this client."""
        if not callable(answer) or is_async(answer):
            raise WrongType("replays of connect_sync are answered by a plain function: def answer(asked): ...", answer)
        return SyncReplays(self, self.run(self._bus.replays(offered, in_parts(answer), name=name)))

    def view(self, wanted: Filter | str, *, key: str) -> SyncView:
        return SyncView(self, self.run(self._bus.view(wanted, key=key)))

    def wanted(self, offered: Filter | str) -> SyncWanted:
        return SyncWanted(self, self.run(self._bus.wanted(offered)))

    def request(self, request: Event, *, timeout: float = 10.0) -> Event:
        return self.run(self._bus.request(request, timeout=timeout))

    def request_all(self, request: Event, *, timeout: float = 1.0, limit: int | None = None) -> list[Event]:
        return self.run(self._bus.request_all(request, timeout=timeout, limit=limit))

    def reply(self, request: Event | Notification, answer: Event | Mapping[str, Any] | None = None) -> None:
        self.run(self._bus.reply(request, answer))

    def factory(
        self, offered: Filter | str, *, key: str | None = None, linger: float = 5.0, warm: int = 100
    ) -> Callable[[SyncMake], SyncFactory]:
        """Decorates a function, which is run on a thread of its own."""

        begin = self._bus.factory(offered, key=key, linger=linger, warm=warm)

        async def start(make: SyncMake) -> Factory:
            if not callable(make) or is_async(make):
                raise WrongType("a factory of connect_sync runs a plain function: def produce(producer): ...", make)
            made = begin(on_a_thread(self, make))
            await made.ready()
            return made

        return lambda make: SyncFactory(self, self.run(start(make)))

    def run(self, work: Coroutine[Any, Any, Result], timeout: float | None = None) -> Result:
        """Do `work` on the thread of this client; TimeoutError where that takes longer."""
        if self._loop is None:
            work.close()
            raise Disconnected(UNOPENED)
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(ON_ITS_OWN_THREAD)
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, timeout), self._loop).result()

    async def _open(self) -> ServiceBus:
        return await self._make().__aenter__()

    def _stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


class SyncSubscription(Iterator[Notification]):
    """As `Subscription`, for `for` and `with`."""

    def __init__(self, bus: SyncBus, subscription: Subscription) -> None:
        self._bus = bus
        self._subscription = subscription

    @property
    def name(self) -> str:
        return self._subscription.name

    @property
    def filter(self) -> Filter:
        return self._subscription.filter

    @property
    def seen(self) -> Mapping[str, int]:
        """As `Subscription.seen`."""
        return self._bus.run(_seen(self._subscription))

    def __repr__(self) -> str:
        return f"<Sync{repr(self._subscription).removeprefix('<')}"

    def __iter__(self) -> SyncSubscription:
        return self

    def __next__(self) -> Notification:
        found = self._bus.run(_next(self._subscription))
        if found is None:
            raise StopIteration
        return found

    def get(self, timeout: float | None = None) -> Notification:
        return self._bus.run(self._subscription.get(timeout))

    def try_get(self) -> Notification | None:
        return self._bus.run(_try_get(self._subscription))

    def fetch(self) -> list[Notification]:
        return self._bus.run(_fetch(self._subscription))

    def change(self, wanted: Filter | str) -> None:
        self._bus.run(self._subscription.change(wanted))

    def unsubscribe(self) -> None:
        self._bus.run(self._subscription.unsubscribe())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unsubscribe()


async def _seen(subscription: Subscription) -> Mapping[str, int]:
    return dict(subscription.seen)


async def _next(subscription: Subscription) -> Notification | None:
    return await anext(subscription, None)


async def _try_get(subscription: Subscription) -> Notification | None:
    return subscription.try_get()


async def _fetch(subscription: Subscription) -> list[Notification]:
    return subscription.fetch()


def connect_sync(
    url: str | None = None,
    *,
    name: str | None = None,
    token: str | None = None,
    tls_ca: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    timeout: float | None = 10.0,
) -> SyncBus:
    """A client of the broker at `url`, for `with`; what is left out is taken from the environment, as by `connect`."""
    return SyncBus(
        lambda: connect(url, name=name, token=token, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key, timeout=timeout)
    )
