"""Publishing what came over HTTP or WebSocket: what is refused, is refused by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from vestnik.client.bus import Bus
from vestnik.errors import NotAccepted, OutcomeUnknown, RefusedEvent
from vestnik.gateway.admission import Caller
from vestnik.gateway.answers import UNAVAILABLE, UNKNOWN, answer
from vestnik.gateway.decoding import decoded
from vestnik.gateway.http_events import TOLD, Entries, Refused, read_events
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.notices import tell_refused
from vestnik.gateway.settings import GatewaySettings
from vestnik.gateway.turns import Turns
from vestnik.model.envelope import Pair
from vestnik.model.events import Event

PARTLY: Final = 207


class Outcome(Struct, frozen=True):
    """How many events are published, how many are not, and why the first of these are not."""

    published: int
    refused: tuple[Refused, ...]
    refused_count: int


async def publish(bus: Bus, entries: Entries, *, durable: bool = True) -> Outcome:
    """Publish the events among the entries, in their order."""
    refused = list(entries.refused)
    published = len(entries.events)
    for run in _runs(entries.events):
        try:
            await bus.publish_many([event for _, event in run], durable=durable)
        except NotAccepted as error:
            places = {(event.source, event.id): index for index, event in run}
            whole = tuple([RefusedEvent(*pair, error.reason) for pair in places])
            found = _refused(error.refused or whole, places)
            refused += found
            published -= len(found)
        except OutcomeUnknown as error:
            places = {(event.source, event.id): index for index, event in run}
            found = _refused(error.refused, places) + _refused(error.unknown, places, unknown=True)
            refused += found
            published -= len(found)
    refused.sort(key=lambda one: (not one.unknown, one.index))  # what may be published all the same comes first
    return Outcome(published, tuple(refused[:TOLD]), entries.total - published)


def _refused(events: tuple[RefusedEvent, ...], places: dict[Pair, int], *, unknown: bool = False) -> list[Refused]:
    return [Refused(places[source, id], reason, id, source, unknown=unknown) for source, id, reason in events]


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

    def __init__(self, turns: Turns, metrics: Metrics, settings: GatewaySettings, failure: Callable[[], str]) -> None:
        self._turns = turns
        self._failure = failure
        self._metrics = metrics
        self._settings = settings

    async def options(self, request: Request) -> Response:
        """Whether others may push events here, as CloudEvents web hooks ask: who may publish, may."""
        origin = request.headers.get("webhook-request-origin")
        agreed = {} if origin is None else {"webhook-allowed-origin": origin, "webhook-allowed-rate": "*"}
        return Response(headers={"allow": "GET, POST, OPTIONS", **agreed})

    async def post(self, request: Request, caller: Caller) -> Response:
        async with self._turns.body(request, caller.owner(request)) as body:
            entries = await decoded(len(body), partial(read_events, request.headers, body, self._settings.batch))
            async with asyncio.timeout(self._settings.patience):
                with self._metrics.publish_seconds.time():
                    outcome = await publish(caller.bus, entries)
        self._metrics.published.labels("http").inc(outcome.published)
        self._metrics.refused.labels("http").inc(outcome.refused_count)
        status = _status(outcome, entries, self._failure())
        if status >= 400:
            tell_refused(request.scope, status, outcome.refused[0].reason)
        return answer(outcome, status, {"retry-after": "1"} if status == UNAVAILABLE else {})


def _status(outcome: Outcome, entries: Entries, failure: str) -> int:
    if not outcome.refused_count:
        return 200
    if outcome.published:
        return PARTLY
    if any(one.unknown for one in outcome.refused):
        return UNKNOWN
    if failure and any(one.reason == failure for one in outcome.refused):
        return UNAVAILABLE
    return 403 if entries.events else 400
