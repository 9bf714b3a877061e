"""One way to talk to all systems. What only ours can do, the others' clients do themselves: filter by content."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec import json

if TYPE_CHECKING:
    from vestnik.transport.ends import End
    from vestnik.wire.messages import Message

Data: TypeAlias = dict[str, Any]
Take: TypeAlias = Callable[[Data], None]
_encode, _decode = json.Encoder().encode, json.Decoder().decode


class Want(msgspec.Struct):
    """Quotes of some symbols, above a price."""

    symbols: list[str]
    above: float = -1.0

    @property
    def text(self) -> str:
        names = ", ".join([f"'{symbol}'" for symbol in self.symbols])
        return f"symbol IN ({names}) AND price > {self.above}"


class Client(Protocol):
    """A connection. `publish` returns when all is handed to the system; what it has not sent goes out by itself."""

    async def open(self, port: int) -> None: ...

    async def subscribe(self, want: Want, take: Take) -> None: ...

    async def publish(self, events: Sequence[Data]) -> None: ...

    async def close(self) -> None: ...


class Vestnik:
    async def open(self, port: int) -> None:
        import vestnik

        self._event = vestnik.Event
        self._bus = vestnik.connect(f"vestnik://127.0.0.1:{port}")
        await self._bus.__aenter__()

    async def subscribe(self, want: Want, take: Take) -> None:
        await self._bus.subscribe(want.text, lambda n: take(n.event.data))

    async def publish(self, events: Sequence[Data]) -> None:
        for data in events:
            await self._bus.publish(self._event("quote", data, source="feed"), durable=False)

    async def publish_durably(self, data: Data) -> None:
        await self._bus.publish(self._event("quote", data, source="durable"))

    async def close(self) -> None:
        await self._bus.close()


class Bare:
    """A client of ours that says Subscribe and counts what comes: where the broker is measured, not the client."""

    async def open(self, port: int) -> None:
        from vestnik.transport.tcp import dial

        self._take: Take = lambda _: None
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._is_welcome = asyncio.Event()
        self._end = await dial(self, "127.0.0.1", port)
        await self._is_welcome.wait()

    async def subscribe(self, want: Want, take: Take) -> None:
        from vestnik import Filter
        from vestnik.wire.messages import Subscribe

        self._take = take
        number = len(self._answers) + 1
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._end.send(Subscribe(f"s{number}", Filter.parse(want.text), 3600.0, afresh=number, request=number))
        self._end.flush()
        await answer

    async def publish(self, events: Sequence[Data]) -> None:
        from vestnik import Event
        from vestnik.wire.messages import Publish

        for start in range(0, len(events), 500):
            self._end.send(
                Publish(tuple([Event("quote", data, source="feed") for data in events[start : start + 500]]))
            )
            self._end.flush()
            await asyncio.sleep(0)

    async def close(self) -> None:
        self._end.close()

    def connected(self, end: End) -> None:
        from vestnik.wire.frames import VERSION
        from vestnik.wire.messages import Hello

        end.send(Hello(VERSION, f"bare-{id(self)}-{os.getpid()}"))
        end.flush()

    def received(self, end: End, messages: Iterable[Message]) -> None:
        from vestnik.wire.messages import Accepted, Notify, Ping, Pong, Welcome

        for message in messages:
            match message:
                case Notify(deliveries):
                    for delivery in deliveries:
                        for event in delivery.events:
                            for _ in delivery.numbers:
                                self._take(event.data)
                case Accepted(request):
                    self._answers[request].set_result(None)
                case Welcome():
                    self._is_welcome.set()
                case Ping():
                    end.send(Pong())
                    end.flush()

    def closed(self, end: End, reason: str, code: str = "") -> None: ...

    def full(self, end: End) -> None: ...

    def drained(self, end: End) -> None: ...


class Nats:
    async def open(self, port: int) -> None:
        import nats

        self._client = await nats.connect(f"nats://127.0.0.1:{port}")

    async def subscribe(self, want: Want, take: Take) -> None:
        async def receive(message: Any) -> None:
            data = _decode(message.data)
            if data["price"] > want.above:
                take(data)

        for symbol in want.symbols:
            await self._client.subscribe(symbol, cb=receive)
        await self._client.flush()

    async def publish(self, events: Sequence[Data]) -> None:
        for data in events:
            await self._client.publish(data["symbol"], _encode(data))

    async def close(self) -> None:
        await self._client.close()


class Redis:
    TOGETHER = 500

    async def open(self, port: int) -> None:
        from redis.asyncio import Redis

        self._client = Redis(port=port)
        self._reading: list[asyncio.Task[None]] = []

    async def subscribe(self, want: Want, take: Take) -> None:
        channel = self._client.pubsub(ignore_subscribe_messages=True)
        await channel.subscribe(*want.symbols)

        async def read() -> None:
            async for message in channel.listen():
                data = _decode(message["data"])
                if data["price"] > want.above:
                    take(data)

        self._reading.append(asyncio.create_task(read()))

    async def publish(self, events: Sequence[Data]) -> None:
        for start in range(0, len(events), self.TOGETHER):
            pipe = self._client.pipeline(transaction=False)
            for data in events[start : start + self.TOGETHER]:
                pipe.publish(data["symbol"], _encode(data))
            await pipe.execute()

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await self._client.aclose()


class Mosquitto:
    async def open(self, port: int) -> None:
        import aiomqtt

        self._client = aiomqtt.Client("127.0.0.1", port, max_queued_outgoing_messages=0)
        await self._client.__aenter__()
        self._reading: list[asyncio.Task[None]] = []

    async def subscribe(self, want: Want, take: Take) -> None:
        await self._client.subscribe([(symbol, 0) for symbol in want.symbols])

        async def read() -> None:
            async for message in self._client.messages:
                data = _decode(message.payload)
                if data["price"] > want.above:
                    take(data)

        self._reading.append(asyncio.create_task(read()))

    async def publish(self, events: Sequence[Data]) -> None:
        for data in events:
            await self._client.publish(data["symbol"], _encode(data))

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await self._client.__aexit__(None, None, None)


SYSTEMS: dict[str, Callable[[], Client]] = {
    "vestnik": Vestnik,
    "bare": Bare,
    "nats": Nats,
    "redis": Redis,
    "mosquitto": Mosquitto,
}
