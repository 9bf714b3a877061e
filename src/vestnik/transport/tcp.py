"""Connections over TCP, with or without TLS."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from math import inf
from typing import Final, cast

from vestnik.errors import InvalidFrame
from vestnik.transport import heavy
from vestnik.transport.ends import CLOSED, End, Receiver
from vestnik.transport.foreign import FIRST, FOREIGN, answer, spoken
from vestnik.transport.listening import HANDSHAKE_WITHIN, Listener
from vestnik.transport.resolving import connect_to_first
from vestnik.transport.tls import names
from vestnik.wire.bounds import LARGEST, Bounds
from vestnik.wire.frames import Reader, TakesLong, frame
from vestnik.wire.messages import Message

HIGH_WATER = 1024 * 1024
"""Bytes that are sent and not taken before an end is full."""
NO_MESSAGE: Final = "it sent no message"
CLOSE_WITHIN = 10.0
"""Seconds in which the other end has to take what was sent before the connection was closed."""
ANYTHING: Final = Bounds()
TURN: Final = 0.01
"""Seconds for which the messages of one connection are handled before other connections have their turn."""


class TcpEnd(End, asyncio.Protocol):
    """Bytes that are no messages end the connection.

    After a `turn` of so many seconds other connections have theirs; a message that takes long to read is read on
    another thread. Until it was, and while there is more than a turn holds, nothing more is read from the socket.
    """

    packs = True

    def __init__(
        self,
        receiver: Receiver,
        bounds: Bounds = ANYTHING,
        *,
        stranger: bool = False,
        turn: float = inf,
    ) -> None:
        self.peer = "nobody"
        self._receiver = receiver
        self._reader = Reader(bounds=bounds, stranger=stranger)
        self._turn_takes = turn
        self._size: int | None = None
        self._first = b""  # what came first
        self._wrong = ""  # why what came is no message
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._is_open = False
        self._is_paused = False  # by the receiver
        self._is_behind = False  # there is more to hand over, and something else comes first
        self._reading: asyncio.Future[Message | str] | None = None  # on another thread
        self._ending: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()

    async def over(self) -> None:
        await self._gone.wait()

    def know(self, bounds: Bounds) -> None:
        self._reader.know(bounds)

    @property
    def size(self) -> int | None:
        return self._size

    @property
    def is_behind(self) -> bool:
        return self._is_behind

    def pause(self) -> None:
        self._is_paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        self._is_paused = False
        if self._is_open and not self._is_behind:
            self._is_behind = True
            asyncio.get_running_loop().call_soon(self._go_on)

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
        self._first = self._first or data[:FIRST]
        self._reader.add(data)
        if not (self._is_behind or self._is_paused):
            self._hand_over(self._messages())

    def _hand_over(self, messages: Iterator[Message]) -> None:
        try:
            first = next(messages, None)
            if first is not None:
                self._receiver.received(self, chain((first,), messages))
        finally:
            if self._wrong and self._is_open:
                self._misunderstood(self._wrong)

    def _messages(self) -> Iterator[Message]:
        """The messages that are there, until the turn is over."""
        until = time.perf_counter() + self._turn_takes
        while self._is_open and not self._is_paused:
            try:
                body = self._reader.next_body()
                if body is None:
                    return
                message = self._reader.message(body, quickly=self._turn_takes < inf)
            except InvalidFrame as error:
                self._wrong = str(error)
                return
            except TakesLong:
                assert body is not None
                self._wait()
                self._reading = heavy.begin(partial(_understood, self._reader, body))
                self._reading.add_done_callback(partial(self._read, len(body)))
                return
            self._size = len(body)
            yield message
            if time.perf_counter() > until:
                self._wait()
                asyncio.get_running_loop().call_soon(self._go_on)
                return

    def _wait(self) -> None:
        self._is_behind = True
        if self._transport is not None:
            self._transport.pause_reading()

    def _go_on(self) -> None:
        """It is the turn of this connection again."""
        if self._reading is None:
            self._is_behind = False
            if self._is_open and not self._is_paused:
                self._hand_over_in_turn(self._messages())

    def _read(self, size: int, found: asyncio.Future[Message | str]) -> None:
        """A message was read on another thread."""
        self._reading, self._is_behind = None, False
        if found.cancelled() or not self._is_open:
            return
        message = found.result()
        if isinstance(message, str):
            self._misunderstood(message)
            return
        self._size = size
        self._hand_over_in_turn(chain((message,), self._messages()))

    def _hand_over_in_turn(self, messages: Iterator[Message]) -> None:
        """Hand over messages, and then read on, or end if the other side has closed the connection."""
        try:
            self._hand_over(messages)
        except BaseException:
            self._end("it could not be handled")  # as asyncio does if `data_received` raises
            raise
        if self._is_open and not (self._is_behind or self._is_paused):
            if self._transport is None:
                self._end(CLOSED)
            else:
                self._transport.resume_reading()

    def _end(self, reason: str) -> None:
        """The connection is over, and nothing of it is left to be handled."""
        self._reader.forget()  # and not when the collector comes round to it
        if self._reading is not None:
            self._reading.cancel()
        if self._transport is not None:
            self._transport.abort()
        if self._is_open:
            self._is_open = False
            self._receiver.closed(self, reason)

    def _misunderstood(self, wrong: str) -> None:
        """What came is no message. Who speaks something else is answered in its own way, where that is known."""
        foreign = spoken(self._first)
        if foreign and self._transport is not None:
            self._transport.write(answer(self._first))
            self.close()
            self._receiver.closed(self, foreign, FOREIGN)
        else:
            self.refuse("frame", wrong)
            self._receiver.closed(self, f"{NO_MESSAGE}: {wrong}")

    def connection_lost(self, error: Exception | None) -> None:
        self._gone.set()
        if self._ending is not None:
            self._ending.cancel()
        self._transport = None
        if self._turn_takes == inf and error is None and self._is_open:
            self._is_paused = False  # who takes messages at once takes the last ones at once
            self._hand_over(self._messages())
        if error is None and self._is_open and (self._is_behind or self._is_paused):
            self._receiver.drained(self)  # nothing waits to be sent; what has come is handled in its turn
        else:
            self._end(str(error) if error else CLOSED)

    def pause_writing(self) -> None:
        self._receiver.full(self)

    def resume_writing(self) -> None:
        self._receiver.drained(self)


def _understood(reader: Reader, body: bytes) -> Message | str:
    """Return a message, or the reason why it is none. An exception would keep the bytes alive in its traceback."""
    try:
        return reader.message(body)
    except InvalidFrame as error:
        return str(error)


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
    bounds = Bounds(largest)
    return await Listener.bind(lambda: TcpEnd(receiver, bounds, stranger=True, turn=TURN), host, port, tls, opening)


async def dial(
    receiver: Receiver,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    bounds: Bounds = ANYTHING,
    turn: float = inf,
) -> End:
    """Make a connection. OSError where that cannot be."""
    loop = asyncio.get_running_loop()
    within = None if tls is None else HANDSHAKE_WITHIN
    made: list[TcpEnd] = []

    def make() -> TcpEnd:
        made.append(TcpEnd(receiver, bounds, turn=turn))
        return made[-1]

    try:
        _, end = await connect_to_first(
            host,
            port,
            lambda at: loop.create_connection(
                make, at, port, ssl=tls, ssl_handshake_timeout=within, server_hostname=None if tls is None else host
            ),
        )
    except asyncio.CancelledError:
        for one in made:
            one.connection_lost(None)  # uvloop closes the transport, and does not say so
        raise
    return end
