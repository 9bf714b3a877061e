"""WebSockets at `/ws`. Every connection is a client of its own."""

from __future__ import annotations

from typing import Final

from starlette.websockets import WebSocket

from vestnik.gateway.conversation import Conversation
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.sessions import Connect
from vestnik.gateway.settings import GatewaySettings

GOING_AWAY, FULL = 1001, 1013
"""Why a WebSocket is closed, by the numbers of RFC 6455 and its registry."""
LEAVING: Final = "the gateway is shutting down"


class Sockets:
    """`/ws`: at most so many connections as the settings say."""

    def __init__(self, connect: Connect, encoder: Encoder, metrics: Metrics, settings: GatewaySettings) -> None:
        self._connect = connect
        self._encoder = encoder
        self._metrics = metrics
        self._settings = settings
        self._open: set[Conversation] = set()
        self._is_over = False

    async def talk(self, socket: WebSocket) -> None:
        await socket.accept()
        if self._is_over:
            await socket.close(GOING_AWAY, LEAVING)
            return
        if len(self._open) >= self._settings.connections:
            await socket.close(FULL, f"{self._settings.connections:,} sockets are open, and no more at a time")
            return
        conversation = Conversation(socket, self._connect, self._encoder, self._metrics, self._settings.patience)
        self._open.add(conversation)
        connections = self._metrics.connections.labels("websocket")
        connections.inc()
        try:
            await conversation.run()
        finally:
            connections.dec()
            self._open.discard(conversation)

    def stop(self) -> None:
        """Let all end."""
        self._is_over = True
        for conversation in self._open:
            conversation.end(GOING_AWAY, LEAVING)
