"""A port at which nobody listens, and which nobody else is given."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[int]:
    """Yield a loopback port. The system refuses connections to it until a process listens there."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # then another socket may listen
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]
