"""Who is let in."""

from __future__ import annotations

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from gateway.webs import world
from vestnik.errors import InvalidSetting
from vestnik.gateway.settings import GatewaySettings

EVENT = b'{"type": "q"}'
JSON = {"content-type": "application/json"}
FRIEND, STRANGER = "https://friend.example", "https://stranger.example"


@pytest.mark.parametrize("origin", [STRANGER, "null", "http://127.0.0.1:1", "nonsense"])
async def test_pages_of_other_sites_are_refused(origin: str) -> None:
    async with world(origins=(FRIEND,)) as here:
        subscription = await here.bus.subscribe("TRUE")
        answer = await here.http.post("/events", headers=JSON | {"origin": origin}, content=EVENT)
        assert (answer.status_code, answer.json()["where"]) == (403, "origin")
        assert "access-control-allow-origin" not in answer.headers
        assert (await here.http.get("/events?filter=a=1", headers={"origin": origin})).status_code == 403
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{here.address}/ws", origin=Origin(origin), proxy=None).__aenter__()
        assert refused.value.response.status_code == 403
        assert subscription.try_get() is None


async def test_own_pages_are_let_in() -> None:
    async with world() as here:
        own = f"http://{here.address}"
        assert (await here.http.post("/events", headers=JSON | {"origin": own}, content=EVENT)).status_code == 200
        async with connect(f"ws://{here.address}/ws", origin=Origin(own), proxy=None) as socket:
            await socket.send('{"op": "subscribe", "filter": "TRUE"}')
            assert "accepted" in str(await socket.recv())


async def test_pages_of_an_allowed_site_are_let_in() -> None:
    async with world(origins=(FRIEND,)) as here:
        asks = {"origin": FRIEND, "access-control-request-method": "POST"}
        permission = await here.http.options("/events", headers=asks)
        assert (permission.status_code, permission.headers["access-control-allow-origin"]) == (204, FRIEND)
        assert "POST" in permission.headers["access-control-allow-methods"]
        answer = await here.http.post("/events", headers=JSON | {"origin": FRIEND}, content=EVENT)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, FRIEND)
        assert "origin" in answer.headers["vary"]
        async with connect(f"ws://{here.address}/ws", origin=Origin(FRIEND), proxy=None) as socket:
            await socket.send('{"op": "subscribe", "filter": "TRUE"}')
            assert "accepted" in str(await socket.recv())


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("stranger.example", 421),
        ("127.0.0.1.stranger.example:80", 421),
        ("[nonsense", 421),
        ("localhost:5", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("friend.example", 200),
    ],
)
async def test_only_to_names_of_its_own_it_answers(host: str, status: int) -> None:
    async with world(origins=(FRIEND,)) as here:
        assert (await here.http.get("/healthz", headers={"host": host})).status_code == status


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("origins", ("friend.example",)),
        ("origins", ("https://a/b",)),
        ("origins", ("*",)),
        ("largest", 0),
        ("lease", 0),
    ],
)
def test_settings_that_cannot_be(name: str, value: object) -> None:
    with pytest.raises(InvalidSetting, match=name):
        GatewaySettings(**{name: value})  # type: ignore[arg-type]
