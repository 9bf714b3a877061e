"""What arrives at the end of a connection is handed over in its order, in turns, and to the last message."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from pathlib import Path

import pytest

from network.security import Authority
from network.worlds import until
from vestnik import Event
from vestnik.transport import tcp, tls
from vestnik.transport.ends import CLOSED, End
from vestnik.transport.tcp import listen
from vestnik.wire.bounds import Bounds
from vestnik.wire.frames import VERSION, frame
from vestnik.wire.messages import Hello, Message, Ping, Publish


class Recorder:
    """Takes one message at a time, and pauses the connection at each `pausing`-th."""

    def __init__(self, pausing: int = 0) -> None:
        self.messages: list[Message] = []
        self.reasons: list[str] = []
        self._pausing = pausing

    def connected(self, end: End) -> None: ...

    def received(self, end: End, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, Hello):
                end.know(Bounds())
            self.messages.append(message)
            if self._pausing and len(self.messages) % self._pausing == 0:
                end.pause()
                asyncio.get_running_loop().call_later(0.001, end.resume)

    def closed(self, end: End, reason: str, code: str = "") -> None:
        self.reasons.append(reason)

    def full(self, end: End) -> None: ...

    def drained(self, end: End) -> None: ...


@pytest.mark.parametrize("pausing", [0, 7], ids=["in turns", "paused"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_all_that_came_before_the_end_is_handed_over(
    secure: bool, pausing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "TURN", 0.0)  # a message a turn
    receiver = Recorder(pausing)
    here, there = _contexts(tmp_path) if secure else (None, None)
    server = await listen(receiver, "127.0.0.1", 0, tls=here)
    large = Publish((Event("t", {"x": "x" * 300_000}, id="large"),))  # is read on another thread
    said: list[Message] = [Hello(VERSION, "c"), *[Publish((Event("t", {"n": n}, id=str(n)),)) for n in range(100)]]
    said[50:50] = [large, Ping()]
    try:
        _, writer = await asyncio.open_connection(*server.address, ssl=there)
        writer.write(b"".join(map(frame, said)))
        writer.close()
        await writer.wait_closed()
        async with asyncio.timeout(20):
            await until(lambda: bool(receiver.reasons))
    finally:
        await server.close()
    assert receiver.messages == said
    assert receiver.reasons == [CLOSED]


def _contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = Authority(folder)
    papers = authority.issue("127.0.0.1")
    return tls.listening(papers.cert, papers.key, None), ssl.create_default_context(cafile=str(authority.file))
