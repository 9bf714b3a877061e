"""How many values a request may have, and how much of all requests is read and held at once."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from gateway.test_sockets import talk
from gateway.webs import world
from vestnik.gateway.bodies import read_body
from vestnik.gateway.turns import Quota, most_values, values_in_json

JSON = {"content-type": "application/json"}
WITHIN = 20.0
COMMAS = json.dumps({"type": "q", "data": {"text": ',:[{\\"' * 3_000}}).encode()
"""One event, in which a cheap count finds 12,000 values and more."""


def counted(value: Any) -> int:
    match value:
        case dict():
            return 1 + len(value) + sum(map(counted, value.values()))
        case list():
            return 1 + sum(map(counted, value))
    return 1


@pytest.mark.parametrize(
    "value",
    [
        0,
        "a,b",
        [],
        {},
        [[], {}],
        [{}] * 5,
        [["a,"], {}] * 3_000,
        {"a": 1, "b,": [1, 2, {"c:": None}]},
        ["[", "{", '"', "\\", '\\"', "]"],
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_values_are_counted_exactly(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert values_in_json(text) == counted(value) <= most_values(text)


def test_empty_containers_with_space_inside_are_counted_once() -> None:
    assert values_in_json("[ [ ] , {\n} ]") == 3


def test_a_text_that_breaks_off_in_a_string_is_counted_up_to_there() -> None:
    assert values_in_json('[1, "a,,,,') == 3


async def test_a_request_has_only_so_many_values() -> None:
    async with world(values=1_000) as here:
        many = json.dumps({"type": "q", "data": {"x": [{}] * 1_000}}).encode()
        answer = await here.http.post("/events", content=many, headers=JSON)
        assert answer.status_code == 413 and "limits.values = 1,000" in answer.json()["error"]
        answer = await here.http.post("/subscriptions", content=many, headers=JSON)
        assert answer.status_code == 413
        async with talk(here) as one:
            said = await one.ask(op="publish", events=[{"type": "q", "data": {"x": [{}] * 1_000}}])
            assert said["op"] == "refused" and "limits.values = 1,000" in said["reason"]
            assert (await one.ask(op="publish", events=[{"type": "q"}]))["published"] == 1


async def test_what_strings_contain_is_not_counted() -> None:
    async with world(values=1_000) as here:
        assert most_values(COMMAS.decode()) > 1_000
        assert (await here.http.post("/events", content=COMMAS, headers=JSON)).status_code == 200
        async with talk(here) as one:
            assert (await one.ask(op="publish", events=[json.loads(COMMAS)]))["published"] == 1


async def test_a_body_is_not_read_before_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.gateway.turns.BODIES", 2)
    reading: list[bytes] = []
    may_go_on = asyncio.Event()

    async def slowly(request: Any, largest: int) -> bytes:
        reading.append(b"")
        await may_go_on.wait()
        return await read_body(request, largest)

    monkeypatch.setattr("vestnik.gateway.turns.read_body", slowly)
    large = json.dumps({"type": "q", "data": {"x": "y" * 15_000}}).encode()
    async with world(largest=len(large)) as here, asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        first, second = [group.create_task(here.http.post("/events", content=large, headers=JSON)) for _ in range(2)]
        while not reading:
            await asyncio.sleep(0.01)
        for _ in range(20):
            await here.http.get("/healthz")
        assert len(reading) == 1, "one token has half of the room"
        may_go_on.set()
        assert [(await one).status_code for one in (first, second)] == [200, 200]


async def test_a_request_that_gets_no_room_in_time_is_told_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.gateway.turns.BODIES", 2)
    large = json.dumps({"type": "q", "data": {"x": "y" * 15_000}}).encode()
    async with world(largest=len(large), patience=0.1) as here:
        await here.http.post("/events", content=b'{"type": "q"}', headers=JSON)
        host, _, port = here.address.partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        lines = ["POST /events HTTP/1.1", "host: localhost", "content-type: application/json"]
        writer.write("\r\n".join([*lines, f"content-length: {len(large)}", "", "{"]).encode())
        await writer.drain()
        async with asyncio.timeout(WITHIN):
            while (answer := await here.http.post("/events", content=large, headers=JSON)).status_code == 200:
                await asyncio.sleep(0.01)
        assert answer.status_code == 503 and "no room" in answer.json()["error"]
        assert answer.headers["retry-after"] == "1"
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def test_room_is_given_in_order_and_an_owner_has_a_share() -> None:
    async with asyncio.timeout(WITHIN):
        quota, order = Quota(4, 2), list[str]()

        async def take(name: str, size: int, owner: str) -> None:
            with await quota.take(size, owner):
                order.append(name)
                await asyncio.sleep(0)

        first = await quota.take(2, "a")
        waiting = [asyncio.create_task(take(*one)) for one in [("a2", 1, "a"), ("b", 5, "b"), ("c", 2, "c")]]
        await asyncio.sleep(0)
        assert order == ["b"], "a has its share, c does not fit beside b"
        waiting[0].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert order == ["b", "c"]
        first.close()
        first.close()
        assert (quota._taken, quota._waiting, +quota._owners) == (0, {}, {})


async def test_a_cancelled_turn_gives_its_room_back() -> None:
    quota = Quota(1, 1)
    taken = await quota.take(1, "a")
    waiting = asyncio.create_task(quota.take(1, "b"))
    await asyncio.sleep(0)
    taken.close()  # the turn is granted, and cancelled before it is taken
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (quota._taken, quota._waiting) == (0, {})


async def test_an_owner_that_waits_for_its_own_share_holds_up_nobody() -> None:
    quota = Quota(1_000, 500)
    await quota.take(500, "a")
    await quota.take(1, "b")
    second = asyncio.ensure_future(quota.take(500, "a"))
    await asyncio.sleep(0)
    await quota.take(10, "c")
    second.cancel()
