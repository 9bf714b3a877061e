"""Who is let in: programs, the gateway's own pages, and pages of the sites that are allowed.

A browser says with `Origin` whose page is asking. A foreign page can send requests here from within the network that
the browser is in, so its requests are refused before anything is done. A site could also give its own name the address
of this machine and be taken for the gateway itself; so without TLS, where a certificate says who is who, only names
that cannot be given away are answered to.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestnik.gateway.answers import problem

_METHODS: Final = "GET, POST, DELETE"
_HEADERS: Final = "authorization, content-type, last-event-id"


class Doorkeeper:
    """The application `inside`, for those who are let in."""

    def __init__(self, inside: ASGIApp, origins: tuple[str, ...]) -> None:
        self._inside = inside
        self._origins = frozenset(origins)
        self._names = frozenset({"localhost", *(urlsplit(origin).hostname for origin in origins)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._inside(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin, host = headers.get("origin"), headers.get("host", "")
        refusal = self._refusal(host, origin, is_secure=scope["scheme"] in ("https", "wss")) or _ambiguity(headers)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif origin not in self._origins:
            await self._inside(scope, receive, send)
        elif "access-control-request-method" in headers and scope.get("method") == "OPTIONS":
            await Response(status_code=204, headers=_permission(origin))(scope, receive, send)
        else:
            await self._inside(scope, receive, _permitting(send, origin))

    def _refusal(self, host: str, origin: str | None, *, is_secure: bool) -> Response | None:
        if host and not is_secure and not self._is_own(host):
            return problem(421, f"this gateway is not called {host}; use its address, or allow the site", "host")
        if origin is not None and origin not in self._origins and _site(origin) != host:
            return problem(403, f"pages of {origin} may not use this gateway; its operator can allow it", "origin")
        return None

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_number(name)


def _ambiguity(headers: Headers) -> Response | None:
    """Refuse a request whose end two servers may see in two places: what follows may be taken for a request."""
    if "content-length" in headers and "transfer-encoding" in headers:
        reason = "Content-Length and Transfer-Encoding exclude each other; send one of them"
        return problem(400, reason, "transfer-encoding", {"connection": "close"})
    return None


def _site(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _permission(origin: str) -> dict[str, str]:
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": _METHODS,
        "access-control-allow-headers": _HEADERS,
        "access-control-max-age": "600",
        "vary": "origin",
    }


def _permitting(send: Send, origin: str) -> Send:
    async def permit(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers.add_vary_header("origin")
        await send(message)

    return permit
