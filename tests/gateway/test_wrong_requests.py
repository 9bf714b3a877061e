"""Requests that are wrong in ways of HTTP itself: each is answered, with what to do, and none makes a traceback."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from gateway.webs import PATIENCE, World

UPGRADE = (
    "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def answered(here: World, text: str) -> tuple[int, str]:
    """The status of the answer to some bytes, and the whole answer."""
    host, _, port = here.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text.encode("latin-1"))
    async with asyncio.timeout(PATIENCE):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = int(head.lower().partition("content-length:")[2].split()[0])
        body = (await reader.readexactly(length)).decode()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return int(head.split()[1]), head + body


def request(method: str = "GET", path: str = "/healthz", **headers: str) -> str:
    fields = {"host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return "\r\n".join([f"{method} {path} HTTP/1.1", *[f"{name}: {value}" for name, value in fields.items()], "", ""])


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (request(origin="http://[::1"), 403, "may not use this gateway"),
        (request("POST", "/events", content_type="application/json", content_length="9" * 19), 413, "too large"),
        (request("POST", "/events", content_type="application/json", content_encoding="gzip"), 415, "content-encoding"),
        (request("POST", "/events", content_length="-5"), 400, "Content-Length"),
        ("GET /healthz HTTP/1.1\r\n\r\n", 400, "Host"),
        (request("GET", "/nothing"), 404, "/openapi.json"),
        (request("GET", "/events/?filter=TRUE"), 404, "/openapi.json"),
        (request("PUT", "/events"), 405, "allow: GET, HEAD, OPTIONS, POST"),
        (request("PATCH", "/subscriptions/x"), 405, "it takes DELETE, GET, HEAD"),
        (request("GET", "/events?filter=TRUE&replay=all=1"), 400, "replay"),
        (request("GET", "/events?filter=TRUE&replay=last=1,last=2"), 400, "twice"),
        (UPGRADE.replace("/ws", "/nothing") + "\r\n", 404, "WebSockets are at /ws"),
        (UPGRADE.replace("/ws", "/events") + "\r\n", 404, "WebSockets are at /ws"),
        (UPGRADE.replace("GET", "POST") + "content-length: 2\r\n\r\nab", 400, "no WebSocket can be opened"),
        (UPGRADE + "x: " + "y" * 20_000 + "\r\n\r\n", 400, "no WebSocket can be opened"),
        (UPGRADE + "".join([f"x{n}: 1\r\n" for n in range(300)]) + "\r\n", 400, "no WebSocket can be opened"),
    ],
)
@pytest.mark.asyncio(loop_scope="session")
async def test_it_is_said_what_is_wrong(
    shared: World, caplog: pytest.LogCaptureFixture, text: str, status: int, said: str
) -> None:
    found, answer = await answered(shared, text)
    assert (found, said in answer) == (status, True), answer
    assert "error" in json.loads(answer.partition("\r\n\r\n")[2])
    assert [record for record in caplog.records if record.exc_info] == []


async def test_port_0_is_not_another_port(fresh: World) -> None:
    answer = await fresh.http.post("/subscriptions", json={"filter": "TRUE", "sink": "http://example.org:0/"})
    assert answer.status_code == 403 and "example.org:0" in answer.json()["error"]
