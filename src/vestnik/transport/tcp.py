"""Connections over TCP, with or without TLS."""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from vestnik.errors import InvalidFrame
from vestnik.model.parser import OUTSIDE, Limits
from vestnik.transport.ends import CLOSED, End, Receiver
from vestnik.transport.foreign import FIRST, FOREIGN, answer, spoken
from vestnik.transport.listening import HANDSHAKE_WITHIN, Listener
from vestnik.transport.tls import names
from vestnik.wire.frames import LARGEST, Reader, frame
from vestnik.wire.messages import Message

HIGH_WATER = 1024 * 1024
"""Bytes that are sent and not taken before an end is full."""
CLOSE_WITHIN = 10.0
"""Seconds in which the other end has to take what was sent before the connection was closed."""


class TcpEnd(End, asyncio.Protocol):
    """Bytes that are no messages end the connection. What a stranger says is handed over message by message."""

    packs = True

    def __init__(
        self, receiver: Receiver, limits: Limits | None = OUTSIDE, largest: int = LARGEST, *, stranger: bool = False
    ) -> None:
        self.peer = "nobody"
        self._receiver = receiver
        self._is_stranger = stranger
        self._reader = Reader(limits, largest)
        self._first = b""  # what came first
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._is_open = False
        self._ending: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()

    async def over(self) -> None:
        await self._gone.wait()

    def know(self, largest: int, filters: Limits | None) -> None:
        self._is_stranger = False
        self._reader.know(largest, filters)

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and self._is_open:
            self._transport.resume_reading()

    @property
    def waiting(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def send(self, message: Message) -> None:
        if self._is_open:
            try:
                self._out.append(frame(message))
            except InvalidFrame as error:
                self._fail(str(error))

    def _fail(self, reason: str) -> None:
        """What cannot be sent ends the connection: nothing is left out in silence."""
        self.refuse("frame", reason)
        asyncio.get_running_loop().call_soon(self._receiver.closed, self, reason)

    def flush(self) -> None:
        if self._out and self._transport is not None:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def close(self) -> None:
        self.flush()
        self._is_open = False
        if self._transport is not None and self._ending is None:
            self._transport.close()
            self._ending = asyncio.get_running_loop().call_later(CLOSE_WITHIN, self._transport.abort)

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        self._is_open = True
        self.peer = address(transport.get_extra_info("peername"))
        self.certificates = names(transport.get_extra_info("peercert"))
        self._receiver.connected(self)

    def data_received(self, data: bytes) -> None:
        messages: list[Message] = []
        wrong = ""
        self._first = self._first or data[:FIRST]
        try:
            for message in self._reader.read(data):
                messages.append(message)
                if self._is_stranger and self._is_open:  # who it is decides how much of the rest is read
                    self._receiver.received(self, messages)
                    messages = []
        except InvalidFrame as error:
            wrong = str(error)
        if messages and self._is_open:
            self._receiver.received(self, messages)
        if wrong and self._is_open:
            self._misunderstood(wrong)

    def _misunderstood(self, wrong: str) -> None:
        """What came is no message. Who speaks something else is answered in its own way, where that is known."""
        foreign = spoken(self._first)
        if foreign and self._transport is not None:
            self._transport.write(answer(self._first))
            self.close()
            self._receiver.closed(self, foreign, FOREIGN)
        else:
            self.refuse("frame", wrong)
            self._receiver.closed(self, f"it sent no message: {wrong}")

    def connection_lost(self, error: Exception | None) -> None:
        self._gone.set()
        self._reader.forget()  # and not when the collector comes round to it
        if self._ending is not None:
            self._ending.cancel()
        if self._is_open:
            self._is_open = False
            self._receiver.closed(self, str(error) if error else CLOSED)

    def pause_writing(self) -> None:
        self._receiver.full(self)

    def resume_writing(self) -> None:
        self._receiver.drained(self)


def address(name: tuple[str, int, *tuple[object, ...]] | str | None) -> str:
    """Host and port, as people write them."""
    if not isinstance(name, tuple):
        return name or "unknown"
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def listen(
    receiver: Receiver,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    largest: int = LARGEST,
    opening: int = 256,
) -> Listener:
    """Take connections of strangers, who send messages of `largest` bytes until they are known.

    At most so many are `opening` at a time. OSError where that cannot be.
    """
    return await Listener.bind(lambda: TcpEnd(receiver, largest=largest, stranger=True), host, port, tls, opening)


async def dial(
    receiver: Receiver, host: str, port: int, *, tls: ssl.SSLContext | None = None, limits: Limits | None = OUTSIDE
) -> End:
    """Make a connection. OSError where that cannot be."""
    loop = asyncio.get_running_loop()
    within = None if tls is None else HANDSHAKE_WITHIN
    _, end = await loop.create_connection(
        lambda: TcpEnd(receiver, limits), host, port, ssl=tls, ssl_handshake_timeout=within
    )
    return end
