"""One way to talk to all systems. What only ours can do, the others' clients do themselves: filter by content."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import json

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
    "nats": Nats,
    "redis": Redis,
    "mosquitto": Mosquitto,
}
