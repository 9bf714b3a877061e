"""Server-Sent Events over real sockets."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.webs import Reader, World, measured, quote, stream, until, world
from vestnik import Event
from vestnik.gateway import streams


async def test_events_come_with_ids_that_count() -> None:
    async with world() as here, stream(here.http, "price > 10") as reader:
        assert reader.response.headers["content-type"] == "text/event-stream; charset=utf-8"
        await here.bus.publish_many([quote(5), quote(11, source="feed", id="e1"), quote(12)])
        first, second = await reader.next(), await reader.next()
        assert (first.name, first.data["id"], first.data["source"], first.data["data"]) == (
            "message", "e1", "feed", {"price": 11}
        )  # fmt: skip
        assert [frame.id.rpartition(".")[2] for frame in (first, second)] == ["1", "2"]
        assert first.id.rpartition(".")[0] == second.id.rpartition(".")[0]


async def test_the_past_comes_first(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.bus.publish_many([quote(price) for price in range(20)])
        async with stream(here.http, "EXISTS price", replay="last=3") as reader:
            await here.bus.publish(quote(20))
            assert await reader.prices(4) == [17, 18, 19, 20]


async def test_a_stream_that_is_cut_goes_on_where_it_was() -> None:
    async with world() as here:
        async with stream(here.http, "EXISTS price") as reader:
            await here.bus.publish_many([quote(1), quote(2), quote(3)])
            first = await reader.next()
            await reader.prices(2)
        await here.bus.publish_many([quote(4), quote(5)])
        async with stream(here.http, "EXISTS price", last=first.id) as reader:
            await here.bus.publish(quote(6))
            assert await reader.prices(5) == [2, 3, 4, 5, 6]


async def test_a_stream_that_is_cut_before_its_first_event_goes_on() -> None:
    async with world() as here:
        async with stream(here.http, "EXISTS price") as reader:
            opening = await anext(reader.lines), await anext(reader.lines)
            assert opening[0].startswith("retry: ")
            id = opening[1].removeprefix("id: ")
        await here.bus.publish(quote(1))
        async with stream(here.http, "EXISTS price", last=id) as reader:
            assert await reader.prices(1) == [1]


async def test_who_comes_again_takes_over() -> None:
    async with world() as here, stream(here.http, "EXISTS price") as old:
        await here.bus.publish(quote(1))
        first = await old.next()
        async with stream(here.http, "EXISTS price", last=first.id) as new:
            await here.bus.publish(quote(2))
            assert await new.prices(1) == [2]
            with pytest.raises(EOFError):
                await old.next()


@pytest.mark.parametrize("last", ["unknown.7", "no id", "."])
async def test_where_a_stream_cannot_go_on_a_gap_says_so(last: str) -> None:
    async with world() as here, stream(here.http, "EXISTS price", last=last) as reader:
        gap = await reader.next()
        assert (gap.name, gap.data["lost"]) == ("gap", None) and "new one" in gap.data["reason"]
        await here.bus.publish(quote(1))
        assert await reader.prices(1) == [1]


async def test_a_stream_is_not_for_other_filters_or_tokens() -> None:
    async with world() as here:
        async with stream(here.http, "EXISTS price") as reader:
            await here.bus.publish(quote(1))
            id = (await reader.next()).id
        async with stream(here.http, "price > 0", last=id) as reader:
            assert (await reader.next()).name == "gap"
        here.http.headers["authorization"] = "Bearer another"
        async with stream(here.http, "EXISTS price", last=id) as reader:
            assert (await reader.next()).name == "gap"


async def test_a_stream_that_nobody_reads_ends_with_its_lease() -> None:
    async with world(lease=0.05) as here:
        async with stream(here.http, "EXISTS price") as reader:
            await here.bus.publish(quote(1))
            id = (await reader.next()).id
        await until(lambda: len(here.broker.host.guests) == 2)  # this test, and the session of HTTP requests
        async with stream(here.http, "EXISTS price", last=id) as reader:
            assert (await reader.next()).name == "gap"


async def test_what_is_remembered_no_more_is_a_gap_of_known_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "REMEMBERED", 3)
    async with world() as here:
        async with stream(here.http, "EXISTS price") as reader:
            await here.bus.publish(quote(0))
            id = (await reader.next()).id
            await here.bus.publish_many([quote(price) for price in range(1, 8)])
            await reader.prices(7)
        async with stream(here.http, "EXISTS price", last=id) as reader:
            gap = await reader.next()
            assert (gap.name, gap.data["lost"]) == ("gap", 4)
            assert await reader.prices(3) == [5, 6, 7]


async def test_who_reads_too_slowly_is_told_of_a_gap() -> None:
    async with world() as here, stream(here.http, "EXISTS n", queue="5", overflow="drop-oldest") as reader:
        big = "x" * 100_000
        for n in range(200):
            await here.bus.publish(quote(1).replace(data={"n": n, "big": big}))
        await here.bus.publish(quote(1).replace(data={"n": -1}))
        numbers, lost = await _until_last(reader)
        assert lost > 0 and len(numbers) + lost == 201
        assert numbers == [*sorted(numbers[:-1]), -1]


async def _until_last(reader: Reader) -> tuple[list[int], int]:
    numbers: list[int] = []
    lost = 0
    while not numbers or numbers[-1] != -1:
        frame = await reader.next()
        if frame.name == "gap":
            lost += frame.data["lost"]
        else:
            numbers.append(frame.data["data"]["n"])
    return numbers, lost


async def test_a_gateway_that_ends_ends_its_streams() -> None:
    async with world() as here, stream(here.http, "EXISTS price") as reader:
        here.gateway.stop()
        with pytest.raises(EOFError):
            await reader.next()
        async with stream(here.http, "EXISTS price") as late:
            with pytest.raises(EOFError):
                await late.next()


async def test_a_quiet_stream_has_pings() -> None:
    async with world(ping=0.02) as here, stream(here.http, "EXISTS price") as reader:
        async with asyncio.timeout(20):
            async for line in reader.lines:
                if line == ": ping":
                    break


async def test_an_end_of_the_subscription_is_said() -> None:
    async with world() as here, stream(here.http, "EXISTS n", queue="1", overflow="disconnect") as reader:
        await here.bus.publish_many([quote(1).replace(data={"n": n}) for n in range(100)])
        while (frame := await reader.next()).name == "message":
            pass
        assert frame.name == "end" and "more than 1" in frame.data["reason"]
        with pytest.raises(EOFError):
            await reader.next()


@pytest.mark.parametrize(
    ("query", "where", "reason"),
    [
        ("", "filter", "required"),
        ("filter=price >", "filter", "column"),
        ("filter=a=1&filter=b=1", "filter", "twice"),
        ("filter=a=1&replay=first=3", "replay", "known are all, last"),
        ("filter=a=1&replay=last=x", "replay", "last"),
        ("filter=a=1&queue=0", "queue", "1 to"),
        ("filter=a=1&queue=99999999", "queue", "1 to"),
        ("filter=a=1&overflow=explode", "overflow", "drop-oldest"),
        ("filter=a=1&token=secret", "token", "Authorization"),
        ("filter=a=1&speed=9", "speed", "known are"),
    ],
)
@pytest.mark.asyncio(loop_scope="session")
async def test_wrong_parameters_are_refused(shared: World, query: str, where: str, reason: str) -> None:
    answer = await shared.http.get(f"/events?{query}")
    assert (answer.status_code, answer.json()["where"]) == (400, where)
    assert reason in answer.json()["error"]


async def test_there_are_only_so_many_streams() -> None:
    async with world(connections=1) as here:
        async with stream(here.http, "EXISTS price"):
            answer = await here.http.get("/events", params={"filter": "a = 1"})
            assert answer.status_code == 503 and "1 streams" in answer.json()["error"]
        while await measured(here.http, 'vestnik_gateway_connections{way="sse"}'):
            await asyncio.sleep(0.01)
        async with stream(here.http, "EXISTS price") as reader:
            await here.bus.publish(quote(1))
            assert await reader.prices(1) == [1]


async def test_a_stream_is_no_head() -> None:
    async with world() as here:
        assert (await here.http.head("/events", params={"filter": "a = 1"})).status_code == 405


async def test_each_event_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = Event.to_json

    def note(event: Event) -> str:
        encoded.append(event.id)
        return encode(event)

    monkeypatch.setattr(Event, "to_json", note)
    async with world() as here, stream(here.http, "EXISTS price") as one, stream(here.http, "price > 0") as other:
        await here.bus.publish(quote(1, id="e1"))
        assert (await one.prices(1), await other.prices(1), encoded) == ([1], [1], ["e1"])


def _large(first: int, end: int) -> list[Event]:
    return [quote(1).replace(data={"n": n, "some": "x" * 2000}, id=str(n)) for n in range(first, end)]


async def test_who_reads_nothing_costs_a_bounded_amount_and_gets_everything_later() -> None:
    async with world() as here, stream(here.http, "EXISTS n", queue="10") as reader:
        for first in range(0, 9_000, 500):
            await here.bus.publish_many(_large(first, first + 500))
        clients = here.broker.host.core.clients.values()
        assert [one.reader.in_flight for client in clients for one in client.subscriptions.values()] == [10]
        await here.bus.publish(quote(1).replace(data={"n": -1}))
        assert await _until_last(reader) == ([*range(9_000), -1], 0)


async def test_what_a_full_log_in_memory_dropped_is_a_gap() -> None:
    async with world() as here, stream(here.http, "EXISTS n", queue="10") as reader:
        recovery = here.broker.host.core.recovery
        recovery.pressure._stalled = 0.0  # publishers do not wait for who reads nothing
        recovery.tail.room = 1024 * 1024
        for first in range(0, 9_000, 500):
            await here.bus.publish_many(_large(first, first + 500))
        await here.bus.publish(quote(1).replace(data={"n": -1}))
        frames = [await reader.next()]
        while frames[-1].name == "gap" or frames[-1].data["data"]["n"] != -1:
            frames.append(await reader.next())
        gaps = [frame.data for frame in frames if frame.name == "gap"]
        assert gaps and all(gap["lost"] is None and "in memory" in gap["reason"] for gap in gaps)
        last_number = 0
        for before, frame in pairwise(frames[:-1]):
            if frame.name == "message":
                number = frame.data["data"]["n"]
                assert number > last_number if before.name == "gap" else number == last_number + 1
                last_number = number
        assert last_number == 8_999


async def test_a_stream_that_is_cut_again_and_again_loses_and_repeats_nothing() -> None:
    dice = random.Random(7)

    async def publish(here: World) -> None:
        for start in range(0, 400, 4):
            await here.bus.publish_many([quote(price) for price in range(start, start + 4)])
            await asyncio.sleep(0)

    async with world() as here:
        found: list[int] = []
        last = ""
        async with stream(here.http, "EXISTS price") as reader:
            publishing = asyncio.create_task(publish(here))
            frame = await reader.next()
            found, last = [frame.data["data"]["price"]], frame.id
        while len(found) < 400:
            async with stream(here.http, "EXISTS price", last=last) as reader:
                for _ in range(min(dice.randrange(40), 400 - len(found))):
                    frame = await reader.next()
                    assert frame.name == "message"
                    found.append(frame.data["data"]["price"])
                    last = frame.id
        await publishing
        assert found == list(range(400))
