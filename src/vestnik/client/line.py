"""Keeps a session connected to its broker: connects, introduces itself, and connects again when that is over."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec import Raw

from vestnik.client.turns import Turns
from vestnik.errors import Disconnected, NoBroker, TurnedAway, Unreachable, Untrusted, VestnikError
from vestnik.model.events import Event
from vestnik.session.acts import Act, Alarm, Hand, Say
from vestnik.session.session import Session
from vestnik.transport.ends import CLOSED, Dial, End
from vestnik.transport.foreign import FOREIGN
from vestnik.wire.frames import VERSION
from vestnik.wire.messages import Goodbye, Hello, Message, Notify, Ping, Pong, Publish, Welcome
from vestnik.wire.pages import packed_to_publish

SILENCE = 45.0
"""Seconds after which a broker that says nothing is taken for dead; it says something three times as often."""
SLOWEST_RETRY: Final = 5.0
"""Seconds between two attempts to connect, at most."""
POSTED: Final = 512
"""Events that are posted before they are sent."""
POSTED_SIZE: Final = 1024 * 1024
"""Bytes of them, or one event more."""


class Line:
    """`perform` is given what the session wants of the application, `ended` why there will be nothing more.

    `address` says where the broker is, for people.
    """

    def __init__(
        self,
        session: Session,
        dial: Dial,
        address: str,
        token: str,
        perform: Callable[[Act], None],
        ended: Callable[[VestnikError], None],
    ) -> None:
        self.address = address
        self.is_up = False
        self.is_durable = False
        self._session = session
        self._dial = dial
        self._token = token
        self._perform = perform
        self._ended = ended
        self._end: End | None = None
        self._error: VestnikError | None = None
        self._changed = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._is_flushing = False
        self._turns = Turns(self._hear)
        self._posted: list[Event | Raw] = []
        self._posted_size = 0
        self._is_full = False
        self._heard_at = 0.0

    async def open(self, timeout: float | None) -> None:
        """Connect; Unreachable where that takes longer than `timeout` seconds, TurnedAway where it is refused.

        Untrusted where what answers is not the broker, by its certificate, and NoBroker where it is none by what it
        says; later on this may change, and is waited for.
        """
        self._loop = asyncio.get_running_loop()
        self._keeper = self._loop.create_task(self._keep_connected())
        try:
            async with asyncio.timeout(timeout):
                await self._until(lambda: self.is_up or isinstance(self._error, Untrusted | NoBroker))
        except TimeoutError:
            raise self._error or Unreachable(self.address, self._silence(timeout)) from None
        if self._error is not None:
            raise self._error

    def _silence(self, timeout: float | None) -> str:
        """That nobody has said anything, though perhaps somebody is there."""
        there = "" if self._end is None else " from what listens there"
        return f"no answer{there} in {timeout:g} seconds"

    async def close(self) -> None:
        """Say goodbye, after all that was said before."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._alarm is not None:
            self._alarm.cancel()
        self._send_posted()
        end, self._end, self.is_up = self._end, None, False
        if end is not None:
            self._turns.finish(end)
            end.refuse("bye", f"{self._session.name} is leaving")
            await end.over()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, or one is being made."""
        return self._keeper is not None and not self._keeper.done()

    def check(self, what: str) -> None:
        """Raise what ended the line, or that it was not opened."""
        if isinstance(self._error, TurnedAway):
            raise self._error
        if not self.is_open:
            raise Disconnected(f"{what}: there is no connection; use the client in `async with`")

    def post(self, event: Event) -> bool:
        """Publish without an answer, as one with all that is posted in this turn; whether to `make_room` for more.

        InvalidEvent where it is too large to be sent.
        """
        packed = packed_to_publish(event)
        if not self.is_up or self._end is None:
            self.check("publish")
            raise Disconnected(f"not connected to {self.address}: with durable=True it would wait")
        self._posted.append(Raw(packed) if self._end.packs else event)
        self._posted_size += len(packed)
        if not self._is_flushing:
            self._flush_soon()
        return self._is_full or len(self._posted) >= POSTED or self._posted_size >= POSTED_SIZE

    async def make_room(self) -> None:
        """Send what was posted, and wait while the broker does not take it."""
        self.flush()
        await asyncio.sleep(0)
        await self._until(lambda: not (self._is_full and self.is_up))

    def _send_posted(self) -> None:
        if self._posted and self._end is not None:
            self._end.send(Publish(tuple(self._posted)))  # type: ignore[arg-type]  # a Raw is an event that is packed
        self._posted.clear()
        self._posted_size = 0

    def do(self, acts: Iterable[Act]) -> None:
        """Do what the session wants. What it says while there is no broker, it says again by itself."""
        for act in acts:
            if isinstance(act, Hand):
                self._perform(act)
            elif isinstance(act, Say):
                if self.is_up and self._end is not None:
                    self._send_posted()
                    self._end.send(act.message)
                    self._flush_soon()
            elif isinstance(act, Alarm):
                self._wake_at(act.at)
            else:
                self._perform(act)

    async def _keep_connected(self) -> None:
        """Less and less often while it fails."""
        pause = 0.0
        while not isinstance(self._error, TurnedAway):
            try:
                await self._dial(self)
                await self._until_over()
                pause = 0.0
            except ssl.SSLCertVerificationError as error:
                self._error = Untrusted(self.address, error.verify_message.rstrip("."))
                self._changed.set()
            except OSError as error:
                self._error = Unreachable(self.address, error.strerror or str(error) or type(error).__name__)
            pause = min(max(2 * pause, 0.05), SLOWEST_RETRY)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    async def _until_over(self) -> None:
        """Wait until the connection is over, or nothing was heard for too long."""
        while (end := self._end) is not None:
            left = self._heard_at + SILENCE - time.monotonic()
            if left <= 0:
                end.close()
                self.closed(end, f"nothing was heard for {SILENCE:g} seconds")
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._until(lambda: self._end is None)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if isinstance(self._error, TurnedAway):
                raise self._error
            self._changed.clear()
            await self._changed.wait()

    def _flush_soon(self) -> None:
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send all that was said and posted."""
        self._is_flushing = False
        self._send_posted()
        if self._end is not None:
            self._end.flush()

    def _wake_at(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_later(max(0.0, at - time.monotonic()), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self.is_up:
            self.do(self._session.wake(time.monotonic()))

    # --- what happens at the end of the connection ---

    def connected(self, end: End) -> None:
        """The connection may be over again before whoever dials knows of it."""
        self._end = end
        self._heard_at = time.monotonic()
        end.send(Hello(VERSION, self._session.name, False, self._token))
        end.flush()

    def received(self, end: End, messages: Iterable[Message]) -> None:
        self._heard_at = time.monotonic()
        self._turns.take(end, messages)

    def _hear(self, end: End, message: Message) -> None:
        match message:
            case Notify():
                self.do(self._session.notified(message, time.monotonic()))
            case Welcome(durable=durable):
                self._end, self.is_up, self.is_durable, self._error = end, True, durable, None
                self.do(self._session.resume(time.monotonic()))
                self._changed.set()
            case Goodbye(code, reason):
                end.close()
                self.closed(end, reason)
                self._turned_away(code, reason)
            case Ping():
                end.send(Pong())
            case Pong():
                pass
            case _:
                self.do(self._session.handle(message, time.monotonic()))

    def closed(self, end: End, reason: str, code: str = "") -> None:
        self._turns.finish(end)
        if reason == CLOSED and not self.is_up:
            reason = f"{CLOSED} at once: it may speak TLS (write vestniks://), or not take the certificate it was shown"
        self._end, self.is_up, self._is_full = None, False, False
        self._posted.clear()
        self._error = NoBroker(self.address, reason) if code == FOREIGN else Unreachable(self.address, reason)
        self._changed.set()

    def full(self, end: End) -> None:
        self._is_full = True

    def drained(self, end: End) -> None:
        self._is_full = False
        self._changed.set()

    def _turned_away(self, code: str, reason: str) -> None:
        """A broker may be asked again that ends, has no room, took this client for dead, or gave it other rights."""
        if code not in ("shutdown", "silence", "busy", "access"):
            self._error = TurnedAway(self.address, code, reason)
            self._ended(self._error)
