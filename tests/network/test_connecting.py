"""A port that is dialled may be the port that the system dials from: TCP then connects a socket to itself."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

import vestnik
from network.ports import kept_port
from network.worlds import PATIENCE, broker, quote, until
from vestnik.errors import Unreachable
from vestnik.transport.addresses import Address
from vestnik.transport.connecting import refuse_itself


def test_a_socket_that_is_connected_to_itself_is_refused_and_leaves_the_port() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = one.getsockname()
        one.connect(address)
        with pytest.raises(ConnectionRefusedError, match="Connection refused"):
            refuse_itself(one)
    socket.create_server(address).close()  # nothing that is left of the connection keeps the port


def test_a_socket_that_is_connected_to_another_is_not_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_connection(other.getsockname()) as one:
        refuse_itself(one)


def connected_to_themselves(monkeypatch: pytest.MonkeyPatch) -> list[socket.socket]:
    """Let every socket dial from the port that it dials; return those that have."""
    connect, dialled = socket.socket.connect, list[socket.socket]()

    def connect_to_itself(one: socket.socket, address: Any) -> None:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port is kept
        one.bind(address)
        dialled.append(one)
        connect(one, address)

    monkeypatch.setattr(socket.socket, "connect", connect_to_itself)
    return dialled


async def test_a_client_that_is_connected_to_itself_finds_the_broker_that_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialled = connected_to_themselves(monkeypatch)
    with kept_port() as port:
        with pytest.raises(Unreachable, match="Connection refused"):
            await vestnik.connect(f"127.0.0.1:{port}", timeout=0.2).__aenter__()
        bus = vestnik.connect(f"127.0.0.1:{port}", timeout=PATIENCE)
        opening = asyncio.create_task(bus.__aenter__())
        await until(lambda: len(dialled) >= 5)
        monkeypatch.undo()
        async with broker(listen=Address("127.0.0.1", port)):
            await opening
            await bus.publish(quote(1))
            await bus.close()
