"""Requests to sinks: one at a time over a connection of its own, nothing followed, little read."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import h11

from vestnik.errors import InvalidRequest
from vestnik.transport.addresses import is_loopback

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


def read_sink(url: str, allowed: tuple[str, ...]) -> Sink:
    """The sink at `url`: http or https, on this machine or on a host that is allowed."""
    if not url.isascii() or any(sign <= " " for sign in url):
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
    if not is_loopback(parts.hostname) and parts.hostname not in allowed:
        raise InvalidRequest(f"{parts.hostname} is not this machine, and was not allowed by the operator", "sink", 403)
    is_secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Sink(url, parts.hostname, port or (443 if is_secure else 80), path, is_secure)


async def ask(sink: Sink, method: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
    """Send a request; OSError, TimeoutError, or h11.RemoteProtocolError where there is no answer to it."""
    tls = _trust() if sink.is_secure else None
    async with asyncio.timeout(WITHIN):
        reader, writer = await asyncio.open_connection(sink.host, sink.port, ssl=tls)
        try:
            return await _exchange(reader, writer, sink, method, headers, body)
        finally:
            writer.transport.abort()


@cache
def _trust() -> ssl.SSLContext:
    """The authorities that this machine trusts."""
    return ssl.create_default_context()


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    sink: Sink,
    method: str,
    headers: Mapping[str, str],
    body: bytes,
) -> Answer:
    connection = h11.Connection(h11.CLIENT)
    fields = {"host": sink.authority, "connection": "close", "content-length": str(len(body)), **headers}
    request = h11.Request(method=method, target=sink.path, headers=list(fields.items()))
    parts = [connection.send(request), connection.send(h11.Data(data=body)), connection.send(h11.EndOfMessage())]
    writer.write(b"".join([part for part in parts if part is not None]))
    await writer.drain()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_PIECE))
        elif isinstance(event, h11.Response):
            found = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
            return Answer(event.status_code, found)
