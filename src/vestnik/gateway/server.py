"""A gateway that listens."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import uvicorn

from vestnik.errors import CannotListen
from vestnik.gateway.app import Gateway
from vestnik.gateway.connections import HttpConnection, SocketConnection
from vestnik.gateway.settings import most_connections
from vestnik.transport.addresses import Address
from vestnik.transport.listening import Listener
from vestnik.transport.tcp import address

_LEAVE_WITHIN, _ABORT_WITHIN = 0.7, 1
"""Seconds in which connections have to end, and in which those that were cut off have to."""

_BACKLOG = 1024
_OPENING = 16, 256
"""How many connections may be open that have not agreed on TLS yet: a quarter of all, but no less and no more."""

_UNSAID = (
    "completing handshake",
    "Invalid HTTP request received",
    "Invalid UTF-8 sequence received",
    "Unsupported upgrade request",
)
"""Parts of records that uvicorn logs without an address or a bound. The gateway logs such refusals itself."""

logging.getLogger("uvicorn.error").addFilter(lambda record: not any(text in record.getMessage() for text in _UNSAID))


class _Server(uvicorn.Server):
    """Leaves signals to the process that it is part of, and accepts connections one at a time.

    The event loop's own server accepts all that wait before the first of them is counted: a crowd would take the last
    file descriptor of the process.
    """

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._settings = gateway.settings
        self._notices = gateway.notices
        self._listener: Listener | None = None
        self.servers = []

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        least, most = _OPENING
        opening = max(least, min(most, most_connections(self._settings.http_connections) // 4))
        self._listener = Listener(sockets or [], self._connection, self.config.ssl, opening)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._listener is not None:
            await self._listener.close()
        await super().shutdown()

    def _connection(self) -> HttpConnection:
        return HttpConnection(
            self._settings,
            self._notices,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


class GatewayServer:
    """Enter it to let a gateway be reached at `listen`, with `tls` where given; CannotListen where that cannot be."""

    def __init__(self, gateway: Gateway, listen: Address, tls: ssl.SSLContext | None = None) -> None:
        self.address = ""  # where it listens
        self._gateway = gateway
        self._listen = listen
        config = uvicorn.Config(
            gateway,
            loop="none",
            ws=SocketConnection,
            ws_max_size=gateway.settings.largest,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_ABORT_WITHIN,
        )
        config.load()
        config.ssl = tls
        self._server = _Server(config, gateway)

    async def __aenter__(self) -> Self:
        listening = _listening(self._listen)
        self.address = address(listening.getsockname())
        try:
            await self._gateway.__aenter__()
        except BaseException:
            listening.close()
            raise
        self._serving = asyncio.create_task(self._server.serve([listening]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gateway.stop()
        self._server.should_exit = True
        await asyncio.wait([self._serving], timeout=_LEAVE_WITHIN)
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await self._serving
        await self._gateway.__aexit__()


def _listening(at: Address) -> socket.socket:
    """A socket that is known to be TCP: asyncio sends small answers at once only then, and 40 ms later otherwise."""
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        made.bind(tuple(at))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise CannotListen(
            str(at), f"{error.strerror or error}; choose another port, or 0 for any that is free"
        ) from None
    return made
