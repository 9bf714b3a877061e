"""The log of the gateway: refusals with the remote address, and web hooks that fail."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from gateway.test_sockets import Talk, talk
from gateway.webs import PATIENCE, SinkServer, World, quote, until, world
from network.security import access_file

ACCESS = '[desk]\ntokens = ["{desk}"]\npublish = "price < 100"\nsubscribe = true\n'
TOKEN = "token-of-desk"


def records(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    """The fields of each record with this event."""
    return [one["fields"] for one in (record.__dict__ for record in caplog.records) if one.get("event") == event]


async def raw(here: World, text: bytes) -> bytes:
    host, _, port = here.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text)
    async with asyncio.timeout(PATIENCE):
        answer = await reader.readline()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return answer


async def test_refusals_are_logged_with_the_address(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    access = access_file(tmp_path, ACCESS, desk=TOKEN)
    async with world(access=access, token=TOKEN, largest=2_000, http_header_seconds=0.2) as here:
        dear = {"type": "q", "data": {"price": 200}}
        assert (await here.http.post("/events", json=dear)).status_code == 403
        assert (await here.http.post("/events", json={"type": 5})).status_code == 400
        assert (await here.http.post("/events", json={"type": "x" * 3_000})).status_code == 413
        assert (await here.http.get("/events?filter=secret", headers={"host": "evil.example"})).status_code == 421
        assert (await here.http.get("/nothing")).status_code == 404
        assert (await here.http.post("/events", headers={"authorization": "Bearer no"})).status_code == 401
        assert (await raw(here, b"GET / HT")).split()[1] == b"408"
        async with connect(f"ws://{here.address}/ws", proxy=None) as socket:
            assert (await Talk(socket).closed())[0] == 1008
        found = {one["status"]: one for one in records(caplog, "gateway.refused")}
    assert found.keys() == {400, 401, 403, 404, 408, 413, 421, 1008}
    assert all(one["peer"].startswith("127.0.0.1:") and one["count"] == 1 for one in found.values())
    assert found[401]["request"] == "POST /events" and "Authorization" in found[401]["reason"]
    assert found[421]["request"] == "GET /events", "without the parameters"
    assert "right" in found[403]["reason"] and "2,000 bytes" in found[413]["reason"]
    assert found[1008]["request"] == "WebSocket /ws" and "hello" in found[1008]["reason"]


async def test_what_is_no_http_is_refused_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with world() as here:
        for _ in range(5):
            assert (await raw(here, b"\x16\x03\x01 this is no HTTP\r\n\r\n")).split()[1] == b"400"
        assert len(records(caplog, "gateway.refused")) == 1
    assert [one["count"] for one in records(caplog, "gateway.refused")] == [1, 4]
    assert "Invalid HTTP" not in caplog.text


async def test_wrong_messages_of_a_socket_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with world() as here, talk(here) as one:
        assert (await one.ask(op="subscribe", filter="price >"))["op"] == "refused"
        (found,) = records(caplog, "gateway.refused")
        assert (found["status"], found["request"]) == (400, "WebSocket /ws") and "column" in found["reason"]


@pytest.mark.parametrize(("frame", "code"), [(b"\x81\x82\0\0\0\0\xff\xff", 1007), (b"\x81\x05hello", 1002)])
async def test_what_is_no_message_of_a_socket_is_logged(
    caplog: pytest.LogCaptureFixture, frame: bytes, code: int
) -> None:
    async with world() as here, talk(here) as one:
        one.socket.transport.write(frame)
        assert (await one.closed())[0] == code
        await until(lambda: bool(records(caplog, "gateway.refused")))
        (found,) = records(caplog, "gateway.refused")
        assert (found["status"], found["request"]) == (code, "WebSocket /ws") and found["reason"]
    assert [record for record in caplog.records if record.exc_info] == []


async def test_a_flood_of_refusals_is_few_records(caplog: pytest.LogCaptureFixture) -> None:
    async with world() as here:
        for _ in range(50):
            await here.http.get("/nothing")
        assert len(records(caplog, "gateway.refused")) == 1
    assert [one["count"] for one in records(caplog, "gateway.refused")] == [1, 49]


async def test_web_hooks_that_fail_or_end_are_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.gateway.pushing.FIRST_PAUSE", 0.01)
    async with world() as here, SinkServer() as sink:
        made = await here.http.post("/subscriptions", json={"filter": "TRUE", "sink": sink.url})
        id = made.json()["id"]
        sink.status = 500
        await here.bus.publish(quote(1))
        await until(lambda: len(sink.prices) > 1)
        (found,) = records(caplog, "webhook.failing")
        assert found == {"count": 1, "id": id, "sink": sink.url, "reason": "the sink answered 500"}
        assert records(caplog, "webhook.ended") == []
        sink.status = 410
        await until(lambda: bool(records(caplog, "webhook.ended")))
        (found,) = records(caplog, "webhook.ended")
        assert (found["id"], found["sink"]) == (id, sink.url) and "410" in found["reason"]
