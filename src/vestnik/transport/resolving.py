"""Looks up host names, in threads that nobody waits for: a name server that hangs keeps no process from ending."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final, TypeAlias

Found: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]

_asking: Final[dict[tuple[str, int], Future[Sequence[Found]]]] = {}
"""Lookups under way: several who ask for the same host share one thread."""


async def resolve(host: str, port: int) -> Sequence[Found]:
    """Return the addresses of a host, as `socket.getaddrinfo` does; OSError if it has none."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:  # a name, which takes its time
        return await asyncio.wrap_future(_asking.get((host, port)) or _ask(host, port))


def _ask(host: str, port: int) -> Future[Sequence[Found]]:
    asked: Future[Sequence[Found]] = Future()
    asked.set_running_or_notify_cancel()  # whoever stops waiting does not end it for others
    _asking[host, port] = asked
    Thread(target=_look_up, args=(host, port, asked), name="vestnik-resolve", daemon=True).start()
    return asked


def _look_up(host: str, port: int, asked: Future[Sequence[Found]]) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        del _asking[host, port]
        asked.set_exception(error if isinstance(error, OSError) else OSError(f"{host} is no name of a host"))
    else:
        del _asking[host, port]
        asked.set_result(found)
