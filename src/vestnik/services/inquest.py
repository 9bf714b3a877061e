"""Why did somebody not get an event? Ask all brokers within reach, and put together what they say."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from vestnik.client.bus import Bus
from vestnik.errors import NotAccepted
from vestnik.services.stories import story
from vestnik.services.views import Story, View

PATIENCE: Final = 5.0
"""Seconds in which a broker has to answer."""
SEARCHED_WITHIN: Final = 120.0
"""Seconds in which it has to look through what it has stored."""
AT_ONCE: Final = 20
"""Brokers that are asked at the same time."""


async def inquire(bus: Bus, id: str, *, source: str | None = None, client: str | None = None) -> Story:
    """What became of the event `id`, and for a `client` why it did or did not get it.

    NotAccepted where several sources have an event of that id, and none is said.
    """
    status = await bus.inspect("status")
    brokers: list[str] = status["brokers"]
    asked = {"id": id, "source": source, "client": client}
    views, silent = await _ask_all(bus, brokers, "event", asked)
    event = next((view["event"] for view in views.values() if view["event"] is not None), None)
    stored: dict[str, list[dict[str, Any]]] = {}
    if event is None or not any(View(view).tells_when for view in views.values()):
        answers, silent = await _ask_all(bus, brokers, "stored", {"id": id}, SEARCHED_WITHIN)
        stored = {broker: found for broker, answer in answers.items() if (found := _of(answer, source))}
        event = event or next((found[-1]["event"] for found in stored.values()), None)
    _check_one(id, views, stored)
    if event is None and source is not None:
        return _of_another(await inquire(bus, id, client=client), source)
    if event is not None:
        views, silent = await _ask_all(bus, brokers, "event", asked | {"source": event["source"], "given": event})
    ordered = {broker: View(views[broker]) for broker in [status["broker"], *brokers] if broker in views}
    return story(id, client, event, ordered, stored={b: f[-1]["at"] for b, f in stored.items()}, silent=silent)


def _of_another(found: Story, source: str) -> Story:
    """The story of an event that no broker knows of a source: another source may have one of that id."""
    if found.event is None:
        return found
    said = f"no broker within reach knows event {found.id} of {source}; there is one of {found.event['source']}"
    return Story(found.id, found.client, "unknown-event", said)


def _of(found: list[dict[str, Any]], source: str | None) -> list[dict[str, Any]]:
    """Stored events, of one source where that is said."""
    return [one for one in found if source in (None, one["event"]["source"])]


def _check_one(id: str, views: dict[str, Any], stored: dict[str, list[dict[str, Any]]]) -> None:
    sources = {sighting["source"] for view in views.values() for sighting in view["sightings"]}
    sources |= {one["event"]["source"] for found in stored.values() for one in found}
    if len(sources) > 1:
        raise NotAccepted(
            f"why {id}", f"{', '.join(sorted(sources))} have an event of that id; say which with --source"
        )


async def _ask_all(
    bus: Bus, brokers: list[str], kind: str, about: dict[str, Any], patience: float = PATIENCE
) -> tuple[dict[str, Any], list[str]]:
    """What each broker answers, and who does not."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(broker: str) -> Any:
        async with gate:
            try:
                async with asyncio.timeout(patience):
                    return await bus.inspect(kind, broker, **about)
            except (TimeoutError, NotAccepted):
                return None

    answers = dict(zip(brokers, await asyncio.gather(*map(ask, brokers)), strict=True))
    found = {broker: answer for broker, answer in answers.items() if answer is not None}
    return found, [broker for broker in brokers if broker not in found]
