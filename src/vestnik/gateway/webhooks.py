"""Subscriptions that are pushed to a sink: `POST /subscriptions`, and what became of them."""

from __future__ import annotations

import asyncio
import secrets
from typing import NamedTuple

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from vestnik.client.bus import Bus
from vestnik.errors import InvalidRequest
from vestnik.gateway.answers import answer
from vestnik.gateway.bodies import read_as, read_body, read_replay, read_token
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.handshake import permitted_rate
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.pushing import Push
from vestnik.gateway.sessions import Connect
from vestnik.gateway.settings import GatewaySettings
from vestnik.gateway.sinks import Sink, read_sink
from vestnik.model.filters import Filter

QUEUE = 1000


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be pushed where. The sink is shown `token`, which is not told to anybody else."""

    filter: str
    sink: str
    replay: str | None = None
    token: str | None = None


class _Running(NamedTuple):
    owner: str | None
    push: Push
    task: asyncio.Task[None]


class Webhooks:
    """All of them. Only who shows the token with which one was made sees it."""

    def __init__(self, connect: Connect, encoder: Encoder, metrics: Metrics, settings: GatewaySettings) -> None:
        self._connect = connect
        self._encoder = encoder
        self._metrics = metrics
        self._settings = settings
        self._running: dict[str, _Running] = {}
        self._opening = 0

    async def post(self, request: Request) -> Response:
        owner = read_token(request.headers)
        wanted = read_as(Wanted, await read_body(request, self._settings.largest))
        if wanted.token is not None and not (wanted.token.isascii() and wanted.token.isprintable()):
            raise InvalidRequest("is written in ASCII", "token")
        found = Filter.parse(wanted.filter)
        sink = read_sink(wanted.sink, self._settings.sinks)
        most = self._settings.webhooks
        if len(self._running) + self._opening >= most:
            raise InvalidRequest(f"there are {most:,} webhooks, and no more at a time", status=503)
        self._opening += 1
        try:
            push = await self._begin(found, sink, wanted, owner)
        finally:
            self._opening -= 1
        return answer(_shown(push), 201, {"location": f"/subscriptions/{push.id}"})

    async def _begin(self, found: Filter, sink: Sink, wanted: Wanted, owner: str | None) -> Push:
        replay = None if wanted.replay is None else read_replay(wanted.replay)
        rate = await permitted_rate(sink)
        bus = self._connect(owner)
        try:
            async with asyncio.timeout(self._settings.patience):
                await bus.__aenter__()
                subscription = await bus.subscribe(found, queue=QUEUE, replay=replay)
        except BaseException:
            await bus.close()
            raise
        push = Push(secrets.token_urlsafe(12), subscription, sink, wanted.token, rate, self._encoder)
        task = asyncio.create_task(self._run(push, bus))
        self._running[push.id] = _Running(owner, push, task)
        return push

    async def _run(self, push: Push, bus: Bus) -> None:
        try:
            await push.run(self._metrics)
        finally:
            await bus.close()

    async def list(self, request: Request) -> Response:
        owner = read_token(request.headers)
        return answer([_shown(running.push) for running in self._running.values() if running.owner == owner])

    async def get(self, request: Request) -> Response:
        return answer(_shown(self._own(request).push))

    async def delete(self, request: Request) -> Response:
        running = self._own(request)
        del self._running[running.push.id]
        await _stop(running)
        return Response(status_code=204)

    def _own(self, request: Request) -> _Running:
        id = request.path_params["id"]
        running = self._running.get(id)
        if running is None or running.owner != read_token(request.headers):
            raise InvalidRequest(f"there is no subscription {id}", "id", 404)
        return running

    async def close(self) -> None:
        while self._running:
            await _stop(self._running.popitem()[1])


async def _stop(running: _Running) -> None:
    running.task.cancel()
    await asyncio.gather(running.task, return_exceptions=True)


def _shown(push: Push) -> dict[str, object]:
    state = "ended" if push.ended else "failing" if push.failing else "active"
    return {
        "id": push.id,
        "filter": push.filter,
        "sink": push.sink.url,
        "protocol": "HTTP",
        "state": state,
        "reason": push.ended or push.failing,
        "delivered": push.delivered,
        "refused": push.refused,
        "lost": push.lost,
    }
