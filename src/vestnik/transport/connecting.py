"""Connects sockets to a host by name, and never to themselves."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from vestnik.transport.resolving import Found, resolve

Connected = TypeVar("Connected")

_RESET: Final = struct.pack("ii", 1, 0)
"""A value of SO_LINGER: `close` resets the connection, and the port is free at once."""


async def connect_to_first(host: str, port: int, use: Callable[[socket.socket], Awaitable[Connected]]) -> Connected:
    """Call `use` with a socket connected to one address of a host after the other, until it returns something.

    OSError if it does so with no address. The socket belongs to `use`.
    """
    failed: OSError | None = None
    for found in dict.fromkeys(await resolve(host, port)):
        try:
            return await use(await _connect(found))
        except OSError as error:
            failed = error
    raise failed or OSError(f"{host} has no address")


async def _connect(found: Found) -> socket.socket:
    family, kind, protocol, _, address = found
    one = socket.socket(family, kind, protocol)
    try:
        one.setblocking(False)
        await asyncio.get_running_loop().sock_connect(one, address)
        refuse_itself(one)
    except BaseException:
        one.close()
        raise
    return one


def refuse_itself(connected: socket.socket) -> None:
    """Raise ConnectionRefusedError if a socket is connected to itself: nobody listens at that port.

    The system may pick the port that is dialled as the port to dial from, if it is free. TCP then connects the socket
    to itself, and whoever wants to listen at the port finds it in use.
    """
    if connected.getsockname() == connected.getpeername():
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
