"""The whole interface over a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from gateway.webs import World, cloudevent, measured, quote, until, world
from vestnik.gateway.conversation import IN_FLIGHT


class Talk:
    """One end of a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, **content: Any) -> None:
        await self.socket.send(json.dumps(content))

    async def next(self) -> Any:
        async with asyncio.timeout(20):
            return json.loads(await self.socket.recv())

    async def ask(self, **content: Any) -> Any:
        """The next thing that is said, after a request."""
        await self.say(**content)
        return await self.next()

    async def closed(self) -> tuple[int, str]:
        """The code and the reason with which it is closed."""
        while True:
            try:
                await self.next()
            except ConnectionClosed as found:
                assert found.rcvd is not None
                return found.rcvd.code, found.rcvd.reason


@asynccontextmanager
async def talk(here: World, **options: Any) -> AsyncIterator[Talk]:
    async with connect(f"ws://{here.address}/ws", proxy=None, **options) as socket:
        yield Talk(socket)


async def test_events_come_with_all_there_is_to_know() -> None:
    async with world() as here, talk(here) as one:
        said = await one.ask(op="subscribe", request=1, filter="price > 10", name="s", handback={"any": ["value"]})
        assert said == {"op": "accepted", "request": 1, "name": "s"}
        await here.bus.publish_many([quote(5), quote(11, source="feed", id="e1")])
        found = await one.next()
        event = found.pop("event")
        assert found == {
            "op": "event", "name": "s", "number": 1, "subscriptions": ["s"], "replayed": False, "gap": None,
            "handback": {"any": ["value"]},
        }  # fmt: skip
        assert (event["id"], event["source"], event["data"]) == ("e1", "feed", {"price": 11})


async def test_publications_are_answered_when_the_broker_has_them() -> None:
    async with world() as here, talk(here) as one:
        subscription = await here.bus.subscribe("TRUE")
        said = await one.ask(op="publish", request="p", events=[cloudevent("e1"), {"type": "q"}, {"no": "event"}])
        assert (said["op"], said["request"], said["published"]) == ("accepted", "p", 2)
        assert [(refused["index"], refused["where"]) for refused in said["refused"]] == [(2, "type")]
        assert [(await subscription.get(10)).event.type for _ in range(2)] == ["market.quote", "q"]
        assert (await one.ask(op="publish", events=[{"type": "q"}], durable=False))["op"] == "accepted"
        assert await measured(here.http, 'vestnik_gateway_events_published_total{way="websocket"}') == 3


async def test_publications_keep_their_order() -> None:
    async with world() as here, talk(here) as one:
        subscription = await here.bus.subscribe("TRUE")
        for number in range(100):
            await one.say(op="publish", request=number, events=[{"type": "q", "data": {"n": number}}])
        assert {(await one.next())["request"] for _ in range(100)} == set(range(100))
        assert [(await subscription.get(10)).event.data["n"] for _ in range(100)] == list(range(100))


async def test_while_many_publications_are_not_answered_no_more_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as here, talk(here, close_timeout=0.1) as one:
        await one.ask(op="subscribe", filter="TRUE")
        monkeypatch.setattr(here.broker.host, "received", lambda *_: None)
        for number in range(100):
            await one.say(op="publish", request=number, events=[{"type": "q"}])
        (conversation,) = here.gateway._sockets._open
        await until(lambda: conversation._room.locked())
        for _ in range(20):
            await here.http.get("/healthz")
        assert len(conversation._tasks) == 1 + IN_FLIGHT


async def test_a_subscription_changes_and_ends() -> None:
    async with world() as here, talk(here) as one:
        await one.ask(op="subscribe", filter="price > 10", name="s")
        assert (await one.ask(op="change", request=2, name="s", filter="price < 10")) == {
            "op": "accepted",
            "request": 2,
        }
        await here.bus.publish_many([quote(11), quote(9)])
        assert (await one.next())["event"]["data"] == {"price": 9}
        both = [await one.ask(op="unsubscribe", request=3, name="s"), await one.next()]
        assert {said["op"] for said in both} == {"accepted", "ended"}
        assert (await one.ask(op="change", request=4, name="s", filter="TRUE"))["op"] == "refused"
        assert (await one.ask(op="subscribe", filter="price > 10", name="s"))["op"] == "accepted"


async def test_the_past(tmp_path: Path) -> None:
    async with world(tmp_path) as here, talk(here) as one:
        await here.bus.publish_many([quote(price) for price in range(10)])
        said = await one.ask(op="fetch", request=1, filter="price < 5", limit=2)
        assert [event["data"]["price"] for event in said["events"]] == [3, 4]
        await one.ask(op="subscribe", filter="EXISTS price", replay={"last": 2})
        found = [await one.next() for _ in range(2)]
        assert [(one["event"]["data"]["price"], one["replayed"]) for one in found] == [(8, True), (9, True)]


async def test_advertisements() -> None:
    async with world(advertisements=True) as here, talk(here) as one:
        assert (await one.ask(op="publish", events=[{"type": "q"}]))["published"] == 0
        name = (await one.ask(op="advertise", filter="type IS q"))["name"]
        assert (await one.ask(op="publish", events=[{"type": "q"}]))["published"] == 1
        assert (await one.ask(op="unadvertise", name=name))["op"] == "accepted"
        assert (await one.ask(op="publish", events=[{"type": "q"}]))["published"] == 0
        assert (await one.ask(op="unadvertise", name=name))["op"] == "refused"


@pytest.mark.parametrize(
    ("text", "request_", "reason"),
    [
        ("{", None, "JSON"),
        ("", None, "empty"),
        ("[]", None, "object"),
        ('{"request": 7}', 7, "op"),
        ('{"op": "dance", "request": "x"}', "x", "dance"),
        ('{"op": "subscribe", "request": 7}', 7, "filter"),
        ('{"op": "subscribe", "request": 7, "filter": "price >"}', 7, "column"),
        ('{"op": "subscribe", "request": 7, "filter": "a = 1", "qeue": 1}', 7, "qeue"),
        ('{"op": "subscribe", "request": 7, "filter": "a = 1", "queue": 0}', 7, "queue"),
        ('{"op": "subscribe", "request": 7, "filter": "a = 1", "overflow": "explode"}', 7, "explode"),
        ('{"op": "subscribe", "request": 7, "filter": "a = 1", "replay": {"first": 1}}', 7, "replay"),
        ('{"op": "fetch", "request": 7, "filter": "a = 1", "limit": 0}', 7, "limit"),
        ('{"op": "fetch", "request": 7, "filter": "a = 1", "since": "noon"}', 7, "RFC 3339"),
        ('{"op": "fetch", "request": 1' + 30 * "0" + ', "filter": "a = 1"}', None, "request"),
        ('{"op": "publish", "request": 7, "events": {}}', 7, "events"),
        ('{"op": "hello", "request": 7, "token": 5}', 7, "token"),
        (b"\x00", None, "text"),
    ],
)
@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_wrong_is_refused_and_the_rest_goes_on(
    shared: World, text: str | bytes, request_: object, reason: str
) -> None:
    async with talk(shared) as one:
        await one.socket.send(text)
        said = await one.next()
        assert (said["op"], said["request"]) == ("refused", request_)
        assert reason in said["reason"]
        assert (await one.ask(op="subscribe", filter="TRUE"))["op"] == "accepted"


async def test_two_subscriptions_of_one_name_are_refused() -> None:
    async with world() as here, talk(here) as one:
        await one.ask(op="subscribe", filter="a = 1", name="s")
        assert "choose another name" in (await one.ask(op="subscribe", filter="b = 1", name="s"))["reason"]


async def test_hello_comes_first() -> None:
    async with world() as here, talk(here) as one:
        assert (await one.ask(op="hello", request=1, token="secret")) == {"op": "accepted", "request": 1}
        assert (await one.ask(op="hello", token="another"))["op"] == "refused"


async def test_a_message_that_is_too_large_ends_the_connection() -> None:
    async with world(largest=1000) as here, talk(here) as one:
        await one.socket.send("x" * 2000)
        code, reason = await one.closed()
        assert code == 1009 and "1000" in reason


async def test_who_reads_too_slowly_is_told_of_a_gap_and_holds_up_nobody() -> None:
    async with world() as here, talk(here, max_queue=1) as slow, talk(here) as quick:
        await slow.ask(op="subscribe", filter="EXISTS n", name="slow", queue=5, overflow="drop-oldest")
        await quick.ask(op="subscribe", filter="EXISTS n", name="quick")
        big = "x" * 100_000
        for n in range(200):
            await here.bus.publish(quote(1).replace(data={"n": n, "big": big}))
            assert (await quick.next())["event"]["data"]["n"] == n
        await here.bus.publish(quote(1).replace(data={"n": -1}))
        numbers, lost = [0], 0
        while numbers[-1] != -1:
            said = await slow.next()
            lost += said["gap"]["lost"] if said["gap"] else 0
            numbers.append(said["event"]["data"]["n"])
        assert lost > 0 and len(numbers) - 1 + lost == 201


async def test_a_subscription_that_overflows_may_end() -> None:
    async with world() as here, talk(here) as one:
        await one.ask(op="subscribe", filter="EXISTS price", name="s", queue=1, overflow="disconnect")
        await here.bus.publish_many([quote(price) for price in range(100)])
        while (said := await one.next())["op"] == "event":
            pass
        assert (said["op"], said["name"]) == ("ended", "s") and "more than 1" in said["reason"]


async def test_a_client_that_leaves_is_forgotten() -> None:
    async with world() as here:
        async with talk(here) as one:
            await one.ask(op="subscribe", filter="TRUE")
            assert len(here.broker.host.guests) == 2
        await until(lambda: len(here.broker.host.guests) == 1)
        assert here.broker.host.core.clients == {}


async def test_there_are_only_so_many_sockets() -> None:
    async with world(connections=1) as here, talk(here) as one:
        await one.ask(op="subscribe", filter="TRUE")
        async with talk(here) as other:
            code, reason = await other.closed()
            assert code == 1013 and "1 sockets" in reason


async def test_a_gateway_that_ends_says_so() -> None:
    async with world() as here, talk(here) as one:
        await one.ask(op="subscribe", filter="TRUE")
        here.gateway.stop()
        code, reason = await one.closed()
        assert code == 1001 and "shutting down" in reason
