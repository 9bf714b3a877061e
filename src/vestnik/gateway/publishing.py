"""Publishing what came over HTTP or WebSocket: what is refused, is refused by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from vestnik.client.bus import Bus
from vestnik.errors import InvalidEvent, NotAccepted, RefusedEvent
from vestnik.gateway.answers import answer
from vestnik.gateway.bodies import read_body, read_token
from vestnik.gateway.http_events import Entry, read_events
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.sessions import Sessions
from vestnik.model.envelope import Pair
from vestnik.model.events import Event

PARTLY: Final = 207


class Refused(Struct, frozen=True, omit_defaults=True):
    """The event at a place in the request, from 0, was not published."""

    index: int
    reason: str
    id: str = ""
    source: str = ""
    where: str = ""


class Outcome(Struct, frozen=True):
    """How many events are published, and which are not."""

    published: int
    refused: tuple[Refused, ...]


async def publish(bus: Bus, entries: list[Entry], *, durable: bool = True) -> Outcome:
    """Publish events in their order, but those that are none."""
    refused = [
        Refused(index, entry.reason, where=entry.path)
        for index, entry in enumerate(entries)
        if isinstance(entry, InvalidEvent)
    ]
    events = [(index, entry) for index, entry in enumerate(entries) if isinstance(entry, Event)]
    for run in _runs(events):
        try:
            await bus.publish_many([event for _, event in run], durable=durable)
        except NotAccepted as error:
            places = {(event.source, event.id): index for index, event in run}
            whole = [RefusedEvent(*pair, error.reason) for pair in places]
            refused += [
                Refused(places[source, id], reason, id, source) for source, id, reason in error.refused or whole
            ]
    refused.sort(key=lambda one: one.index)
    return Outcome(len(entries) - len(refused), tuple(refused))


def _runs(events: Iterable[tuple[int, Event]]) -> Iterator[list[tuple[int, Event]]]:
    """In pieces in which no event comes twice: a broker names what it refuses by its source and id."""
    run: dict[Pair, tuple[int, Event]] = {}
    for index, event in events:
        pair = event.source, event.id
        if pair in run:
            yield list(run.values())
            run = {}
        run[pair] = index, event
    if run:
        yield list(run.values())


class Publishing:
    """`POST /events`, and whether others may push there."""

    def __init__(self, sessions: Sessions, metrics: Metrics, largest: int, patience: float) -> None:
        self._sessions = sessions
        self._metrics = metrics
        self._largest = largest
        self._patience = patience

    async def options(self, request: Request) -> Response:
        """Whether others may push events here, as CloudEvents web hooks ask: who may publish, may."""
        origin = request.headers.get("webhook-request-origin")
        agreed = {} if origin is None else {"webhook-allowed-origin": origin, "webhook-allowed-rate": "*"}
        return Response(headers={"allow": "GET, POST, OPTIONS", **agreed})

    async def post(self, request: Request) -> Response:
        token = read_token(request.headers)
        entries = read_events(request.headers, await read_body(request, self._largest))
        async with asyncio.timeout(self._patience), self._sessions.lent(token) as bus:
            with self._metrics.publish_seconds.time():
                outcome = await publish(bus, entries)
        self._metrics.published.labels("http").inc(outcome.published)
        self._metrics.refused.labels("http").inc(len(outcome.refused))
        return answer(outcome, _status(outcome, entries))


def _status(outcome: Outcome, entries: list[Entry]) -> int:
    if not outcome.refused:
        return 200
    if outcome.published:
        return PARTLY
    return 400 if all(isinstance(entry, InvalidEvent) for entry in entries) else 403
