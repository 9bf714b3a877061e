"""Admission: the broker checks the token of a request before the gateway reads any other part of it.

So a request without a valid token costs a constant amount: neither its body nor its parameters are decoded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, NamedTuple, TypeAlias

from starlette.requests import Request
from starlette.types import Scope

from vestnik.client.bus import Bus
from vestnik.gateway.bodies import read_token
from vestnik.gateway.sessions import Sessions

ADMITTED: Final = "vestnik.admitted"
"""The ASGI extension by which the server is told that the broker knows who sent a request: a function."""


STRANGER_BYTES: Final = 4096
"""The most bytes of a WebSocket message of somebody who is not admitted: what Hello with a token needs."""


class Caller(NamedTuple):
    """A client that the broker has admitted: the token that it showed, and the session that its requests share."""

    token: str | None
    bus: Bus

    def owner(self, request: Request) -> Hashable:
        """Return to whose share of the room for large requests a request counts: a token at one address."""
        return self.token, request.client.host if request.client is not None else ""


Handler: TypeAlias = Callable[[Request, Caller], Awaitable[Any]]
"""Answers the request of a caller."""


def admitted(sessions: Sessions, handler: Handler) -> Callable[[Request], Awaitable[Any]]:
    """Return an endpoint that calls `handler` for callers that the broker admits, and raises TurnedAway for others."""

    async def endpoint(request: Request) -> Any:
        token = read_token(request.headers)
        async with sessions.lent(token) as bus:
            tell_admitted(request.scope)
            return await handler(request, Caller(token, bus))

    return endpoint


def tell_admitted(scope: Scope) -> None:
    """Tell the server, if it wants to know, that the sender of a request or the other end of a socket is admitted."""
    extensions = scope.get("extensions") or {}
    if ADMITTED in extensions:
        extensions[ADMITTED]()
