"""Streams that are read over HTTP, by one connection after another.

What was handed on is remembered for a while, since the last of it may not have arrived when a connection is cut. What
comes while nobody reads waits in the subscription and at the broker. So a stream can be continued after any of its
numbers; where something is gone, a gap says so.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from vestnik.client.bus import Bus
from vestnik.client.notifications import Gap, Notification
from vestnik.client.subscriptions import Subscription
from vestnik.errors import InvalidRequest

REMEMBERED: Final = 1000
"""Notifications that were handed on, at most."""
REMEMBERED_BYTES: Final = 1024 * 1024
FORGOTTEN: Final = f"of a stream that is cut, the last {REMEMBERED:,} or {REMEMBERED_BYTES:,} bytes are remembered"


class Owner(NamedTuple):
    """Who may continue a stream: who shows the same token and wants the same."""

    wanted: str
    token: str | None


class Sent(NamedTuple):
    """A notification that was handed on: its number, the event's text, and what was lost before it."""

    number: int
    text: bytes
    gap: Gap | None


class Reading:
    """A connection that reads a stream: that it is to end, and that it has."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.gone = asyncio.Event()


class Stream:
    """A subscription of a client of its own; one connection at a time reads it."""

    def __init__(self, bus: Bus, subscription: Subscription, owner: Owner, encode: Callable[[Notification], bytes]):
        self.id = secrets.token_urlsafe(12)
        self.bus = bus
        self.owner = owner
        self.reading: Reading | None = None
        self.parting: asyncio.TimerHandle | None = None
        self._subscription = subscription
        self._encode = encode
        self._sent: deque[Sent] = deque()
        self._size = 0
        self._forgotten = 0  # the last number that is remembered no more
        self._vague = 0  # the last of these before which nobody knows how many were lost

    async def next(self, timeout: float) -> list[Sent]:
        """The next notifications, as many as are here; none where there is none for so many seconds."""
        try:
            first = await self._subscription.get(timeout)
        except TimeoutError:
            return []
        found = [self._sending(first)]
        while len(found) < REMEMBERED and (more := self._subscription.try_get()) is not None:
            found.append(self._sending(more))
        return found

    def after(self, number: int) -> list[Sent]:
        """What was handed on after a number; where some of it is gone, the first of these tells so."""
        found = [sent for sent in self._sent if sent.number > number]
        if self._forgotten > number and found:
            first = found[0]
            is_vague = self._vague > number or (first.gap is not None and first.gap.lost is None)
            lost = None if is_vague else first.number - 1 - number
            found[0] = first._replace(gap=Gap(lost, FORGOTTEN))
        return found

    def _sending(self, notification: Notification) -> Sent:
        sent = Sent(notification.number, self._encode(notification), notification.gap)
        self._sent.append(sent)
        self._size += len(sent.text)
        while len(self._sent) > REMEMBERED or (self._size > REMEMBERED_BYTES and len(self._sent) > 1):
            oldest = self._sent.popleft()
            self._size -= len(oldest.text)
            self._forgotten = oldest.number
            if oldest.gap is not None and oldest.gap.lost is None:
                self._vague = oldest.number
        return sent


class Streams:
    """All streams. One that is not read for `lease` seconds ends; there are `most`, those that are read first."""

    def __init__(self, most: int, lease: float) -> None:
        self._most = most
        self._lease = lease
        self._streams: dict[str, Stream] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = 0
        self._is_over = False

    def find(self, id: str, owner: Owner) -> Stream | None:
        found = self._streams.get(id)
        return found if found is not None and found.owner == owner else None

    @contextmanager
    def room(self) -> Iterator[None]:
        """For a further stream; one that nobody reads makes room. InvalidRequest where there is none."""
        if len(self._streams) + self._opening >= self._most:
            unread = next((stream for stream in self._streams.values() if stream.reading is None), None)
            if unread is None:
                raise InvalidRequest(f"{self._most:,} streams are open, and no more at a time", status=503)
            self.end(unread)
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    def add(self, stream: Stream) -> None:
        self._streams[stream.id] = stream

    async def attach(self, stream: Stream) -> Reading:
        """Begin to read, when who read before has ended."""
        while (before := stream.reading) is not None:
            before.over.set()
            await before.gone.wait()
        if stream.parting is not None:
            stream.parting.cancel()
        stream.reading = reading = Reading()
        if self._is_over:
            reading.over.set()
        return reading

    def detach(self, stream: Stream) -> None:
        """End to read; the stream waits for another connection."""
        if stream.reading is not None:
            stream.reading.gone.set()
        stream.reading = None
        if stream.id in self._streams:
            stream.parting = asyncio.get_running_loop().call_later(self._lease, self.end, stream)

    def end(self, stream: Stream) -> None:
        """Nobody can read it any more."""
        if self._streams.pop(stream.id, None) is not None:
            if stream.parting is not None:
                stream.parting.cancel()
            task = asyncio.create_task(stream.bus.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def stop(self) -> None:
        """Let all who read end."""
        self._is_over = True
        for stream in self._streams.values():
            if stream.reading is not None:
                stream.reading.over.set()

    async def close(self) -> None:
        self.stop()
        for stream in list(self._streams.values()):
            self.end(stream)
        await asyncio.gather(*self._closing)
