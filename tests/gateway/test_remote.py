"""A gateway of its own, with the broker elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

import vestnik
from gateway.webs import ANYWHERE, quote, stream, until
from vestnik.gateway.app import Gateway
from vestnik.gateway.server import GatewayServer
from vestnik.gateway.settings import GatewaySettings
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address, read_address

JSON = {"content-type": "application/json"}


@asynccontextmanager
async def gateway_of(address: str) -> AsyncIterator[httpx.AsyncClient]:
    gateway = Gateway(lambda token: vestnik.connect(address, token=token, timeout=0.2), GatewaySettings(patience=1))
    async with (
        GatewayServer(gateway, ANYWHERE) as server,
        httpx.AsyncClient(base_url=f"http://{server.address}", timeout=20, trust_env=False) as http,
    ):
        yield http


def broker(listen: Address = ANYWHERE) -> Broker:
    return Broker(Settings(name="b", listen=listen))


async def test_a_stream_outlives_its_broker() -> None:
    async with broker() as first, gateway_of(first.address) as http, stream(http, "EXISTS price") as reader:
        async with vestnik.connect(first.address) as bus:
            await bus.publish(quote(1))
        assert await reader.prices(1) == [1]
        await first.__aexit__()
        async with broker(read_address(first.address)) as second, vestnik.connect(second.address) as bus:
            await until(lambda: bool(second.host.core.clients))
            await bus.publish(quote(2))
            gap, event = await reader.next(), await reader.next()
            assert (gap.name, gap.data["lost"]) == ("gap", None) and gap.data["reason"]
            assert event.id.endswith(".2") and event.data["data"] == {"price": 2}


@pytest.mark.parametrize("path", ["/events?filter=a=1", "/events"])
async def test_without_a_broker_there_is_503(path: str) -> None:
    async with broker() as gone:
        pass
    async with gateway_of(gone.address) as http:
        method = "GET" if "?" in path else "POST"
        answer = await http.request(method, path, headers=JSON, content=b'{"type": "q"}')
        assert answer.status_code == 503 and "no broker at" in answer.json()["error"]


async def test_publishing_goes_on_when_the_broker_is_back() -> None:
    async with broker() as first, gateway_of(first.address) as http:
        assert (await http.post("/events", headers=JSON, content=b'{"type": "q"}')).status_code == 200
        await first.__aexit__()
        assert (await http.post("/events", headers=JSON, content=b'{"type": "q"}')).status_code == 503
        async with broker(read_address(first.address)):
            statuses: list[int] = []
            while not statuses or statuses[-1] != 200:
                statuses.append((await http.post("/events", headers=JSON, content=b'{"type": "q"}')).status_code)
            assert set(statuses) <= {503, 200}
