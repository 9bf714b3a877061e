"""A gateway on a free port, the broker behind it, and sinks, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from vestnik import Event
from vestnik.client.bus import Bus
from vestnik.gateway.app import Gateway
from vestnik.gateway.server import GatewayServer
from vestnik.gateway.settings import GatewaySettings
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.services.local import within
from vestnik.transport.addresses import Address

ANYWHERE = Address("127.0.0.1", 0)
PATIENCE = 60.0
"""Seconds to wait for something that will be: a busy machine is slow, and no test is about that."""


class World(NamedTuple):
    """A broker, its gateway, a client of the one, an HTTP client of the other, and what the operator was told."""

    broker: Broker
    gateway: Gateway
    address: str
    bus: Bus
    http: httpx.AsyncClient


@asynccontextmanager
async def world(
    data: Path | None = None, advertisements: bool = False, access: Path | None = None, token: str = "", **settings: Any
) -> AsyncIterator[World]:
    """`settings` are the gateway's; the clients show `token`. Sinks are on this machine unless told otherwise."""
    own = Settings(name="b", data=data, advertisements=advertisements, access=access)
    async with Broker(own, listens=False) as broker:
        terms = GatewaySettings(**{"sinks": ("127.0.0.1",), **settings})
        gateway = Gateway(lambda token: within(broker, token=token), terms, failure=lambda: broker.host.engine.failure)
        async with (
            GatewayServer(gateway, ANYWHERE) as server,
            within(broker, token=token) as bus,
            httpx.AsyncClient(base_url=f"http://{server.address}", timeout=20, trust_env=False) as http,
        ):
            if token:
                http.headers["authorization"] = f"Bearer {token}"
            yield World(broker, gateway, server.address, bus, http)


def quote(price: float, **envelope: Any) -> Event:
    return Event("market.quote", {"price": price}, **envelope)


def cloudevent(id: str, price: float = 1, **attributes: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0", "id": id, "source": "feed", "type": "market.quote", "data": {"price": price}, **attributes
    }  # fmt: skip


class Frame(NamedTuple):
    """An event of a stream; comments have neither a name nor an id."""

    name: str
    id: str
    data: Any


class Reader:
    """Reads Server-Sent Events as they come."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.lines = response.aiter_lines()

    async def next(self) -> Frame:
        """The next event that says something."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self.lines:
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "data" in fields:
                    return Frame(fields.get("event", "message"), fields.get("id", ""), json.loads(fields["data"]))
                else:
                    fields = {}
        raise EOFError

    async def prices(self, count: int) -> list[Any]:
        return [(await self.next()).data["data"]["price"] for _ in range(count)]


@asynccontextmanager
async def stream(http: httpx.AsyncClient, wanted: str, last: str = "", **parameters: str) -> AsyncIterator[Reader]:
    headers = {"last-event-id": last} if last else {}
    async with http.stream("GET", "/events", params={"filter": wanted, **parameters}, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield Reader(response)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that will be."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def measured(http: httpx.AsyncClient, name: str) -> float:
    """What /metrics says, of a measure with its labels."""
    lines = (await http.get("/metrics")).text.splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == name), 0.0)


async def until_measured(http: httpx.AsyncClient, name: str, least: float) -> None:
    async with asyncio.timeout(PATIENCE):
        while await measured(http, name) < least:
            await asyncio.sleep(0.01)


class Got(NamedTuple):
    """A request that a sink got."""

    method: str
    headers: dict[str, str]
    body: Any


class SinkServer:
    """A sink on this machine; `status` is what it answers to events, `allowed` whom it allows to push."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.status = 200
        self.allowed = "vestnik"
        self.patience = 0.0  # seconds until it says whom it allows
        self.more: dict[str, str] = {}
        self.port = 0
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sink?a=1"

    @property
    def prices(self) -> list[Any]:
        """Of the events that it took or refused."""
        posts = [one.body for one in self.got if one.method == "POST"]
        return [body["data"]["price"] for body in posts if body["type"] != "vestnik.gap"]

    @property
    def gaps(self) -> list[str]:
        """Why some are lost, as it was told."""
        posts = [one.body for one in self.got if one.method == "POST"]
        return [body["data"]["reason"] for body in posts if body["type"] == "vestnik.gap"]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def __aenter__(self) -> SinkServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method = head[0].split()[0]
            self.got.append(Got(method, headers, json.loads(body) if body else None))
            await asyncio.sleep(self.patience if method == "OPTIONS" else 0)
            status = self.status if method == "POST" else 200
            more = {"WebHook-Allowed-Origin": self.allowed} if method == "OPTIONS" else {}
            lines = [f"HTTP/1.1 {status} x", "content-length: 0", "connection: close"]
            lines += [f"{name}: {value}" for name, value in {**more, **self.more}.items() if value]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            await writer.drain()
        finally:
            writer.close()
