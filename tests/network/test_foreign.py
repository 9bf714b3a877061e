"""Whoever speaks something else than a broker is told what to do, or what it is told of is."""

from __future__ import annotations

import asyncio

import pytest

import vestnik
from network.worlds import broker, client, logged, quote, until
from vestnik.errors import NoBroker, Unreachable
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address, read_address
from vestnik.transport.foreign import spoken


async def _web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What web servers say to whoever does not speak HTTP."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\nInvalid HTTP request received.")
    await writer.drain()
    writer.close()


async def test_a_client_of_a_gateway_is_told_at_once() -> None:
    async with await asyncio.start_server(_web, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(NoBroker, match=f"what answers at {host}:{port} is no broker: HTTP is spoken there"):
            await vestnik.connect(f"{host}:{port}", timeout=None)


async def test_a_broker_that_joins_a_gateway_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with await asyncio.start_server(_web, "127.0.0.1", 0) as server:
        at = Address(*server.sockets[0].getsockname())
        async with Broker(Settings(name="b", listen=Address("127.0.0.1", 0), join=(at,))):
            await until(lambda: bool(logged(caplog, "link.failed")))
    (told,) = logged(caplog, "link.failed")
    assert f"no link to {at}" in told and "HTTP is spoken there" in told


async def test_a_browser_at_the_port_of_a_broker_can_read_why() -> None:
    async with broker() as b, client(b) as c:
        reader, writer = await asyncio.open_connection(*read_address(b.address))
        writer.write(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        answer = (await asyncio.wait_for(reader.read(), 20)).decode()
        writer.close()
        head, _, body = answer.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 400 ") and f"Content-Length: {len(body)}" in head
        assert "vestnik serve --http HOST:PORT" in body
        await c.publish(quote(1))


async def test_who_speaks_tls_to_a_broker_that_does_not() -> None:
    async with broker() as b:
        with pytest.raises(Unreachable, match="if it is not spoken there, write vestnik://"):
            await vestnik.connect(f"vestniks://{b.address}", timeout=0.5)
    assert "write vestnik:// and not vestniks://" in spoken(b"\x16\x03\x01\x02\x00\x01\x00\x01")
    assert spoken(b"\x00\x00\x00\x05") == ""


async def test_who_does_not_speak_tls_to_a_broker_that_does() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(Unreachable, match="it may speak TLS"):
            await vestnik.connect(f"{host}:{port}", timeout=0.5)
