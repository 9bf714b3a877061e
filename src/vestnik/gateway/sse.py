"""Server-Sent Events: `GET /events?filter=...`.

The id of an event is that of the stream and the number in it. Who comes again with `Last-Event-ID` gets what follows.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from vestnik.client.notifications import OVERFLOWS, Gap, Notification
from vestnik.errors import InvalidRequest, VestnikError
from vestnik.gateway.admission import Caller
from vestnik.gateway.bodies import read_number, read_replay
from vestnik.gateway.decoding import parsed
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.sessions import Connect
from vestnik.gateway.settings import GatewaySettings
from vestnik.gateway.streams import Owner, Sent, Stream, Streams
from vestnik.model.filters import Filter

RETRY_MS: Final = 1000
"""After which a browser comes again."""
QUEUE: Final = 1000
LONGEST_QUEUE: Final = 10_000
PARAMETERS: Final = ("filter", "replay", "queue", "overflow")
_START: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}


class EventSource:
    """`GET /events`."""

    def __init__(self, connect: Connect, encoder: Encoder, metrics: Metrics, settings: GatewaySettings) -> None:
        self._connect = connect
        self._encoder = encoder
        self._metrics = metrics
        self._settings = settings
        self.streams = Streams(settings.connections, settings.lease)

    async def get(self, request: Request, caller: Caller) -> EventStream:
        if request.method != "GET":
            raise InvalidRequest("a stream has no end, and so no head alone", status=405)
        parameters = _parameters(request)
        owner = Owner(parameters["filter"], caller.token)
        id, number = _position(request.headers.get("last-event-id", ""))
        stream, gap = self.streams.find(id, owner), None
        if stream is not None:
            self._metrics.resumed.inc()
            return EventStream(stream, self.streams, number, gap, self._settings.ping, self._metrics)
        if id:
            gap = Gap(None, "the stream is known no more; this is a new one")
            number = 0
        stream = await self._new(await parsed(owner.wanted), owner, parameters)
        return EventStream(stream, self.streams, number, gap, self._settings.ping, self._metrics)

    async def _new(self, wanted: Filter, owner: Owner, parameters: dict[str, str]) -> Stream:
        replay = read_replay(parameters["replay"]) if "replay" in parameters else None
        queue, overflow = _queue(parameters.get("queue")), parameters.get("overflow", "block")
        known = [each for each in OVERFLOWS if each == overflow]
        if not known:
            raise InvalidRequest(f"one of {', '.join(OVERFLOWS)}, not {overflow}", "overflow")
        with self.streams.room():
            bus = self._connect(owner.token)
            try:
                async with asyncio.timeout(self._settings.patience):
                    await bus.__aenter__()
                    subscription = await bus.subscribe(wanted, queue=queue, overflow=known[0], replay=replay)
            except BaseException:
                await bus.close()
                raise
            stream = Stream(bus, subscription, owner, self._encode)
            self.streams.add(stream)
            return stream

    def _encode(self, notification: Notification) -> bytes:
        return self._encoder.text(notification.event)


class EventStream:
    """The response: what follows a number of a stream, until somebody else reads it or the reader is gone."""

    def __init__(
        self, stream: Stream, streams: Streams, number: int, gap: Gap | None, ping: float, metrics: Metrics
    ) -> None:
        self._stream = stream
        self._streams = streams
        self._number = number
        self._gap = gap
        self._ping = ping
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(_START)
        over = (await self._streams.attach(self._stream)).over
        writing = asyncio.create_task(self._write(send))
        ends = {writing, asyncio.create_task(_left(receive)), asyncio.create_task(over.wait())}
        connections = self._metrics.connections.labels("sse")
        connections.inc()
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
            connections.dec()
            self._streams.detach(self._stream)
        if not writing.cancelled():
            writing.result()
        await send({"type": "http.response.body", "body": b": over\n\n"})

    async def _write(self, send: Send) -> None:
        """Write all that comes; the end of the subscription is the last thing."""
        opening = f"retry: {RETRY_MS}\nid: {self._stream.id}.{self._number}\n\n".encode()
        missed = self._stream.after(self._number)
        lost = b"" if self._gap is None else gap_event(self._gap)
        await self._put(send, opening + lost + self._frames(missed), missed)
        try:
            while True:
                sent = await self._stream.next(self._ping)
                await self._put(send, self._frames(sent) or b": ping\n\n", sent)
        except VestnikError as error:
            self._streams.end(self._stream)
            await self._put(send, _event("end", {"reason": str(error)}), [])

    async def _put(self, send: Send, body: bytes, sent: list[Sent]) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        self._metrics.delivered.labels("sse").inc(len(sent))
        self._metrics.lost.labels("sse").inc(sum(one.gap.lost or 0 for one in sent if one.gap is not None))

    def _frames(self, sent: list[Sent]) -> bytes:
        """A gap comes before the event that follows it, and with it: it is told until that event has arrived."""
        parts: list[bytes] = []
        for number, text, gap in sent:
            if gap is not None:
                parts.append(gap_event(gap))
            parts.append(b"id: %s.%d\ndata: %s\n\n" % (self._stream.id.encode(), number, text))
        return b"".join(parts)


def gap_event(gap: Gap) -> bytes:
    return _event("gap", gap)


def _event(name: str, content: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(content))


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _parameters(request: Request) -> dict[str, str]:
    for name, _ in request.query_params.multi_items():
        if name not in PARAMETERS:
            hint = (
                "tokens go into the header Authorization" if name == "token" else f"known are {', '.join(PARAMETERS)}"
            )
            raise InvalidRequest(f"there is no such parameter; {hint}", name)
        if len(request.query_params.getlist(name)) > 1:
            raise InvalidRequest("is there twice", name)
    if "filter" not in request.query_params:
        raise InvalidRequest("is required", "filter")
    return dict(request.query_params)


def _queue(text: str | None) -> int:
    if text is None:
        return QUEUE
    number = read_number(text)
    if number is None or not 1 <= number <= LONGEST_QUEUE:
        raise InvalidRequest(f"from 1 to {LONGEST_QUEUE:,}, not {text[:50]}", "queue")
    return number


def _position(text: str) -> tuple[str, int]:
    """The stream and the number of an id. One that is none of ours is of a stream that is not known."""
    id, _, number = text.rpartition(".")
    found = read_number(number)
    return (id, found) if id and found is not None else (text, 0)
