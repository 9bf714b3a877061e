"""Something between a client and its broker that loses notifications, or carries nothing for a while."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from random import Random
from typing import Self

from vestnik.server.process import Broker
from vestnik.transport.addresses import Address, read_address
from vestnik.wire.frames import Reader
from vestnik.wire.messages import Ask, Notify

LENGTH = 4


class Proxy(ABC):
    """Takes connections, and carries on its tasks what they say, until it is left."""

    def __init__(self, broker: Broker) -> None:
        self._broker = read_address(broker.address)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._leave()
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        return str(Address(*self._server.sockets[0].getsockname()))

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...

    def _leave(self) -> None:  # noqa: B027
        """Let go of what is still open."""


class LossyProxy(Proxy):
    """Carries frames both ways, but each with a notification is lost with probability `loss`; no other ever is.

    While it is held, it reads nothing from the broker. It counts what it loses, and what clients ask for.
    """

    def __init__(self, broker: Broker, loss: float, seed: int) -> None:
        self.loss = loss
        self.lost = 0
        self.asked = 0
        super().__init__(broker)
        self._random = Random(seed).random
        self._open = asyncio.Event()
        self._open.set()

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_broker, to_broker = await asyncio.open_connection(*self._broker)
        up = asyncio.create_task(self._carry(reader, to_broker))
        down = asyncio.create_task(self._carry(from_broker, writer))
        self._tasks |= {up, down}

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry frame by frame, until one end closes."""
        frames = Reader()
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    await self._open.wait()
                    length = await reader.readexactly(LENGTH)
                    frame = length + await reader.readexactly(int.from_bytes(length, "big"))
                    (message,) = frames.read(frame)
                    self.asked += isinstance(message, Ask)
                    if isinstance(message, Notify) and self._random() < self.loss:
                        self.lost += 1
                    else:
                        writer.write(frame)
                        await writer.drain()
        finally:
            writer.close()


class HalfOpen(Proxy):
    """Carries bytes both ways. When it is cut, who connected sees the end of its connections; the broker does not."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._callers: list[asyncio.StreamWriter] = []
        self._called: list[asyncio.StreamWriter] = []

    def _leave(self) -> None:
        for writer in (*self._callers, *self._called):
            writer.close()

    async def cut(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for writer in self._callers:
            writer.close()
        self._callers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_broker, to_broker = await asyncio.open_connection(*self._broker)
        self._callers.append(writer)
        self._called.append(to_broker)
        self._tasks.add(asyncio.create_task(_carry(reader, to_broker)))
        self._tasks.add(asyncio.create_task(_carry(from_broker, writer)))


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
