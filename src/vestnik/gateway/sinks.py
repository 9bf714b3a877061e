"""Requests to sinks: one at a time over a connection of its own, nothing followed, little read."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import h11

from vestnik.errors import InvalidRequest
from vestnik.transport.connecting import connect_to_first

WITHIN: Final = 10.0
"""Seconds in which a sink has to answer."""
_PIECE: Final = 64 * 1024


class Sink(NamedTuple):
    """Where to push to."""

    url: str
    host: str
    port: int
    path: str
    is_secure: bool

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


class Answer(NamedTuple):
    """What a sink said."""

    status: int
    headers: Mapping[str, str]


class Place(NamedTuple):
    """A host, and a port of it or all."""

    host: str
    port: int | None


def named_place(text: str) -> Place | None:
    """Return the place that an operator names as `HOST` or `HOST:PORT`; None if it is neither."""
    try:
        return Place(str(ip_address(text)), None)
    except ValueError:
        pass
    try:
        parts = urlsplit(f"//{text}")
        place = Place(parts.hostname or "", parts.port)
    except ValueError:
        return None
    is_plain = text.isascii() and text.isprintable() and not set(text) & set("/?#@ ,") and bool(place.host)
    return place if is_plain else None


def read_sink(url: str, allowed: tuple[str, ...]) -> Sink:
    """Return the sink at `url`, which is http or https, at one of the places that are allowed."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidRequest("is written in ASCII and without spaces", "sink")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidRequest(str(error), "sink") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidRequest(f"http or https, not {parts.scheme or 'nothing'}", "sink")
    if not parts.hostname or parts.username is not None or parts.fragment:
        raise InvalidRequest("a host and a path, without a user or a fragment", "sink")
    is_secure = parts.scheme == "https"
    place = Place(parts.hostname, (443 if is_secure else 80) if port is None else port)
    if not {place, place._replace(port=None)} & {named_place(one) for one in allowed}:
        named = f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"
        raise InvalidRequest(f"no web hook may push to {named}; --sink {named} would allow it", "sink", 403)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Sink(url, place.host, place.port or 0, path, is_secure)


async def ask(sink: Sink, method: str, headers: Mapping[str, str], body: bytes = b"", within: float = WITHIN) -> Answer:
    """Send a request and return the answer; OSError, TimeoutError, or h11.RemoteProtocolError if none comes.

    h11.LocalProtocolError if the request cannot be sent over HTTP at all.
    """
    connection = h11.Connection(h11.CLIENT)
    fields = {"host": sink.authority, "connection": "close", "content-length": str(len(body)), **headers}
    request = h11.Request(method=method, target=sink.path, headers=list(fields.items()))
    parts = [connection.send(request), connection.send(h11.Data(data=body)), connection.send(h11.EndOfMessage())]
    tls = _trust() if sink.is_secure else None
    async with asyncio.timeout(within):
        name = sink.host if sink.is_secure else None
        reader, writer = await connect_to_first(
            sink.host,
            sink.port,
            lambda connected: asyncio.open_connection(sock=connected, ssl=tls, server_hostname=name),
        )
        try:
            writer.write(b"".join([part for part in parts if part is not None]))
            await writer.drain()
            return await _answer(connection, reader)
        finally:
            writer.transport.abort()


@cache
def _trust() -> ssl.SSLContext:
    """The authorities that this machine trusts."""
    return ssl.create_default_context()


async def _answer(connection: h11.Connection, reader: asyncio.StreamReader) -> Answer:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_PIECE))
        elif isinstance(event, h11.Response):
            found = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
            return Answer(event.status_code, found)
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("it closed the connection without an answer")
