"""Connections that are over before whoever made them can say anything."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from network.worlds import broker, client, quote, taken, until
from vestnik.client import connect as connecting
from vestnik.server import process
from vestnik.transport.ends import End, Receiver
from vestnik.transport.listening import Listener
from vestnik.transport.tcp import TcpEnd, dial

Dialled = list[str]


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> Dialled:
    """The first connection that anybody makes is reset at once, and what dials it hears of that first."""
    made: Dialled = []

    async def dial_in_vain(receiver: Receiver, host: str, port: int, **terms: Any) -> End:
        end = await dial(receiver, host, port, **terms)
        made.append(f"{host}:{port}")
        if len(made) == 1:
            assert isinstance(end, TcpEnd) and end._transport is not None
            end._transport.abort()
            await asyncio.wait_for(end.over(), 5)
        return end

    monkeypatch.setattr(process, "dial", dial_in_vain)
    monkeypatch.setattr(connecting, "dial", dial_in_vain)
    return made


async def test_a_client_connects_again(dialled: Dialled) -> None:
    async with broker() as b, client(b, timeout=5) as c:
        assert c.is_connected and len(dialled) == 2


async def test_a_broker_joins_again(dialled: Dialled) -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2:
        await until(lambda: not b2.missing)
        async with client(b1) as p, client(b2) as c:
            subscription = await c.subscribe("price > 0", settled=True)
            await p.publish(quote(1))
            assert await taken(subscription, 1) == [1]


class Visit(asyncio.Protocol):
    """A connection that was taken."""

    def __init__(self, here: list[asyncio.Transport]) -> None:
        self._here = here

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._here.append(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._here.clear()


@pytest.mark.parametrize("turns", range(8))
async def test_who_comes_while_no_more_are_here_is_here_or_sent_away(turns: int) -> None:
    """And is not left waiting for the collector to come round."""
    here: list[asyncio.Transport] = []
    listener = await Listener.bind(lambda: Visit(here), "127.0.0.1", 0, None, 10)
    await asyncio.sleep(0.01)
    with socket.create_connection(listener.address) as comer:
        for _ in range(turns):
            await asyncio.sleep(0)
        await listener.close()
        await asyncio.sleep(0.01)
        comer.setblocking(False)
        if here:
            here[0].close()
            await asyncio.sleep(0.01)
        with suppress(ConnectionResetError):
            assert comer.recv(1) == b""
