"""The gateway as an ASGI application."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from vestnik.gateway.admission import admitted
from vestnik.gateway.answers import HANDLERS, UNAVAILABLE, answer, problem
from vestnik.gateway.doors import Doorkeeper
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.metrics import CONTENT_TYPE, Metrics, Readings
from vestnik.gateway.notices import Notices
from vestnik.gateway.openapi import DESCRIPTION
from vestnik.gateway.publishing import Publishing
from vestnik.gateway.sessions import Connect, Sessions
from vestnik.gateway.settings import GatewaySettings
from vestnik.gateway.sockets import Sockets
from vestnik.gateway.sse import EventSource
from vestnik.gateway.turns import Turns
from vestnik.gateway.webhooks import Webhooks

Missing = Callable[[], Iterable[str]]
"""Returns, in words, each thing that a broker needs before it is ready."""


class Gateway:
    """What clients do, over HTTP and WebSocket. Enter it to let it run, and give it to an ASGI server meanwhile.

    `connect` makes a client of the broker, wherever that is. `missing` says what it waits for until it is ready,
    `failure` why it could not store the last events, if it could not, and `readings` what else is measured.
    """

    def __init__(
        self,
        connect: Connect,
        settings: GatewaySettings | None = None,
        *,
        missing: Missing = lambda: (),
        failure: Callable[[], str] = lambda: "",
        readings: Readings = tuple,
    ) -> None:
        self.settings = settings = settings or GatewaySettings()
        encoder, turns, self._metrics = Encoder(), Turns(settings), Metrics(readings)
        self._missing = missing
        self.notices = Notices()
        self._sessions = Sessions(connect, settings.connections, settings.patience)
        self._sockets = Sockets(connect, encoder, turns, self._metrics, settings)
        self._source = EventSource(connect, encoder, self._metrics, settings)
        self._webhooks = Webhooks(connect, encoder, turns, self._metrics, self.notices, settings)
        publishing = Publishing(turns, self._metrics, settings, failure)
        known = partial(admitted, self._sessions)
        self.routes: Final = [
            Route("/events", known(self._source.get), methods=["GET"]),
            Route("/events", known(publishing.post), methods=["POST"]),
            Route("/events", publishing.options, methods=["OPTIONS"]),
            Route("/subscriptions", known(self._webhooks.get_all), methods=["GET"]),
            Route("/subscriptions", known(self._webhooks.post), methods=["POST"]),
            Route("/subscriptions/{id}", known(self._webhooks.get), methods=["GET"]),
            Route("/subscriptions/{id}", known(self._webhooks.delete), methods=["DELETE"]),
            Route("/metrics", self._measure, methods=["GET"]),
            Route("/healthz", _is_alive, methods=["GET"]),
            Route("/readyz", self._is_ready, methods=["GET"]),
            Route("/openapi.json", _describe, methods=["GET"]),
            Route("/ws", _wants_upgrade, methods=["GET"]),
            WebSocketRoute("/ws", self._sockets.talk),
            WebSocketRoute("/{path:path}", _deny),
        ]
        inside = Starlette(routes=self.routes, exception_handlers=HANDLERS)
        inside.router.redirect_slashes = False  # a redirection would name the host that the client sent
        self._application = Doorkeeper(inside, settings.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_request = scope["type"] in ("http", "websocket")
        await self._application(self.notices.watching(scope) if is_request else scope, receive, send)

    async def __aenter__(self) -> Self:
        self.notices.open()
        self._webhooks.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        await self._webhooks.close()
        await self._source.streams.close()
        await self._sessions.close()
        self.notices.close()

    def stop(self) -> None:
        """Let all streams and sockets end."""
        self._sockets.stop()
        self._source.streams.stop()

    async def _measure(self, _: Request) -> Response:
        return Response(self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def _is_ready(self, _: Request) -> Response:
        waits = list(self._missing())
        return answer({"ready": not waits, "waits": waits}, UNAVAILABLE if waits else 200)


async def _is_alive(_: Request) -> Response:
    return answer({"alive": True})


async def _wants_upgrade(_: Request) -> Response:
    refusal = problem(426, "this address is for WebSockets", "upgrade")
    refusal.headers["upgrade"] = "websocket"
    return refusal


async def _deny(socket: WebSocket) -> None:
    await socket.send_denial_response(problem(404, "WebSockets are at /ws", "path"))


async def _describe(_: Request) -> Response:
    return answer(DESCRIPTION)
