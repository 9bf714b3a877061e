"""Connections over TCP, with or without TLS."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from enum import Enum, auto
from functools import partial
from math import inf
from typing import Final, cast

from vestnik.errors import InvalidFrame
from vestnik.transport import heavy
from vestnik.transport.connecting import connect_to_first
from vestnik.transport.ends import CLOSED, UNHANDLED, End, Receiver
from vestnik.transport.foreign import FIRST, FOREIGN, answer, spoken
from vestnik.transport.listening import HANDSHAKE_WITHIN, NO_TLS, Listener
from vestnik.transport.tls import names
from vestnik.transport.turns import Turns
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
MUCH: Final = 64 * 1024
"""Bytes of a message that is not complete after which other connections have their turn."""


class State(Enum):
    """States of a TcpEnd, by the messages that arrive."""

    UNCONNECTED = auto()
    """There is no connection yet."""
    READY = auto()
    """They are handed over as they arrive."""
    QUEUED = auto()
    """They wait for the next turn of this connection."""
    DECODING = auto()
    """They wait for one that is decoded on another thread."""
    CLOSED = auto()
    """They are dropped."""


BEHIND: Final = frozenset({State.QUEUED, State.DECODING})
NEXT: Final = {
    State.UNCONNECTED: frozenset({State.READY, State.CLOSED}),
    State.READY: frozenset({State.QUEUED, State.DECODING, State.CLOSED}),
    State.QUEUED: frozenset({State.READY, State.CLOSED}),
    State.DECODING: frozenset({State.READY, State.CLOSED}),
    State.CLOSED: frozenset({State.CLOSED}),
}
"""The states that may follow each state. A receiver that pauses the end keeps it in its state, and hears nothing."""


class TcpEnd(End, asyncio.Protocol):
    """Bytes that are no messages end the connection.

    After a `turn` of so many seconds, or a large part of a message, other ends that share the `turns` have theirs; a
    message that takes long to decode is decoded on another thread. Nothing is read from the socket while the end is
    paused, queued or decoding. If the other side closes the connection meanwhile, what has come is still handed over;
    if the connection is reset, it is dropped.
    """

    packs = True

    def __init__(
        self,
        receiver: Receiver,
        bounds: Bounds = ANYTHING,
        *,
        stranger: bool = False,
        turn: float = inf,
        turns: Turns | None = None,
    ) -> None:
        self.peer = "nobody"
        self._receiver = receiver
        self._reader = Reader(bounds=bounds, stranger=stranger)
        self._turn_takes = turn
        self._turns = turns or Turns()
        self._size: int | None = None
        self._first = b""  # what came first
        self._wrong = ""  # why what came is no message
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._state = State.UNCONNECTED
        self._is_ready = self._is_open = False  # by the state: looking up a member of an enum is slow
        self._is_paused = False  # by the receiver
        self._decoding: asyncio.Future[Message | str] | None = None  # on another thread
        self._decoded: tuple[int, Message] | None = None  # there, and its size
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
        return self._state in BEHIND

    def pause(self) -> None:
        self._is_paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        self._is_paused = False
        if self._is_ready:
            self._become(State.QUEUED)

    @property
    def waiting(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def send(self, message: Message) -> None:
        if self._is_open:
            try:
                packed = frame(message)
            except InvalidFrame as error:
                self._fail(str(error))
                return
            self._out.append(packed)
            self.unsent += len(packed)

    def _fail(self, reason: str) -> None:
        """What cannot be sent ends the connection: nothing is left out in silence."""
        self.refuse("frame", reason)
        asyncio.get_running_loop().call_soon(self._receiver.closed, self, reason)

    def flush(self) -> None:
        if self._out:
            if self._transport is not None:
                self._transport.write(b"".join(self._out))
            self._out.clear()
            self.unsent = 0

    def close(self) -> None:
        self.flush()
        self._become(State.CLOSED)
        if self._transport is not None and self._ending is None:
            self._transport.close()
            self._ending = asyncio.get_running_loop().call_later(CLOSE_WITHIN, self._transport.abort)

    # --- the states ---

    def _become(self, state: State) -> None:
        """Enter a state, and do what belongs to it."""
        assert state in NEXT[self._state], f"{self._state} is not followed by {state}"
        self._state = state
        self._is_ready, self._is_open = state is State.READY, state is not State.CLOSED
        match state:
            case State.QUEUED:
                self._turns.wait(self._go_on)
            case State.CLOSED:
                self._reader.forget()  # and not when the collector comes round to it
                self._decoded = None
                if self._decoding is not None:
                    self._decoding.cancel()

    def _go_on(self) -> None:
        """It is the turn of this connection again, unless that was not waited for."""
        if self._state is State.QUEUED:
            self._become(State.READY)
            self._hand_over_in_turn()

    def _decode(self, body: bytes) -> None:
        """Decode a message on another thread."""
        self._become(State.DECODING)
        self._decoding = asyncio.get_running_loop().create_task(self._decoded_alone(body))
        self._decoding.add_done_callback(partial(self._was_decoded, len(body)))

    async def _decoded_alone(self, body: bytes) -> Message | str:
        async with self._turns.decoding:
            return await heavy.begin(partial(_understood, self._reader, body), first=True)

    def _was_decoded(self, size: int, found: asyncio.Future[Message | str]) -> None:
        self._decoding = None
        if self._state is State.CLOSED:
            return
        self._become(State.READY)
        try:
            message = found.result()
        except BaseException:
            self._end(UNHANDLED)
            raise
        if isinstance(message, str):
            self._misunderstood(message)
        else:
            self._decoded = size, message
            self._hand_over_in_turn()

    def _end(self, reason: str) -> None:
        """The connection is over, and nothing of it is left to be handled."""
        was_open = self._is_open
        self._become(State.CLOSED)
        if self._transport is not None:
            self._transport.abort()
        if was_open:
            self._receiver.closed(self, reason)

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._state is State.CLOSED:  # dialling was cancelled
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(HIGH_WATER)
        self._become(State.READY)
        self.peer = address(transport.get_extra_info("peername"))
        self.certificates = names(transport.get_extra_info("peercert"))
        self._receiver.connected(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            return
        self.arrived += len(data)
        self._first = self._first or data[:FIRST]
        self._reader.add(data)
        self._hand_over()
        if self._is_ready and self._turn_takes < inf and len(data) >= MUCH and self._reader.is_amid:
            self._stop_reading()
            self._become(State.QUEUED)

    def _hand_over(self) -> None:
        try:
            first = self._next_message()
            if first is not None:
                self._receiver.received(self, self._messages(first))
        finally:
            if self._wrong and self._is_open:
                self._misunderstood(self._wrong)

    def _messages(self, first: Message) -> Iterator[Message]:
        """The messages that are there, until the turn is over."""
        until = time.perf_counter() + self._turn_takes
        message: Message | None = first
        while message is not None:
            yield message
            if time.perf_counter() > until and self._is_ready:
                self._stop_reading()
                self._become(State.QUEUED)
            message = self._next_message()

    def _next_message(self) -> Message | None:
        """Return the next message; None if it is not there, takes long to decode, or is not to be handed over now."""
        if not self._is_ready or self._is_paused:
            return None
        if self._decoded is not None:
            (self._size, message), self._decoded = self._decoded, None
            return message
        try:
            body = self._reader.next_body()
            if body is None:
                return None
            try:
                message = self._reader.message(body, quickly=self._turn_takes < inf)
            except TakesLong:
                self._stop_reading()
                self._decode(body)
                return None
        except InvalidFrame as error:
            self._wrong = str(error)
            return None
        self._size = len(body)
        return message

    def _stop_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _hand_over_in_turn(self) -> None:
        """Hand over messages, and then read on, or end if the other side has closed the connection."""
        try:
            self._hand_over()
        except BaseException:
            self._end(UNHANDLED)  # as asyncio does if `data_received` raises
            raise
        if self._is_ready and not self._is_paused:
            if self._transport is None:
                self._end(CLOSED)
            else:
                self._transport.resume_reading()

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
            if self._state is State.QUEUED:
                self._become(State.READY)
            self._hand_over()
        if error is None and self._is_open and (self.is_behind or self._is_paused):
            self._receiver.drained(self)  # nothing waits to be sent; what has come is handled in its turn
        else:
            self._end(f"{NO_TLS}: {error}" if isinstance(error, ssl.SSLError) else str(error) if error else CLOSED)

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
    bounds, turns = Bounds(largest), Turns()

    def make() -> TcpEnd:
        return TcpEnd(receiver, bounds, stranger=True, turn=TURN, turns=turns)

    return await Listener.bind(make, host, port, tls, opening)


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
            lambda connected: loop.create_connection(
                make,
                sock=connected,
                ssl=tls,
                ssl_handshake_timeout=within,
                server_hostname=None if tls is None else host,
            ),
        )
    except asyncio.CancelledError:
        for one in made:
            one.connection_lost(None)  # uvloop closes the transport, and does not say so
        raise
    return end
