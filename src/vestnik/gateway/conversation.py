"""What is said and answered on one WebSocket: the whole interface of a client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import structs
from starlette.websockets import WebSocket, WebSocketDisconnect

from vestnik.client.bus import Bus
from vestnik.client.notifications import Notification
from vestnik.client.subscriptions import Subscription
from vestnik.errors import InvalidEvent, InvalidRequest, TurnedAway, VestnikError
from vestnik.gateway.bodies import replay_of, shaped
from vestnik.gateway.decoding import decoded, parsed
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.entries import EVENTS, Shallow, read_shallow
from vestnik.gateway.http_events import Entries, entries_of
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.notices import tell_refused
from vestnik.gateway.publishing import publish
from vestnik.gateway.requests import (
    Advertise,
    AnySaid,
    Change,
    Fetch,
    Hello,
    Name,
    Publish,
    Said,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from vestnik.gateway.settings import GatewaySettings
from vestnik.gateway.turns import Turns
from vestnik.model.filters import Filter

LOG: Final = logging.getLogger(__name__)

IN_FLIGHT: Final = 16
"""Publications of a connection that are not answered; while there are so many, no more is read."""
MOST_SUBSCRIPTIONS: Final = 1000
LONGEST_QUEUE: Final = 10_000
MOST_FETCHED: Final = 10_000

BROKEN: Final = frozenset({1002, 1007, 1009})
"""The codes with which the server closes a WebSocket over which no message comes, or one that is too large."""
REFUSED, WENT_WRONG = 1008, 1011
"""Why the gateway closes a WebSocket, by the numbers of RFC 6455 and its registry."""


class Conversation:
    """What is said and answered on one WebSocket. Requests are answered in any order, publications sent in theirs."""

    def __init__(
        self,
        socket: WebSocket,
        bus: Bus,
        connect: Callable[[str | None], Awaitable[Bus]],
        encoder: Encoder,
        turns: Turns,
        metrics: Metrics,
        settings: GatewaySettings,
    ) -> None:
        self._socket = socket
        self._bus = bus
        self._connect = connect
        self._has_begun = "authorization" in socket.headers  # so that Hello comes too late
        self._encoder = encoder
        self._turns = turns
        self._metrics = metrics
        self._delivered = metrics.delivered.labels("websocket")
        self._patience = settings.patience
        self._batch = settings.batch
        self._subscriptions: dict[str, Subscription] = {}
        self._advertised: set[str] = set()
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()

    async def run(self, hello: Hello | None = None) -> None:
        """Until the other side leaves, or it is to end. `hello` was said already."""
        if hello is not None:
            self._has_begun = True
            await self._accept(hello.request)
        listening = asyncio.create_task(self._listen())
        ends: set[asyncio.Future[Any]] = {listening, self._ended}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [listening, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._bus.close()
        if self._ended.done():
            code, reason = self._ended.result()
            if code == REFUSED:
                tell_refused(self._socket.scope, code, reason)
            with suppress(WebSocketDisconnect):
                await self._socket.close(code, close_reason(reason))
        elif not listening.cancelled():
            listening.result()

    def end(self, code: int, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result((code, reason))

    async def _listen(self) -> None:
        while (message := await self._socket.receive())["type"] != "websocket.disconnect":
            await self._answer(message.pop("text", None))
        if message.get("code") in BROKEN:
            tell_refused(self._socket.scope, message["code"], message.get("reason") or "what came is no message")

    async def _answer(self, text: str | None) -> None:
        """Do what a message asks for, or refuse it. When this returns, nothing of the message is held here."""
        request: Any = None
        try:
            if text is None:
                raise InvalidRequest("messages are text, not bytes")
            with await self._turns.hold(text, self) as held:
                value, shallow = await decoded(len(text), partial(_read, text))
                request = _request_of(value)
                said = shaped(AnySaid, value)
                if isinstance(said, Publish):
                    shallow.restored(said.events)
                await self._do(said, len(text), held)
        except TurnedAway as error:
            self.end(REFUSED, error.reason)
        except (VestnikError, ValueError, TimeoutError) as error:
            await self._refuse(request, error)

    # --- what is asked for ---

    async def _do(self, said: Said, size: int, held: ExitStack) -> None:
        """Do what is asked for. A publication keeps the room that is `held` for it until it is over."""
        if isinstance(said, Hello):
            await self._begin(said.token)
            await self._accept(said.request)
            return
        self._has_begun = True
        bus = self._bus
        if isinstance(said, Publish):
            entries = await decoded(size, partial(entries_of, said.events, self._batch))
            await self._room.acquire()
            publication = self._publish(bus, entries, said.request, durable=said.durable)
            self._spawn(publication, held.pop_all())
        elif isinstance(said, Subscribe):
            made = await self._subscribe(bus, said)
            await self._accept(said.request, name=made.name)
            self._spawn(self._pump(made), ExitStack())
        else:
            await self._accept(said.request, **await self._manage(bus, said))

    async def _begin(self, token: str) -> None:
        if self._has_begun:
            raise InvalidRequest("hello is the first thing that is said, or nothing")
        bus = await self._connect(token)
        self._has_begun = True
        before, self._bus = self._bus, bus
        await before.close()

    async def _manage(self, bus: Bus, said: Said) -> dict[str, object]:
        """Do what is asked for; what there is to say about it."""
        wanted = Filter.none()
        if isinstance(said, Change | Advertise | Fetch):
            wanted = await parsed(said.filter)
        async with asyncio.timeout(self._patience):
            match said:
                case Change(name=name):
                    await self._known(name).change(wanted)
                case Unsubscribe(name=name):
                    await self._known(name).unsubscribe()
                    self._subscriptions.pop(name, None)
                case Advertise(name=asked):
                    name = await bus.advertise(wanted, name=asked)
                    self._advertised.add(name)
                    return {"name": name}
                case Unadvertise(name=name):
                    if name not in self._advertised:
                        raise InvalidRequest(f"there is no advertisement {name}", "name")
                    await bus.unadvertise(name)
                    self._advertised.discard(name)
                case Fetch(limit=limit, since=since, latest_by=path):
                    if not 1 <= limit <= MOST_FETCHED:
                        raise InvalidRequest(f"from 1 to {MOST_FETCHED:,}, not {limit}", "limit")
                    past = await bus.fetch(wanted, limit=limit, since=since, latest_by=path)
                    events = [msgspec.Raw(self._encoder.text(event)) for event in past]
                    return {"events": events, "missing": past.missing}
        return {}

    def _known(self, name: str) -> Subscription:
        try:
            return self._subscriptions[name]
        except KeyError:
            raise InvalidRequest(f"there is no subscription {name}", "name") from None

    async def _subscribe(self, bus: Bus, said: Subscribe) -> Subscription:
        if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            raise InvalidRequest(f"a connection has at most {MOST_SUBSCRIPTIONS:,} subscriptions")
        if not 1 <= said.queue <= LONGEST_QUEUE:
            raise InvalidRequest(f"from 1 to {LONGEST_QUEUE:,}, not {said.queue}", "queue")
        replay = None if said.replay is None else replay_of(said.replay)
        handback = msgspec.Raw(msgspec.json.encode(said.handback))
        wanted = await parsed(said.filter)
        async with asyncio.timeout(self._patience):
            made = await bus.subscribe(
                wanted, name=said.name, queue=said.queue, overflow=said.overflow, replay=replay, handback=handback
            )
        self._subscriptions[made.name] = made
        return made

    async def _publish(self, bus: Bus, entries: Entries, request: Name | None, *, durable: bool) -> None:
        try:
            with self._metrics.publish_seconds.time():
                outcome = await publish(bus, entries, durable=durable)
        except VestnikError as error:
            await self._refuse(request, error)
            return
        finally:
            self._room.release()
        self._metrics.published.labels("websocket").inc(outcome.published)
        self._metrics.refused.labels("websocket").inc(outcome.refused_count)
        await self._accept(request, **structs.asdict(outcome))

    # --- what is said ---

    async def _pump(self, subscription: Subscription) -> None:
        """Hand on what comes. Who does not read holds it up, and the subscription's overflow decides."""
        try:
            async for notification in subscription:
                await self._notify(subscription.name, notification)
            reason = "it was unsubscribed"
        except TurnedAway as error:
            self.end(REFUSED, error.reason)
            return
        except VestnikError as error:
            reason = str(error)
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
        await self._say({"op": "ended", "name": subscription.name, "reason": reason})

    async def _notify(self, name: str, notification: Notification) -> None:
        gap = notification.gap
        await self._say(
            {
                "op": "event",
                "name": name,
                "number": notification.number,
                "subscriptions": notification.subscriptions,
                "replayed": notification.replayed,
                "gap": gap,
                "handback": notification.handback,
                "event": msgspec.Raw(self._encoder.text(notification.event)),
            }
        )
        self._delivered.inc()
        if gap is not None:
            self._metrics.lost.labels("websocket").inc(gap.lost or 0)

    async def _accept(self, request: Name | None, **more: object) -> None:
        await self._say({"op": "accepted", "request": request, **more})

    async def _refuse(self, request: object, error: Exception) -> None:
        reason = "the broker did not answer in time" if isinstance(error, TimeoutError) else str(error)
        tell_refused(self._socket.scope, getattr(error, "status", 400), reason)
        await self._say({"op": "refused", "request": request, "reason": reason})

    async def _say(self, content: dict[str, object]) -> None:
        with suppress(WebSocketDisconnect):
            await self._socket.send_text(msgspec.json.encode(content).decode())

    def _spawn(self, work: Coroutine[Any, Any, None], held: ExitStack) -> None:
        """Start a task, and give back the room that is `held` for it when it ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda _: held.close())
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            LOG.error("a WebSocket is closed", exc_info=task.exception())
            self.end(WENT_WRONG, "something went wrong in the gateway")


def _read(text: str) -> tuple[Any, Shallow]:
    try:
        return read_shallow(text.encode(), EVENTS)
    except InvalidEvent as error:
        raise InvalidRequest(error.reason, error.path) from None


def _request_of(value: object) -> Name | None:
    """What a client calls a request, though nothing else of it may be right."""
    name = value.get("request") if isinstance(value, dict) else None
    return name if isinstance(name, str) or (type(name) is int and abs(name) < 2**63) else None


def close_reason(reason: str) -> str:
    """What fits into a close frame."""
    return reason.encode()[:120].decode(errors="ignore")
