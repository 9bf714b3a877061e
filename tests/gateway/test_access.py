"""Tokens and rights: the broker decides, and the gateway says it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from starlette.routing import Route
from websockets.asyncio.client import connect

from gateway.test_sockets import Talk, talk
from gateway.webs import SinkServer, quote, stream, world
from network.security import access_file

ACCESS = """
[desk]
tokens = ["{desk}"]
publish = "price < 100"
subscribe = "price < 100"

[admin]
tokens = ["{admin}"]
publish = true
subscribe = true
replay = true
"""
DESK = {"authorization": "Bearer token-of-desk"}


@pytest.fixture
def access(tmp_path: Path) -> Path:
    return access_file(tmp_path, ACCESS, desk="token-of-desk", admin="token-of-admin")


def priced(*prices: float) -> list[dict[str, object]]:
    return [{"type": "q", "data": {"price": price}} for price in prices]


@pytest.mark.parametrize("headers", [{"authorization": ""}, {"authorization": "Bearer wrong"}], ids=["none", "wrong"])
async def test_who_is_not_known_is_told_so(access: Path, headers: dict[str, str]) -> None:
    async with world(access=access, token="token-of-admin") as here, SinkServer() as sink:
        if not headers["authorization"]:
            del here.http.headers["authorization"]
            headers = {}
        hook = {"filter": "TRUE", "sink": sink.url}
        answers = [
            await here.http.post("/events", json=priced(1), headers=headers),
            await here.http.get("/events?filter=TRUE", headers=headers),
            await here.http.post("/subscriptions", json=hook, headers=headers),
            await here.http.get("/subscriptions", headers=headers),
            await here.http.delete("/subscriptions/any", headers=headers),
        ]
        assert [(one.status_code, one.headers["www-authenticate"]) for one in answers] == [(401, "Bearer")] * 5
        for answer in answers:
            assert "Authorization: Bearer TOKEN" in answer.json()["error"]
            assert "VESTNIK" not in answer.json()["error"], "that is for clients of the broker"
        assert sink.got == [], "no sink is asked for who may not subscribe"


async def test_a_token_that_is_known_no_more_lists_nothing(access: Path) -> None:
    async with world(access=access, token="token-of-admin") as here, SinkServer() as sink:
        made = await here.http.post("/subscriptions", json={"filter": "TRUE", "sink": sink.url})
        path = made.headers["location"]
        assert len((await here.http.get("/subscriptions")).json()) == 1
        access.write_text(access.read_text(encoding="utf-8").split("[admin]")[0], encoding="utf-8")
        here.broker.reload()
        async with asyncio.timeout(20):
            while (await here.http.get("/subscriptions")).status_code != 401:
                await asyncio.sleep(0.01)
        assert (await here.http.delete(path)).status_code == 401


async def test_a_right_to_publish_is_bounded(access: Path) -> None:
    async with world(access=access, token="token-of-admin") as here:
        answer = await here.http.post("/events", json=priced(1, 101, 2), headers=DESK)
        assert (answer.status_code, [one["index"] for one in answer.json()["refused"]]) == (207, [1])
        assert (await here.http.post("/events", json=priced(101), headers=DESK)).status_code == 403
        assert (await here.http.post("/events", json=priced(101))).status_code == 200


async def test_a_right_to_subscribe_is_bounded(access: Path) -> None:
    async with world(access=access, token="token-of-admin") as here:
        here.http.headers.update(DESK)
        async with stream(here.http, "EXISTS price") as reader:
            await here.bus.publish_many([quote(1), quote(101), quote(2)])
            assert await reader.prices(2) == [1, 2]
        answer = await here.http.get("/events", params={"filter": "EXISTS price", "replay": "all"})
        assert answer.status_code == 403 and answer.json()["error"]


async def test_a_socket_shows_its_token_in_a_header_or_with_hello(access: Path) -> None:
    async with world(access=access, token="token-of-admin") as here:
        async with talk(here, additional_headers=DESK) as one:
            assert (await one.ask(op="publish", events=priced(1, 101)))["published"] == 1
        async with talk(here) as one:
            assert (await one.ask(op="hello", token="token-of-desk"))["op"] == "accepted"
            assert (await one.ask(op="publish", events=priced(1, 101)))["published"] == 1


async def test_every_route_asks_for_a_token_but_those_that_say_nothing_of_events(access: Path) -> None:
    public = {"/metrics", "/healthz", "/readyz", "/openapi.json", "/ws"}
    async with world(access=access, token="token-of-admin") as here:
        del here.http.headers["authorization"]
        asked = [
            (route.path, method, (await here.http.request(method, route.path)).status_code)
            for route in here.gateway.routes
            if isinstance(route, Route) and route.path not in public
            for method in sorted((route.methods or set()) - {"OPTIONS"})
        ]
        assert len(asked) > 5 and {status for _, _, status in asked} == {401}, asked


async def test_a_socket_that_does_not_say_who_it_is_is_closed(access: Path) -> None:
    async with (
        world(access=access, token="token-of-admin", http_header_seconds=0.05) as here,
        connect(f"ws://{here.address}/ws", proxy=None) as socket,
    ):
        code, reason = await Talk(socket).closed()
        assert code == 1008 and '{"op": "hello", "token": TOKEN}' in reason


@pytest.mark.parametrize("first", [{"op": "hello", "token": "wrong"}, {"op": "subscribe", "filter": "TRUE"}])
async def test_a_socket_without_a_token_that_is_known_is_closed(access: Path, first: dict[str, str]) -> None:
    async with (
        world(access=access, token="token-of-admin") as here,
        connect(f"ws://{here.address}/ws", proxy=None) as socket,
    ):
        await socket.send(json.dumps(first))
        code, reason = await Talk(socket).closed()
        assert code == 1008 and "token" in reason
