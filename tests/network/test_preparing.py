"""Events that take long to match: matched ahead, and then handled in their order like all others."""

from __future__ import annotations

import asyncio

import pytest

from network.test_brokers import talk
from network.worlds import broker, client, until
from vestnik import Event, LocalBus
from vestnik.server import preparing, presence
from vestnik.server.presence import Presence
from vestnik.transport.ends import End
from vestnik.wire.frames import VERSION, frame
from vestnik.wire.messages import Goodbye, Hello

HEAVY = {"text": "ab" * 500, "items": list(range(100))}
FILTERS = ["text LIKE '%b_b%'", "text LIKE '%z%'", "ANY items > 5", "n >= 0"]


@pytest.fixture(autouse=True)
def _all_is_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event that meets a pattern is matched ahead."""
    monkeypatch.setattr(preparing, "WEIGHT", 0)


async def test_what_is_matched_ahead_keeps_its_order_and_reaches_whoever_wants_it() -> None:
    async with broker() as b, client(b, "p") as p, client(b, "s") as s:
        wanted = [await s.subscribe(text) for text in FILTERS]
        for n in range(20):
            await p.publish(Event("t", {**HEAVY, "n": n} if n % 2 else {"n": n}), durable=n % 3 == 0)
        numbers = [(await wanted[3].get(timeout=5)).event.data["n"] for _ in range(20)]
        assert numbers == list(range(20))
        assert [(await wanted[0].get(timeout=5)).event.data["n"] for _ in range(10)] == list(range(1, 20, 2))
        assert wanted[1].waiting == 0


async def test_a_filter_that_comes_while_an_event_is_matched_ahead_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    found = preparing._settled

    async def held(*given: object) -> None:
        begun.set()
        await go_on.wait()
        await found(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(preparing, "_settled", held)
    async with broker() as b, client(b, "p") as p, client(b, "s") as s:
        await s.subscribe("text LIKE '%z%'")
        publishing = asyncio.create_task(p.publish(Event("t", HEAVY)))
        async with asyncio.timeout(5):
            await begun.wait()
        later = await s.subscribe("text LIKE '%a_a%'")
        go_on.set()
        await publishing
        assert (await later.get(timeout=5)).event.data == HEAVY


async def test_a_client_that_leaves_while_its_event_is_matched_ahead_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def never(*given: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with broker() as b, client(b, "s") as s:
        wanted = await s.subscribe("text LIKE '%a_a%'")
        with monkeypatch.context() as patch:
            patch.setattr(preparing, "_settled", never)
            async with client(b, "p") as p:
                publishing = asyncio.create_task(p.publish(Event("t", HEAVY)))
                async with asyncio.timeout(5):
                    await begun.wait()
                publishing.cancel()
        async with client(b, "q") as q:
            await q.publish(Event("t", HEAVY, id="next"))
            assert (await wanted.get(timeout=5)).event.id == "next"


async def test_a_bus_without_sockets_matches_ahead_too() -> None:
    async with LocalBus() as bus:
        wanted = await bus.subscribe("text LIKE '%a_a%'")
        await bus.publish(Event("t", HEAVY, id="1"))
        await bus.publish(Event("t", HEAVY, id="2"))
        assert [(await wanted.get(timeout=5)).event.id for _ in range(2)] == ["1", "2"]


async def test_a_neighbour_whose_events_are_matched_ahead_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody else who comes by its name does not end a link from which nothing is read meanwhile."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    found, looked, looks = preparing._settled, Presence._doubted_for_long, []

    async def held(*given: object) -> None:
        begun.set()
        await go_on.wait()
        await found(*given)  # type: ignore[arg-type]

    def look(of: Presence, end: End) -> None:
        looks.append(end)
        looked(of, end)

    monkeypatch.setattr(presence, "ANSWER_WITHIN", 0.05)
    monkeypatch.setattr(Presence, "_doubted_for_long", look)
    async with broker("a") as a, broker("b", join=(a,)) as b, client(a, "s") as s, client(b, "p") as p:
        await until(lambda: not b.missing)
        wanted = await s.subscribe("text LIKE '%a_a%'", settled=True)
        monkeypatch.setattr(preparing, "_settled", held)
        monkeypatch.setattr(preparing, "is_heavy", lambda events, size, router, sender: sender == "b")
        await p.publish(Event("t", HEAVY, id="1"))
        async with asyncio.timeout(5):
            await begun.wait()
        *_, last = await talk(a.address, frame(Hello(VERSION, "b", True, "", "merging", (), 7)))
        assert isinstance(last, Goodbye)
        await until(lambda: len(looks) > 2)
        assert not b.missing
        go_on.set()
        assert (await wanted.get(timeout=5)).event.id == "1"
