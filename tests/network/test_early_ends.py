"""Connections that are over before whoever made them can say anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from network.worlds import broker, client, quote, taken, until
from vestnik.client import connect as connecting
from vestnik.server import process
from vestnik.transport.ends import End, Receiver
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
