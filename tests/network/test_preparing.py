"""Events that take long to match: matched ahead, and then handled in their order like all others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from network.test_brokers import talk
from network.worlds import broker, client, until
from vestnik import Event, LocalBus
from vestnik.model import ahead
from vestnik.server import preparations, preparing, presence
from vestnik.server.hearing import Hearing
from vestnik.server.presence import Presence
from vestnik.transport.ends import End
from vestnik.wire.frames import VERSION, frame
from vestnik.wire.messages import Goodbye, Hello, Publish

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


class Held:
    """Keeps events from being matched ahead until `go_on`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[asyncio.Event] = []
        self.dropped = 0
        self._settled: Callable[..., Any] = preparing._settled
        monkeypatch.setattr(preparing, "_settled", self._settled_later)

    def go_on(self) -> None:
        for one in self.begun:
            one.set()

    async def _settled_later(self, *given: object) -> None:
        self.begun.append(asyncio.Event())
        try:
            await self.begun[-1].wait()
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        await self._settled(*given)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


@pytest.fixture
def small_room(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Room for one event of many values; returned are the sizes of those that waited as bytes."""
    waited: list[int] = []
    unpacked = preparing._unpacked

    def noted(packed: bytes) -> tuple[Event, ...]:
        waited.append(len(packed))
        return unpacked(packed)

    monkeypatch.setattr(preparing, "MANY_VALUES", 50)
    monkeypatch.setattr(preparations, "MOST_BYTES_AHEAD", 1)
    monkeypatch.setattr(preparing, "_unpacked", noted)
    return waited


async def test_work_for_a_connection_that_has_gone_is_dropped(held: Held, small_room: list[int]) -> None:
    async with broker() as b, client(b, "s") as s, client(b, "p") as p:
        wanted = await s.subscribe("text LIKE '%a_a%'")
        publishing = asyncio.create_task(p.publish(Event("t", HEAVY, id="1")))
        await until(lambda: len(held.begun) == 1)
        await talk(b.address, frame(Hello(VERSION, "p")) + frame(Goodbye("", "")))  # takes the place of p
        await until(lambda: held.dropped == 1)
        assert not ahead._answers
        publishing.cancel()
        await p.close()
        async with client(b, "q") as q:
            publishing = asyncio.create_task(q.publish(Event("t", HEAVY, id="2")))
            await until(lambda: len(held.begun) == 2)  # there is room again
            held.go_on()
            async with asyncio.timeout(20):
                await publishing
        assert (await wanted.get(timeout=5)).event.id == "2"


@pytest.mark.parametrize("durable", [False, True])
async def test_nothing_is_kept_of_an_event_once_it_is_routed(durable: bool) -> None:
    async with broker() as b, client(b, "p") as p, client(b, "s") as s:
        wanted = await s.subscribe("text LIKE '%a_a%'")
        await p.publish(Event("t", HEAVY), durable=durable)
        await wanted.get(timeout=5)
        await until(lambda: not ahead._answers)


async def test_events_of_many_values_wait_as_bytes_while_there_is_no_room(held: Held, small_room: list[int]) -> None:
    async with broker() as b, client(b, "s") as s, client(b, "p") as p, client(b, "q") as q, client(b, "r") as r:
        wanted = await s.subscribe("text LIKE '%a_a%' OR short = 1")
        first = asyncio.create_task(p.publish(Event("t", HEAVY, id="first")))
        await until(lambda: len(held.begun) == 1)
        second = asyncio.create_task(q.publish(Event("t", HEAVY, id="second")))
        text = asyncio.create_task(r.publish(Event("t", {"text": "ab" * 5000}, id="text")))
        await until(lambda: len(held.begun) == 2)  # the text, which takes no more memory than its bytes
        async with client(b, "x") as x:
            await x.publish(Event("t", {"short": 1, "items": list(range(100))}, id="easy"))
        assert (await wanted.get(timeout=5)).event.id == "easy"
        assert len(held.begun) == 2 and not small_room
        held.go_on()
        async with asyncio.timeout(20):
            await asyncio.gather(first, text)
        await until(lambda: len(held.begun) == 3)
        held.go_on()
        async with asyncio.timeout(20):
            await second
        got = [(await wanted.get(timeout=5)).event for _ in range(3)]
        assert {event.id for event in got} == {"first", "second", "text"}
        assert [event.data for event in got if event.id == "second"] == [HEAVY]
        assert len(small_room) == 1
        await until(lambda: not ahead._answers)


async def test_a_message_that_cannot_be_handled_after_it_was_prepared_ends_its_connection_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard, told = Hearing.take, list[dict[str, Any]]()

    def fail(of: Hearing, end: End, guest: Any, message: Any) -> bool:
        if guest.name == "p" and isinstance(message, Publish):
            raise RuntimeError("once")
        return heard(of, end, guest, message)

    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    async with broker() as b, client(b, "s") as s, client(b, "p") as p, client(b, "q") as q:
        wanted = await s.subscribe("text LIKE '%a_a%'")
        with monkeypatch.context() as patch:
            patch.setattr(Hearing, "take", fail)
            publishing = asyncio.create_task(p.publish(Event("t", HEAVY, id="1")))
            await until(lambda: bool(told))
        assert not ahead._answers
        async with asyncio.timeout(20):
            await publishing  # on a new connection
            await q.publish(Event("t", HEAVY, id="2"))
        assert {(await wanted.get(timeout=5)).event.id for _ in range(2)} == {"1", "2"}
    assert [str(one["exception"]) for one in told] == ["once"]
