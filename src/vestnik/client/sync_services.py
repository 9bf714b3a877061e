"""What the synchronous client is given: views, demand and producers, on the thread of the asynchronous one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from vestnik.client.factories import Factory, Make, Producer
from vestnik.client.interests import Interest
from vestnik.client.replays import ReplayAnswer, ReplayRequest, Replays
from vestnik.client.views import Change, View
from vestnik.client.wanted import Wanted
from vestnik.model.events import Event
from vestnik.wire.pages import PAGE

if TYPE_CHECKING:
    from vestnik.client.sync import SyncBus


class SyncView(Mapping[Any, Event]):
    """As `View`, for `with`; `changes` gives its changes."""

    def __init__(self, bus: SyncBus, view: View) -> None:
        self._bus = bus
        self._view = view

    def __getitem__(self, key: Any) -> Event:
        return self._view[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view)

    def __len__(self) -> int:
        return len(self._view)

    def changes(self) -> Iterator[Change]:
        while (change := self._bus.run(_next(self._view))) is not None:
            yield change

    def close(self) -> None:
        self._bus.run(self._view.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncWanted:
    """As `Wanted`, for `with`."""

    def __init__(self, bus: SyncBus, wanted: Wanted) -> None:
        self._bus = bus
        self._wanted = wanted

    def __bool__(self) -> bool:
        return bool(self.interests)

    @property
    def interests(self) -> list[Interest]:
        return self._bus.run(_interests(self._wanted))

    def wait(self, value: bool = True, timeout: float | None = None) -> None:
        """Return when it is wanted, or with False when it is not; TimeoutError where that takes longer."""
        self._bus.run(self._wanted.wait(value, timeout))

    def close(self) -> None:
        self._bus.run(self._wanted.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncProducer:
    """As `Producer`, on a thread of its own. Its function is to return when `goes_on` says no."""

    def __init__(self, bus: SyncBus, producer: Producer) -> None:
        self.bus = bus
        self.key = producer.key
        self.past = producer.past
        self.filter = producer.filter
        self._stopped = threading.Event()

    def goes_on(self, seconds: float = 0.0) -> bool:
        """Wait; whether it is still wanted then. It returns at once when it is not."""
        return not self._stopped.wait(seconds)

    def publish(self, event: Event, *, durable: bool = True) -> None:
        self.bus.publish(event, durable=durable)

    def stop(self) -> None:
        self._stopped.set()


SyncMake: TypeAlias = Callable[[SyncProducer], None]


class SyncFactory:
    """As `Factory`."""

    def __init__(self, bus: SyncBus, factory: Factory) -> None:
        self._bus = bus
        self._factory = factory

    def close(self) -> None:
        """Stop all producers."""
        self._bus.run(self._factory.close())


SyncAnswer: TypeAlias = Callable[[ReplayRequest], Iterable[Event]]


class SyncReplays:
    """As `Replays`, for `with`."""

    def __init__(self, bus: SyncBus, replays: Replays) -> None:
        self._bus = bus
        self._replays = replays
        self.name = replays.name
        self.filter = replays.filter

    def close(self) -> None:
        self._bus.run(self._replays.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def in_parts(answer: SyncAnswer) -> ReplayAnswer:
    """Return the asynchronous form of a function that answers replays. It runs on threads, also as a generator."""

    async def answered(asked: ReplayRequest) -> AsyncIterator[Event]:
        events = await asyncio.to_thread(lambda: iter(answer(asked)))
        while True:
            part, failure = await asyncio.to_thread(_part, events)
            for event in part:
                yield event
            if failure is not None:
                raise failure
            if not part:
                return

    return answered


def _part(events: Iterator[Event]) -> tuple[list[Event], Exception | None]:
    """Return the next events, and what was raised after them."""
    part: list[Event] = []
    try:
        for event in islice(events, PAGE):
            part.append(event)
    except Exception as error:
        return part, error
    return part, None


def on_a_thread(bus: SyncBus, make: SyncMake) -> Make:
    """The asynchronous form of a function that runs a producer: cancelled, it waits until the function returns."""

    async def run(producer: Producer) -> None:
        inner, loop = SyncProducer(bus, producer), asyncio.get_running_loop()
        over: asyncio.Future[BaseException | None] = loop.create_future()

        def work() -> None:
            error: BaseException | None = None
            try:
                make(inner)
            except BaseException as raised:
                error = raised
            loop.call_soon_threadsafe(over.set_result, error)

        threading.Thread(target=work, name=f"producer {producer.key}").start()
        try:
            error = await asyncio.shield(over)
        except asyncio.CancelledError:
            inner.stop()
            await over
            raise
        if error is not None:
            raise error

    return run


async def _next(view: View) -> Change | None:
    return await anext(view, None)


async def _interests(wanted: Wanted) -> list[Interest]:
    return wanted.interests
