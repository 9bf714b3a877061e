"""Connections go through TCP proxies, which can be cut, or go silent, and be healed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

CHUNK = 1 << 16


class LinkProxy:
    """Carries bytes to a port of this machine.

    While it is cut, connections end and new ones end at once. While it is silent, connections stay and carry nothing;
    what was sent meanwhile arrives when it is healed, as TCP would have it.
    """

    def __init__(self, target: int) -> None:
        self.address = ""
        self._target = target
        self._server: asyncio.Server | None = None
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        self._flows.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def silence(self) -> None:
        self._flows.clear()

    def heal(self) -> None:
        self._is_cut = False
        self._flows.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            from_target, to_target = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        for source, sink in ((reader, to_target), (from_target, writer)):
            self._writers.add(sink)
            task = asyncio.create_task(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes until one end closes."""
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()
