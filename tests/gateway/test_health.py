"""A gateway whose broker cannot store what is published."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.webs import cloudevent, measured, quote, until, world
from network.security import access_file
from network.worlds import logged
from vestnik import Event
from vestnik.broker.effects import GapTold
from vestnik.cli.edge import behind_gateway
from vestnik.cli.readings import NAMES
from vestnik.errors import NotAccepted
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.services.local import within
from vestnik.transport.addresses import Address
from vestnik.wire.messages import Gap

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


async def metrics(caplog: pytest.LogCaptureFixture) -> str:
    (listening, *_) = logged(caplog, "gateway.listening")
    async with httpx.AsyncClient(base_url=f"http://{listening.split()[2]}", trust_env=False, timeout=20) as http:
        return (await http.get("/metrics")).text


async def test_a_broker_tells_how_far_subscriptions_lag_what_waits_and_how_long_things_take(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    anywhere = Address("127.0.0.1", 0)
    broker = Broker(Settings(name="b", listen=anywhere, data=tmp_path))
    async with asyncio.timeout(20), behind_gateway(broker, anywhere), within(broker, name="c") as c:
        await c.subscribe("price > 0", name="s", queue=2)
        await c.publish_many([quote(price) for price in range(1, 11)])
        with pytest.raises(NotAccepted):
            await c.publish(Event("vestnik.mine"))
        await until(lambda: broker.host.measures.loop_lag.total > 0)
        broker.host.counts.take([GapTold("c", "s", Gap("b/1", 1, 2, "gone"))], 0.0)
        text = await metrics(caplog)
    lines = text.splitlines()
    (lag,) = [line for line in lines if line.startswith("vestnik_broker_subscription_lag_offsets{")]
    assert lag.startswith('vestnik_broker_subscription_lag_offsets{client="c",subscription="s"} ')
    assert f"vestnik_broker_lag_offsets {lag.split()[-1]}" in lines and float(lag.split()[-1]) > 0
    for line in (
        "vestnik_broker_subscriptions_lagging 1.0",
        "vestnik_broker_events_taken_total 10.0",
        "vestnik_broker_events_refused_total 1.0",
        "vestnik_broker_requests_refused_total 0.0",
        "vestnik_broker_gaps_total 1.0",
        'vestnik_broker_queue_events{queue="storing"} 0.0',
        'vestnik_broker_queue_events{queue="routing"} 0.0',
        'vestnik_broker_queue_bytes{to="clients"} 0.0',
    ):
        assert line in lines
    for name in ("loop_lag", "fsync"):
        (count,) = [line for line in lines if line.startswith(f"vestnik_broker_{name}_seconds_count ")]
        assert float(count.split()[1]) > 0
        assert f'vestnik_broker_{name}_seconds_bucket{{le="+Inf"}} {count.split()[1]}' in lines


async def test_names_of_clients_are_not_for_everybody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    anywhere = Address("127.0.0.1", 0)
    access = access_file(tmp_path, '[desk]\ntokens = ["{desk}"]\nsubscribe = "TRUE"\npublish = "TRUE"\n', desk="token")
    broker = Broker(Settings(name="b", listen=anywhere, access=access))
    async with asyncio.timeout(20), behind_gateway(broker, anywhere), within(broker, token="token") as c:
        await c.subscribe("price > 0", name="s", queue=2)
        await c.publish_many([quote(price) for price in range(1, 11)])
        text = await metrics(caplog)
    assert "vestnik_broker_subscriptions_lagging 1.0" in text and "subscription_lag_offsets" not in text


def test_every_metric_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/operating.md").read_text(encoding="utf-8")
    assert [name for name in NAMES.values() if f"`vestnik_broker_{name}_total`" not in guide] == []


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
