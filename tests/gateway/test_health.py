"""A gateway whose broker cannot store what is published."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.webs import cloudevent, measured, world
from network.security import access_file
from network.worlds import logged
from vestnik.cli.edge import behind_gateway
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address

ACCESS = '[desk]\ntokens = ["{desk}"]\npublish = "price < 100"\n'


def refuse(*_: object) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


async def test_a_broker_whose_disk_has_failed_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    anywhere = Address("127.0.0.1", 0)
    async with (
        asyncio.timeout(20),
        behind_gateway(Broker(Settings(name="b", listen=anywhere, data=tmp_path)), anywhere),
    ):
        (listening,) = logged(caplog, "gateway.listening")
        async with httpx.AsyncClient(base_url=f"http://{listening.split()[2]}", trust_env=False, timeout=20) as http:

            async def publish(id: str) -> Any:
                return await http.post("/events", json=[cloudevent(id)])

            assert (await publish("e1")).status_code == 200
            assert (await http.get("/readyz")).status_code == 200
            assert await measured(http, "vestnik_broker_store_failed") == 0
            monkeypatch.setattr(os, "fdatasync", refuse)
            assert (await publish("e2")).status_code == 500
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert "Input/output error" in ready.json()["waits"][0]
            refused = await publish("e3")
            assert refused.status_code == 503 and "retry-after" in refused.headers
            assert "Input/output error" in refused.json()["refused"][0]["reason"]
            assert await measured(http, "vestnik_broker_store_failed") == 1
            assert (await http.get("/healthz")).status_code == 200
            monkeypatch.undo()


async def test_without_a_right_it_is_403_whatever_the_disk_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = access_file(tmp_path, ACCESS, desk="token-of-desk")
    async with world(data=tmp_path / "data", access=access, token="token-of-desk") as here:
        monkeypatch.setattr(os, "fdatasync", refuse)
        for id, price, status in (("e1", 1, 500), ("e2", 1, 503), ("e3", 200, 403)):
            answer = await here.http.post("/events", json=[cloudevent(id, price)])
            assert answer.status_code == status, answer.json()
        monkeypatch.undo()
