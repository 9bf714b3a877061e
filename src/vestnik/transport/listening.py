"""Taking connections, of which not too many may be half open."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Self

from vestnik.transport.resolving import resolve

HANDSHAKE_WITHIN = 10.0
"""Seconds in which TLS has to be agreed on."""
BACKLOG: Final = 1024
SHORT_OF_FILES: Final = 0.2
"""Seconds until the next try where the system has no room for another connection."""


class Listener:
    """Of connections that have not agreed on TLS yet there are at most `opening`; the oldest gives way."""

    def __init__(
        self,
        sockets: list[socket.socket],
        make: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        opening: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._make = make
        self._tls = tls
        self._most = opening
        self._opening: dict[asyncio.Task[None], None] = {}
        for one in sockets:
            self._loop.add_reader(one, self._accept, one)

    @classmethod
    async def bind(
        cls, make: Callable[[], asyncio.Protocol], host: str, port: int, tls: ssl.SSLContext | None, opening: int
    ) -> Self:
        """Listen at all addresses of `host`. OSError where that cannot be."""
        found = await resolve(host, port)
        sockets: list[socket.socket] = []
        try:
            for family, _, protocol, _, address in dict.fromkeys(found):
                sockets.append(_bound(family, protocol, (address[0], port or _port(sockets), *address[2:])))
        except OSError:
            for one in sockets:
                one.close()
            raise
        return cls(sockets, make, tls, opening)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: the first, where there are several."""
        host, port = self._sockets[0].getsockname()[:2]
        return host, port

    def secure(self, tls: ssl.SSLContext | None) -> None:
        """Take connections in this way from now on."""
        self._tls = tls

    async def close(self) -> None:
        """Take no more. Those that are there stay."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            self._loop.remove_reader(one)
            one.close()
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        """Not as a task: one that is cancelled may have accepted a connection, of which then nobody knows."""
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # who was there has left
        except OSError:
            self._loop.remove_reader(listening)
            self._loop.call_later(SHORT_OF_FILES, self._accept_again, listening)
            return
        connection.setblocking(False)
        if len(self._opening) >= self._most:
            oldest = next(iter(self._opening))
            del self._opening[oldest]  # now, and not when it has ended: the next to come ends another
            oldest.cancel()
        task = self._loop.create_task(self._open(connection))
        self._opening[task] = None
        task.add_done_callback(partial(self._opened, connection))

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    async def _open(self, connection: socket.socket) -> None:
        within = None if self._tls is None else HANDSHAKE_WITHIN
        with suppress(OSError):
            await self._loop.connect_accepted_socket(
                self._make, connection, ssl=self._tls, ssl_handshake_timeout=within
            )

    def _opened(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._opening.pop(task, None)
        if task.cancelled():
            connection.close()


def _bound(family: int, protocol: int, address: tuple[str | int, ...]) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.setblocking(False)
        one.bind(address)
        one.listen(BACKLOG)
    except OSError:
        one.close()
        raise
    return one


def _port(sockets: list[socket.socket]) -> int:
    """The port that was found free for the first of several."""
    return int(sockets[0].getsockname()[1]) if sockets else 0
