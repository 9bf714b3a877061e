"""Taking connections, of which not too many may be half open."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Self

from vestnik.logs import Throttle, emit
from vestnik.transport.addresses import Address
from vestnik.transport.resolving import resolve

LOG: Final = logging.getLogger(__name__)

HANDSHAKE_WITHIN = 10.0
"""Seconds in which TLS has to be agreed on."""
BACKLOG: Final = 1024
SHORT_OF_FILES: Final = 0.2
"""Seconds until the next try where the system has no room for another connection."""
NO_TLS: Final = "no TLS was agreed on"
RAISE_THE_LIMIT: Final = "raise the limit of the process (ulimit -n, LimitNOFILE=), or lower limits.connections"


class Listener:
    """Accepts connections. At most `opening` of them negotiate TLS at a time; the oldest gives way.

    It logs connections that it cannot accept, and those that do not agree on TLS.
    """

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
        self._opening: dict[asyncio.Task[None], str] = {}  # with the address of the other end
        self._unaccepted = Throttle(self._loop, _not_accepted)
        self._refused = Throttle(self._loop, _connection_refused)
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
        self._unaccepted.close()
        self._refused.close()

    def _accept(self, listening: socket.socket) -> None:
        """Not as a task: one that is cancelled may have accepted a connection, of which then nobody knows."""
        try:
            connection, name = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # who was there has left
        except OSError as error:
            self._unaccepted.take(error.errno, address=_address(listening.getsockname()), reason=_why_not(error))
            self._loop.remove_reader(listening)
            self._loop.call_later(SHORT_OF_FILES, self._accept_again, listening)
            return
        connection.setblocking(False)
        if len(self._opening) >= self._most:
            oldest = next(iter(self._opening))
            peer = self._opening.pop(oldest)  # now, and not when it has ended: the next to come ends another
            oldest.cancel()
            self._refused.take("busy", code="busy", reason=f"{self._most} others have not agreed on TLS", peer=peer)
        peer = _address(name)
        task = self._loop.create_task(self._open(connection, peer))
        self._opening[task] = peer
        task.add_done_callback(partial(self._opened, connection))

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    async def _open(self, connection: socket.socket, peer: str) -> None:
        within = None if self._tls is None else HANDSHAKE_WITHIN
        try:
            await self._loop.connect_accepted_socket(
                self._make, connection, ssl=self._tls, ssl_handshake_timeout=within
            )
        except (ConnectionResetError, BrokenPipeError) as error:
            fields = {"code": "", "reason": str(error), "peer": peer}
            emit(LOG, logging.DEBUG, "connection.closed", "a connection ended before TLS was agreed on", **fields)
        except OSError as error:
            self._refused.take(str(error), code="tls", reason=f"{NO_TLS}: {error}", peer=peer)

    def _opened(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._opening.pop(task, None)
        if task.cancelled():
            connection.close()


def _address(name: tuple[str, int, *tuple[object, ...]]) -> str:
    return str(Address(*name[:2]))


def _why_not(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{reason}; {RAISE_THE_LIMIT}" if error.errno == errno.EMFILE else reason


def _not_accepted(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "connection.waiting", "a connection cannot be accepted; trying again", **fields)


def _connection_refused(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "connection.refused", "connection refused", **fields)


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
