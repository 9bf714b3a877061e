"""WebSockets at `/ws`. Every connection is a client of its own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from vestnik.client.bus import Bus
from vestnik.errors import InvalidRequest, TurnedAway, VestnikError
from vestnik.gateway.admission import STRANGER_BYTES, tell_admitted
from vestnik.gateway.answers import STRANGER, wrong
from vestnik.gateway.bodies import read_as, read_token
from vestnik.gateway.conversation import REFUSED, Conversation, close_reason
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.notices import tell_refused
from vestnik.gateway.requests import Hello
from vestnik.gateway.sessions import Connect
from vestnik.gateway.settings import GatewaySettings
from vestnik.gateway.turns import Turns

GOING_AWAY, FULL = 1001, 1013
"""Why a WebSocket is closed, by the numbers of RFC 6455 and its registry."""
NO_HELLO: Final = 'a token is needed: say {"op": "hello", "token": TOKEN} first'
WRONG_HELLO: Final = "the broker does not know the token in hello"
LEAVING: Final = "the gateway is shutting down"


class Sockets:
    """The WebSockets of `/ws`, as many as `connections` in the settings allows.

    A token in a header is checked before the socket is opened. A browser has no headers: its socket is opened, and if
    the broker does not admit clients without a token, it has a short time to say Hello, and may say nothing else.
    """

    def __init__(
        self, connect: Connect, encoder: Encoder, turns: Turns, metrics: Metrics, settings: GatewaySettings
    ) -> None:
        self._connect = connect
        self._encoder = encoder
        self._turns = turns
        self._metrics = metrics
        self._settings = settings
        self._open: set[Conversation] = set()
        self._is_over = False

    async def talk(self, socket: WebSocket) -> None:
        bus: Bus | None = None
        hello: Hello | None = None
        denied = ""
        try:
            token = read_token(socket.headers)
            try:
                bus = await self._entered(token)
            except TurnedAway as error:
                if token is not None:
                    raise
                denied = NO_HELLO if error.code == STRANGER else error.reason
        except (VestnikError, TimeoutError) as error:
            await socket.send_denial_response(wrong(socket, error))
            return
        try:
            await socket.accept()
            if bus is None:
                hello, bus = await self._introduced(socket, denied)
            if bus is not None:
                tell_admitted(socket.scope)
                await self._converse(socket, bus, hello)
        except WebSocketDisconnect:
            pass
        finally:
            if bus is not None:
                await bus.close()

    async def _entered(self, token: str | None) -> Bus:
        bus = self._connect(token)
        try:
            async with asyncio.timeout(self._settings.patience):
                await bus.__aenter__()
        except BaseException:
            await bus.close()
            raise
        return bus

    async def _introduced(self, socket: WebSocket, denied: str) -> tuple[Hello | None, Bus | None]:
        """Return Hello and the client that it admits. Close the socket if anything else, or nothing, comes."""
        try:
            async with asyncio.timeout(self._settings.http_header_seconds):
                text = (await socket.receive()).get("text") or ""
            if len(text) <= STRANGER_BYTES:
                hello = read_as(Hello, text)
                return hello, await self._entered(hello.token)
        except TurnedAway as error:
            denied = WRONG_HELLO if error.code == STRANGER else error.reason
        except (InvalidRequest, TimeoutError):
            pass
        except VestnikError as error:
            denied = str(error)
        tell_refused(socket.scope, REFUSED, denied)
        with suppress(WebSocketDisconnect):
            await socket.close(REFUSED, close_reason(denied))
        return None, None

    async def _converse(self, socket: WebSocket, bus: Bus, hello: Hello | None) -> None:
        if self._is_over:
            await socket.close(GOING_AWAY, LEAVING)
            return
        if len(self._open) >= self._settings.connections:
            reason = f"{self._settings.connections:,} sockets are open, and no more at a time"
            tell_refused(socket.scope, FULL, reason)
            await socket.close(FULL, reason)
            return
        conversation = Conversation(
            socket, bus, self._entered, self._encoder, self._turns, self._metrics, self._settings
        )
        self._open.add(conversation)
        connections = self._metrics.connections.labels("websocket")
        connections.inc()
        try:
            await conversation.run(hello)
        finally:
            connections.dec()
            self._open.discard(conversation)

    def stop(self) -> None:
        """Let all end."""
        self._is_over = True
        for conversation in self._open:
            conversation.end(GOING_AWAY, LEAVING)
