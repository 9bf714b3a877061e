"""A broker by script: it answers requests at once, and notifies as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from vestnik import Event
from vestnik.client.services import ServiceBus
from vestnik.transport.ends import End, Receiver
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Delivery,
    Fetch,
    Fetched,
    FetchMore,
    Gap,
    Hello,
    Message,
    Notify,
    Request,
    Subscribe,
    Welcome,
)

LOGS = (("b", 1),)
Kind = TypeVar("Kind", bound=Message)


def quote(number: int, **envelope: Any) -> Event:
    return Event("quote", {"price": number}, **{"source": "s", "id": str(number), **envelope}).stamped("b", number)


class ScriptedBroker(End):
    """It is the end of the connection as the client sees it. `pages` is what it answers to each Fetch."""

    peer = "a script"

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.pages: list[Fetched] = []
        self.seen: tuple[tuple[str, int], ...] = (("b/1", 1),)
        self.settles = True
        self.is_open = True
        self._client: Receiver | None = None
        self._numbers: dict[str, int] = {}
        self.epochs: dict[str, int] = {}

    async def dial(self, client: Receiver) -> End:
        self._client = client
        client.connected(self)
        return self

    # --- what the client says ---

    def send(self, message: Message) -> None:
        self.heard.append(message)
        asyncio.get_running_loop().call_soon(self._answer, message)

    def _answer(self, message: Message) -> None:
        match message:
            case Hello():
                self.say(Welcome(message.version, "b"))
            case Subscribe(name):
                self.epochs[name] = message.epoch or message.afresh
                last = self._numbers.setdefault(name, 0)
                self.say(Accepted(message.request, 60.0, self.epochs[name], last, self.seen if not last else ()))
            case Advertise(settled=True) if not self.settles:
                pass
            case Fetch() | FetchMore():
                if self.pages:
                    page = self.pages.pop(0)
                    self.say(Fetched(message.request, page.events, page.lost, page.more))
            case Request():
                self.say(Accepted(message.request))

    def of(self, kind: type[Kind]) -> list[Kind]:
        """What was heard of a kind."""
        return [message for message in self.heard if isinstance(message, kind)]

    def flush(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None:
        self.is_open = False

    # --- what the broker says ---

    def say(self, *messages: Message) -> None:
        if self.is_open and self._client is not None:
            self._client.received(self, messages)

    def notify(self, events: Iterable[Event | Gap], name: str = "s1") -> None:
        deliveries = []
        for event in events:
            self._numbers[name] += 1
            numbers = ((self.epochs[name], self._numbers[name]),)
            deliveries.append(
                Delivery((), numbers, gap=event) if isinstance(event, Gap) else Delivery((event,), numbers)
            )
        self.say(Notify(tuple(deliveries), LOGS))

    def cut(self) -> None:
        """Lose the connection; the client connects again."""
        assert self._client is not None
        self._client.closed(self, "it was cut")


@asynccontextmanager
async def scripted(name: str | None = None) -> AsyncIterator[tuple[ServiceBus, ScriptedBroker]]:
    """A client, and the broker that it is connected to."""
    broker = ScriptedBroker()
    async with ServiceBus(broker.dial, "a script", name=name) as bus:
        yield bus, broker
