"""The connections of HTTP clients: how many there may be, and how long each may take to say what it wants.

A connection is protected while it carries a complete request of a client that the broker has admitted. All others, such
as those with half a request, give way to new connections when there is no more room, the oldest first.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from enum import Enum
from http import HTTPStatus
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from vestnik.gateway.admission import ADMITTED, STRANGER_BYTES
from vestnik.gateway.notices import Notices
from vestnik.gateway.settings import GatewaySettings, most_connections

_numbers = itertools.count()


class Phase(Enum):
    """The phases of a connection; each but SERVED has a deadline."""

    HEAD = "the head of a request is to come"
    IDLE = "a request was answered, and no other has begun"
    SERVED = "a request is being served"
    DRAINED = "a request was answered before all of its body came"


class Connection:
    """A connection of either kind: it has a number by age, and knows whether the broker has admitted the other end."""

    app: Any
    transport: asyncio.Transport
    is_cut = False
    _is_admitted = False

    def begin(self) -> None:
        """Number the connection, and let the application tell it who is admitted."""
        self.number = next(_numbers)
        inside: Callable[..., Awaitable[None]] = self.app

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            self._is_admitted = False
            extensions = {**(scope.get("extensions") or {}), ADMITTED: self.admit}
            await inside({**scope, "extensions": extensions}, receive, send)

        self.app = serve

    def admit(self) -> None:
        self._is_admitted = True

    @property
    def gives_way(self) -> bool:
        """Whether it may be cut to make room for a new connection."""
        return not self._is_admitted and not self.is_cut

    def cut(self) -> None:
        """End the connection at once."""
        self.is_cut = True
        self.transport.abort()


class HttpConnection(Connection, H11Protocol):
    """A connection that carries requests, until one of them makes a WebSocket of it."""

    def __init__(self, settings: GatewaySettings, notices: Notices, **terms: Any) -> None:
        super().__init__(**terms)
        self._settings = settings
        self._notices = notices
        self._most = most_connections(settings.http_connections)
        self._phase = Phase.SERVED
        self._deadline: asyncio.TimerHandle | None = None
        self._drained = 0
        self.begin()

    @property
    def gives_way(self) -> bool:
        is_served = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return not (self._is_admitted and is_served) and not self.is_cut

    # --- what asyncio and uvicorn call ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > self._most:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase is Phase.DRAINED:
            self._drained += len(data)
            if self._drained > self._settings.largest:
                self.cut()
                return
        super().data_received(data)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        error = sys.exception()
        self._part(400, "this is no HTTP request" if error is None else f"this is no HTTP request: {error}")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._unwatch()
        super().handle_websocket_upgrade(event)

    # --- room ---

    def _make_room(self) -> None:
        ours: list[Connection] = [one for one in self.connections if isinstance(one, Connection)]
        others = [one for one in ours if one is not self and one.gives_way]
        if others:
            min(others, key=lambda one: one.number).cut()
        else:
            bound = f"limits.http_connections = {self._settings.http_connections:,}"
            if self._most < self._settings.http_connections:
                bound += f", of which the file descriptors of the process allow {self._most:,}"
            self._part(503, f"the gateway has no room for another connection ({bound}); try again later")

    def _part(self, status: int, reason: str) -> None:
        """Say why the connection ends, and end it."""
        self._notices.refused(self.client, "", status, reason)
        self.transport.write(_answer(status, reason))
        self.transport.close()

    # --- time ---

    def _watch(self) -> None:
        """Set the time within which the present phase has to end."""
        phase = self._now()
        if phase is not self._phase or self._deadline is None:
            self._unwatch()
            self._phase, self._drained = phase, 0
            if phase is not Phase.SERVED:
                idle = phase is Phase.IDLE
                seconds = self.timeout_keep_alive if idle else self._settings.http_header_seconds
                self._deadline = self.loop.call_later(seconds, self._late)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _now(self) -> Phase:
        if self.transport.is_closing():
            return Phase.SERVED
        if self.conn.their_state is h11.IDLE:
            has_begun = self.cycle is None or bool(self.conn.trailing_data[0])
            return Phase.HEAD if has_begun else Phase.IDLE
        is_over = self.cycle is not None and self.cycle.response_complete
        return Phase.DRAINED if is_over and self.conn.their_state is h11.SEND_BODY else Phase.SERVED

    def _late(self) -> None:
        self._deadline = None
        if self._phase is Phase.HEAD and self.conn.trailing_data[0]:
            seconds = self._settings.http_header_seconds
            reason = f"the head of the request did not come in time (limits.http_header_seconds = {seconds:g})"
            self._part(408, reason)
        else:
            self.cut()


class SocketConnection(Connection, WebSocketsSansIOProtocol):
    """A connection that became a WebSocket. Before the other end is admitted, its messages are short."""

    def __init__(self, **terms: Any) -> None:
        super().__init__(**terms)
        self._most = self.conn.max_message_size or 0
        self.conn.max_message_size = min(self._most, STRANGER_BYTES)
        self.begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        error = self.conn.handshake_exc
        if error is not None and not self.handshake_initiated and not self.transport.is_closing():
            self.transport.write(_answer(400, f"no WebSocket can be opened by this request: {error}"))
            self.transport.close()

    def admit(self) -> None:
        super().admit()
        self.conn.max_message_size = self._most


def _answer(status: int, reason: str) -> bytes:
    """Return a whole response, after which the connection is closed."""
    body = msgspec.json.encode({"error": reason})
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body
