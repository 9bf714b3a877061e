"""Who wants something, told by announcements and by answers that cross them."""

from __future__ import annotations

import asyncio

from network.worlds import until
from session.scripted import scripted
from vestnik import Event
from vestnik.wire.messages import Fetch, Fetched, Gap


def subscription(name: str, change: str = "made") -> Event:
    about = {"broker": "b2", "client": "c", "name": name, "filter": "price > 1"}
    return Event(f"vestnik.subscription.{change}", about, source="b2")


async def test_what_was_announced_meanwhile_is_newer_than_the_answer() -> None:
    async with scripted() as (bus, broker):
        starting = asyncio.ensure_future(bus.wanted("price > 0"))
        await until(lambda: bool(broker.of(Fetch)))
        broker.notify([subscription("x"), subscription("x", "ended"), subscription("y")])
        (asked,) = broker.of(Fetch)
        broker.say(Fetched(asked.request, (subscription("x"), subscription("z"))))
        wanted = await starting
        assert sorted(interest.name for interest in wanted.interests) == ["y", "z"]


async def test_after_a_gap_the_answer_counts() -> None:
    async with scripted() as (bus, broker):
        broker.pages = [Fetched(0, (subscription("x"),)), Fetched(0, (subscription("y"),))]
        wanted = await bus.wanted("price > 0")
        assert [interest.name for interest in wanted.interests] == ["x"]
        broker.notify([Gap("", 0, 0, "the broker was restarted")])
        await until(lambda: [interest.name for interest in wanted.interests] == ["y"])
