"""CloudEvents over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.webs import World, cloudevent, measured, world
from vestnik import Event
from vestnik.gateway import bodies

STRUCTURED = {"content-type": "application/cloudevents+json"}
BATCH = {"content-type": "application/cloudevents-batch+json; charset=utf-8"}
BINARY = {"ce-specversion": "1.0", "ce-id": "e1", "ce-source": "feed", "ce-type": "market.quote"}
JSON = {"content-type": "application/json"}


async def published(here: World, headers: dict[str, str], body: bytes) -> tuple[int, Any, list[Event]]:
    """The answer, and the events that a subscriber got."""
    async with await here.bus.subscribe("TRUE") as subscription:
        answer = await here.http.post("/events", headers=headers, content=body)
        await here.bus.publish(Event("last"))
        events: list[Event] = []
        while (event := (await subscription.get(10)).event).type != "last":
            events.append(event)
        return answer.status_code, answer.json(), events


async def test_one_event_in_the_body(fresh: World) -> None:
    event = cloudevent("e1", subject="ACME", priority=7, level=3, causes='[["feed","e0"]]')
    status, said, (found,) = await published(fresh, STRUCTURED, json.dumps(event).encode())
    assert (status, said) == (200, {"published": 1, "refused": [], "refused_count": 0})
    expected = ("e1", "feed", "ACME", 7, {"level": 3}, (("feed", "e0"),), {"price": 1})
    given = found.id, found.source, found.subject, found.priority, found.extensions, found.causes, found.data
    assert given == expected


async def test_one_event_in_headers_and_body(fresh: World) -> None:
    headers = {**BINARY, **JSON, "ce-subject": "caf%C3%A9 %22x%22", "ce-priority": "7", "ce-site": '"a b"'}
    status, _, (found,) = await published(fresh, headers, b'{"price": 3}')
    assert (status, found.subject, found.priority) == (200, 'café "x"', 7)
    assert (found.extensions, found.data) == ({"site": "a b"}, {"price": 3})


async def test_an_event_in_headers_alone(fresh: World) -> None:
    status, _, (found,) = await published(fresh, BINARY, b"")
    assert (status, found.id, found.data) == (200, "e1", {})


async def test_several_events_in_their_order(fresh: World) -> None:
    events = [cloudevent(f"e{number}", number) for number in range(100)]
    status, said, found = await published(fresh, BATCH, json.dumps(events).encode())
    assert (status, said["published"]) == (200, 100)
    assert [event.data["price"] for event in found] == list(range(100))


@pytest.mark.parametrize("body", [b'{"type": "q", "data": {"a": 1}}', b'[{"type": "q", "data": {"a": 1}}]'])
async def test_the_short_form(fresh: World, body: bytes) -> None:
    status, _, (found,) = await published(fresh, JSON, body)
    assert (status, found.type, found.data) == (200, "q", {"a": 1})


async def test_the_same_event_twice_is_published_once(fresh: World) -> None:
    event = cloudevent("e1")
    status, said, found = await published(fresh, BATCH, json.dumps([event, event]).encode())
    assert (status, said["published"], len(found)) == (200, 2, 1)


async def test_a_wrong_event_is_refused_alone(fresh: World) -> None:
    wrong = cloudevent("e2") | {"data": 5}
    events = [cloudevent("e1"), wrong, "no event", cloudevent("e3"), {"type": "q"}]
    status, said, found = await published(fresh, BATCH, json.dumps(events).encode())
    assert (status, said["published"], [event.id for event in found]) == (207, 2, ["e1", "e3"])
    assert [(one["index"], one.get("where", "")) for one in said["refused"]] == [
        (1, "data"),
        (2, ""),
        (4, "specversion"),
    ]


async def test_what_the_broker_refuses_is_refused_by_itself() -> None:
    async with world(advertisements=True) as here:
        events = [cloudevent("e1", 1), cloudevent("e1", 2, source="other"), cloudevent("e2", 3)]
        answer = await here.http.post("/events", headers=BATCH, content=json.dumps(events))
        assert (answer.status_code, answer.json()["published"]) == (403, 0)
        assert [(one["index"], one["id"]) for one in answer.json()["refused"]] == [(0, "e1"), (1, "e1"), (2, "e2")]
        assert "advertised" in answer.json()["refused"][0]["reason"]
        assert await measured(here.http, 'vestnik_gateway_events_refused_total{way="http"}') == 3


@pytest.mark.parametrize(
    ("headers", "body", "status", "where", "reason"),
    [
        (STRUCTURED, b"{", 400, "", "JSON"),
        (STRUCTURED, b"", 400, "", "empty"),
        (STRUCTURED, b"\xff", 400, "", "UTF-8"),
        (STRUCTURED, b"[]", 400, "", "object"),
        (STRUCTURED, b'{"type": "q"}', 400, "specversion", "required"),
        (STRUCTURED, b'{"specversion": "1.0", "id": "1", "type": "q"}', 400, "source", "required"),
        (STRUCTURED, json.dumps(cloudevent("1", time="noon")).encode(), 400, "time", "RFC 3339"),
        (BATCH, b"{}", 400, "", "list"),
        (JSON, b'{"data": {}}', 400, "type", "required"),
        (BINARY | {"ce-id": ""}, b"", 400, "id", "empty"),
        (JSON | {"ce-type": "q", "ce-id": "1"}, b'{"type": "other"}', 400, "ce-specversion", "required"),
        (BINARY | {"ce-subject": "%FF"}, b"", 400, "ce-subject", "UTF-8"),
        (BINARY | {"ce-priority": "high"}, b"", 400, "ce-priority", "integer"),
        (BINARY | {"content-type": "text/plain"}, b"hello", 400, "content-type", "JSON"),
        (BINARY | JSON, b"5", 400, "data", "map"),
        ({"content-type": "text/plain"}, b"hello", 415, "content-type", "text/plain"),
        ({"content-type": "application/json; charset=latin-1"}, b"{}", 415, "content-type", "UTF-8"),
        ({}, b"hello", 415, "content-type", "nothing"),
    ],
)
@pytest.mark.asyncio(loop_scope="session")
async def test_wrong_input_is_refused(
    shared: World, headers: dict[str, str], body: bytes, status: int, where: str, reason: str
) -> None:
    found, said, events = await published(shared, headers, body)
    assert (found, said.get("where", ""), events) == (status, where, [])
    assert reason in said["error"]


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
async def test_a_body_that_is_too_large_is_not_read(chunked: bool) -> None:
    async def chunks() -> Any:
        for _ in range(20):
            yield b" " * 100

    async with world(largest=1000) as here:
        answer = await here.http.post("/events", headers=STRUCTURED, content=chunks() if chunked else b" " * 2000)
        assert answer.status_code == 413 and "1,000 bytes" in answer.json()["error"]
        answer = await here.http.post("/events", headers=STRUCTURED, content=json.dumps(cloudevent("e1")))
        assert answer.status_code == 200


@pytest.mark.parametrize("given", ["Basic abc", "Bearer"])
async def test_another_authorization_is_not_understood(given: str) -> None:
    async with world() as here:
        answer = await here.http.post("/events", headers=JSON | {"authorization": given}, content=b'{"type": "q"}')
        assert (answer.status_code, answer.json()["where"]) == (401, "authorization")


async def test_requests_with_one_token_share_a_client() -> None:
    async with world() as here:
        for token in ("one", "one", "two"):
            headers = JSON | {"authorization": f"Bearer {token}"}
            assert (await here.http.post("/events", headers=headers, content=b'{"type": "q"}')).status_code == 200
        assert len(here.broker.host.guests) == 3


async def test_a_broker_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(patience=0.05) as here:
        await here.http.post("/events", headers=JSON, content=b'{"type": "q"}')
        monkeypatch.setattr(here.broker.host, "received", lambda *_: None)
        answer = await here.http.post("/events", headers=JSON, content=b'{"type": "q"}')
        assert answer.status_code == 503 and "in time" in answer.json()["error"]
        assert answer.headers["retry-after"] == "1"


async def test_what_is_not_there_is_said_in_json() -> None:
    async with world() as here:
        for answer in (await here.http.get("/nothing"), await here.http.delete("/events")):
            assert answer.status_code in (404, 405) and "error" in answer.json()


async def test_a_body_that_is_cut_off_is_no_error_of_the_gateway(
    fresh: World, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = fresh.address.partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await fresh.http.get("/healthz")).status_code == 200
    assert [record for record in caplog.records if record.exc_info] == []


async def test_a_body_that_does_not_come_is_not_waited_for(fresh: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_WITHIN", 0.01)
    host, _, port = fresh.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf")
    assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()
