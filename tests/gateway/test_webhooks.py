"""Webhooks: a real sink on this machine is pushed to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.webs import SinkServer, World, quote, until, until_measured, world
from vestnik.client import bus
from vestnik.client.subscriptions import Subscription
from vestnik.errors import InvalidSetting
from vestnik.gateway import handshake, pushing, webhooks
from vestnik.gateway.hooks import HookFile


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(pushing, "LONGEST_PAUSE", 0.05)


async def made(here: World, sink: SinkServer, wanted: str = "EXISTS price", **more: Any) -> str:
    """The path of a new webhook."""
    answer = await here.http.post("/subscriptions", json={"filter": wanted, "sink": sink.url, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


async def test_events_are_pushed_in_order() -> None:
    async with world() as here, SinkServer() as sink:
        path = await made(here, sink, "price > 10", token="for the sink")
        asked = sink.got.pop()
        assert (asked.method, asked.headers["webhook-request-origin"]) == ("OPTIONS", "vestnik")
        await here.bus.publish_many([quote(5), *(quote(price, source="feed") for price in range(11, 31))])
        await until(lambda: len(sink.got) == 20)
        assert sink.prices == list(range(11, 31))
        first = sink.got[0]
        assert first.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
        assert (first.headers["authorization"], first.body["source"]) == ("Bearer for the sink", "feed")
        await until_measured(here.http, 'vestnik_gateway_notifications_delivered_total{way="webhook"}', 20)
        said = (await here.http.get(path)).json()
        assert (said["state"], said["delivered"], said["filter"]) == ("active", 20, "price > 10")
        assert "for the sink" not in str(said)


async def test_a_sink_that_was_away_gets_everything() -> None:
    async with world() as here, SinkServer() as sink:
        path = await made(here, sink)
        await here.bus.publish(quote(1))
        await until(lambda: sink.prices == [1])
        await sink.stop()
        await here.bus.publish_many([quote(2), quote(3)])
        await until_measured(here.http, 'vestnik_gateway_webhook_attempts_total{outcome="failed"}', 2)
        said = (await here.http.get(path)).json()
        assert said["state"] == "failing" and said["reason"]
        await sink.start()
        await until(lambda: sink.prices == [1, 2, 3])


@pytest.mark.parametrize("status", [500, 429, 302, 404])
async def test_what_a_sink_does_not_take_is_tried_again(status: int) -> None:
    async with world() as here, SinkServer() as sink:
        await made(here, sink)
        sink.status = status
        await here.bus.publish_many([quote(1), quote(2)])
        await until(lambda: len(sink.prices) >= 3)
        assert set(sink.prices) == {1}
        sink.status = 204
        await until(lambda: sink.prices[-1] == 2)


async def test_a_sink_that_wants_to_be_left_alone_is() -> None:
    async with world() as here, SinkServer() as sink:
        await made(here, sink)
        sink.status, sink.more = 503, {"retry-after": "1000"}
        await here.bus.publish(quote(1))
        await until_measured(here.http, 'vestnik_gateway_webhook_attempts_total{outcome="failed"}', 1)
        sink.status = 200
        for _ in range(20):
            await here.http.get("/healthz")
        assert sink.prices == [1]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("9" * 500, 3600, 3600),
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", 0, 0),
        ("", 0, 0),
        ("7", 7, 7),
        ("99999999", 3600, 3600),
        ("soon", 0, 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
    ],
)
def test_the_wishes_of_a_sink(text: str, least: float, most: float) -> None:
    assert least <= pushing._wish(text) <= most


async def test_an_event_that_the_sink_refuses_is_passed_over_and_told() -> None:
    async with world() as here, SinkServer() as sink:
        path = await made(here, sink)
        sink.status = 422
        await here.bus.publish(quote(1))
        await until(lambda: len(sink.prices) == 1)
        sink.status = 200
        await here.bus.publish(quote(2))
        await until(lambda: sink.prices == [1, 2])
        gap = sink.got[-2].body
        assert (gap["type"], gap["data"]) == ("vestnik.gap", {"lost": 1, "reason": "the sink refused them"})
        await until_measured(here.http, 'vestnik_gateway_notifications_delivered_total{way="webhook"}', 1)
        said = (await here.http.get(path)).json()
        assert (said["delivered"], said["refused"], said["lost"]) == (1, 1, 1)


async def test_a_sink_that_is_gone_ends_the_subscription() -> None:
    async with world() as here, SinkServer() as sink:
        path = await made(here, sink)
        sink.status = 410
        await here.bus.publish(quote(1))
        await until(lambda: len(here.broker.host.guests) == 2)  # this test, and the session of HTTP requests
        said = (await here.http.get(path)).json()
        assert said["state"] == "ended" and "410" in said["reason"]
        assert (await here.http.delete(path)).status_code == 204


async def test_a_webhook_is_listed_and_deleted() -> None:
    async with world() as here, SinkServer() as sink:
        path = await made(here, sink)
        assert [one["sink"] for one in (await here.http.get("/subscriptions")).json()] == [sink.url]
        assert (await here.http.delete(path)).status_code == 204
        assert (await here.http.get("/subscriptions")).json() == []
        assert [(await here.http.get(path)).status_code, (await here.http.delete(path)).status_code] == [404, 404]
        assert not any(client.subscriptions for client in here.broker.host.core.clients.values())


async def test_a_webhook_that_has_ended_makes_room_for_another() -> None:
    async with world(webhooks=1) as here, SinkServer() as sink:
        for number in range(3):
            path = await made(here, sink)
            full = await here.http.post("/subscriptions", json={"filter": "EXISTS price", "sink": sink.url})
            assert (full.status_code, "1 webhooks" in full.json()["error"]) == (503, True)
            sink.status = 410
            await here.bus.publish(quote(number))
            while (await here.http.get(path)).json()["state"] != "ended":
                await asyncio.sleep(0.01)
            sink.status = 200
        assert [one["state"] for one in (await here.http.get("/subscriptions")).json()] == ["ended", "ended"]


async def test_a_webhook_is_for_who_made_it() -> None:
    async with world() as here, SinkServer() as sink:
        path = await made(here, sink)
        other = {"authorization": "Bearer other"}
        assert (await here.http.get("/subscriptions", headers=other)).json() == []
        assert (await here.http.delete(path, headers=other)).status_code == 404
        assert (await here.http.get(path)).status_code == 200


@pytest.mark.parametrize(
    ("wanted", "status", "where", "reason"),
    [
        ({"filter": "a = 1"}, 400, "", "sink"),
        ({"filter": "a = 1", "sink": 5}, 400, "sink", "str"),
        ({"filter": "a = 1", "sink": "http://127.0.0.1:1/", "mode": "x"}, 400, "", "mode"),
        ({"x` - at `$.filter.y": 1}, 400, "filter.y", "unknown field"),
        ({"x" * 100_000: 1}, 400, "", "xxx..."),
        ({"filter": "a >", "sink": "http://127.0.0.1:1/"}, 400, "filter", "column"),
        ({"filter": "a = 1", "sink": "ftp://127.0.0.1/"}, 400, "sink", "ftp"),
        ({"filter": "a = 1", "sink": "file:///etc/passwd"}, 400, "sink", "file"),
        ({"filter": "a = 1", "sink": "http:///x"}, 400, "sink", "host"),
        ({"filter": "a = 1", "sink": "http://127.0.0.1:99999/"}, 400, "sink", "ort"),
        ({"filter": "a = 1", "sink": "http://u:p@127.0.0.1/"}, 400, "sink", "user"),
        ({"filter": "a = 1", "sink": "http://127.0.0.1/a b"}, 400, "sink", "spaces"),
        ({"filter": "a = 1", "sink": "http://example.org/"}, 403, "sink", "example.org"),
        ({"filter": "a = 1", "sink": "http://169.254.1.1/"}, 403, "sink", "169.254.1.1"),
        ({"filter": "a = 1", "sink": "http://127.0.0.1:1/"}, 422, "sink", "did not agree"),
        ({"filter": "a = 1", "sink": "http://127.0.0.1/\x7f"}, 400, "sink", "ASCII"),
        ({"filter": "a = 1", "sink": "http://localhost:9000/"}, 403, "sink", "--sink localhost:9000"),
        ({"filter": "a = 1", "sink": "http://127.0.0.1:1/", "replay": "x"}, 400, "replay", "known are all, last"),
        ({"filter": "a = 1", "sink": "http://127.0.0.1:1/", "token": "a\nb"}, 400, "token", "ASCII"),
        *(
            ({"filter": "a = 1", "sink": "http://127.0.0.1:1/", "token": token}, 400, "token", "no space at either end")
            for token in ("", " ", " a", "a\t", "é", "\x00", "a" * 4097)
        ),
    ],
)
@pytest.mark.asyncio(loop_scope="session")
async def test_wrong_webhooks_are_refused(
    shared: World, wanted: dict[str, Any], status: int, where: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "AGREE_WITHIN", 0.5)
    answer = await shared.http.post("/subscriptions", json=wanted)
    assert (answer.status_code, answer.json().get("where", "")) == (status, where)
    assert reason in answer.json()["error"]


@pytest.mark.parametrize(("allowed", "fits"), [("*", True), ("vestnik", True), ("", False), ("other", False)])
async def test_a_sink_must_agree(allowed: str, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "AGREE_WITHIN", 20.0 if fits else 0.5)
    async with world() as here, SinkServer() as sink:
        sink.allowed = allowed
        answer = await here.http.post("/subscriptions", json={"filter": "a = 1", "sink": sink.url})
        assert answer.status_code == (201 if fits else 422)
        assert fits or "did not agree" in answer.json()["error"]


@pytest.mark.parametrize(
    ("rate", "status"),
    [("*", 201), ("600", 201), ("9" * 500, 201), ("0" * 500 + "60", 201), ("many", 422), ("0", 422), ("-1", 422)],
    ids=["any", "600", "500 digits", "zeros before", "a word", "zero", "negative"],
)
async def test_a_sink_may_allow_a_rate(rate: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "AGREE_WITHIN", 20.0 if status == 201 else 0.5)
    async with world() as here, SinkServer() as sink:
        sink.more = {"WebHook-Allowed-Rate": rate}
        answer = await here.http.post("/subscriptions", json={"filter": "a = 1", "sink": sink.url})
        assert answer.status_code == status


async def test_a_host_may_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "AGREE_WITHIN", 0.5)
    async with world(sinks=("example.invalid",)) as here:
        wanted = {"filter": "a = 1", "sink": "http://example.invalid/"}
        answer = await here.http.post("/subscriptions", json=wanted)
        assert answer.status_code == 422 and "did not agree" in answer.json()["error"]


async def test_there_are_only_so_many_webhooks() -> None:
    async with world(webhooks=1) as here, SinkServer() as sink:
        path = await made(here, sink)
        answer = await here.http.post("/subscriptions", json={"filter": "a = 1", "sink": sink.url})
        assert answer.status_code == 503 and "1 webhooks" in answer.json()["error"]
        await here.http.delete(path)
        await made(here, sink)


async def test_what_is_too_much_for_a_sink_stays_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "QUEUE", 2)
    async with world() as here, SinkServer() as sink:
        await made(here, sink)
        sink.status = 500
        await here.bus.publish_many([quote(price) for price in range(20)])
        await until(lambda: len(sink.prices) >= 2)
        assert set(sink.prices) == {0}
        sink.got.clear()
        sink.status = 200
        await until(lambda: bool(sink.prices) and sink.prices[-1] == 19)
        assert (list(dict.fromkeys(sink.prices)), sink.gaps) == (list(range(20)), [])


async def test_what_a_full_log_in_memory_dropped_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "QUEUE", 2)
    async with world() as here, SinkServer() as sink:
        await made(here, sink)
        here.broker.host.core.recovery.tail.room = 1  # the last event stays
        sink.status = 500
        await here.bus.publish_many([quote(price) for price in range(20)])
        await until(lambda: len(sink.prices) >= 2)
        sink.status = 200
        await until(lambda: bool(sink.prices) and sink.prices[-1] == 19)
        assert list(dict.fromkeys(sink.prices)) == [0, 1, 19]
        (gap,) = [one.body["data"] for one in sink.got if one.body and one.body["type"] == "vestnik.gap"]
        assert gap["lost"] is None and "in memory" in gap["reason"]


async def test_webhooks_outlive_the_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "RETRY", 0.01)
    file = tmp_path / "webhooks.json"
    async with SinkServer() as sink:
        async with world(tmp_path, hooks=file) as here:
            path = await made(here, sink, "EXISTS price", token="for the sink")
            await here.bus.publish(quote(1))
            await until(lambda: sink.prices == [1])
            sink.status = 500
            await here.bus.publish_many([quote(2, time="2020-01-01T00:00:00Z"), quote(3)])
            await until(lambda: sink.prices[-1] == 2)
        assert file.stat().st_mode & 0o777 == 0o600
        sink.status = 200
        sink.got.clear()
        async with world(tmp_path, hooks=file) as here:
            await until(lambda: sink.prices[-2:] == [2, 3])
            first = sink.got[0]
            assert (first.body["type"], first.body["data"]["lost"]) == ("vestnik.gap", None)
            assert (
                "restarted" in first.body["data"]["reason"] and first.headers["authorization"] == "Bearer for the sink"
            )
            await here.bus.publish(quote(4))
            await until(lambda: sink.prices[-1] == 4)
            assert (await here.http.delete(path)).status_code == 204
        assert file.read_bytes() == b"[]"


async def test_what_came_while_the_sink_was_asked_is_not_taken_to_be_pushed(tmp_path: Path) -> None:
    file = tmp_path / "webhooks.json"
    async with SinkServer() as sink:
        async with world(tmp_path, hooks=file) as here:
            sink.patience, sink.status = 0.5, 500
            making = asyncio.create_task(made(here, sink))
            await until(lambda: bool(sink.got))
            await here.bus.publish_many([quote(1), quote(2)])
            await making
            await until(lambda: bool(sink.prices))
        assert set(sink.prices) == {1}  # again and again, and nothing else
        sink.status = 200
        async with world(tmp_path, hooks=file):
            await until(lambda: sink.prices[-2:] == [1, 2])


async def test_a_replay_that_was_not_pushed_to_the_end_begins_again(tmp_path: Path) -> None:
    file = tmp_path / "webhooks.json"
    async with SinkServer() as sink:
        async with world(tmp_path, hooks=file) as here:
            await here.bus.publish_many([quote(price) for price in range(1, 6)])
            sink.status = 500
            await made(here, sink, replay="all")
            await until(lambda: bool(sink.prices))
        sink.status = 200
        async with world(tmp_path, hooks=file):
            await until(lambda: sink.prices[-5:] == [1, 2, 3, 4, 5])


@pytest.mark.parametrize("replay", ["last=2", "latest_by=type"])
async def test_what_came_behind_a_replay_that_picks_is_not_left_out(tmp_path: Path, replay: str) -> None:
    """To pick again would be to pick other events, and to leave out what lies between."""
    file = tmp_path / "webhooks.json"
    async with SinkServer() as sink:
        async with world(tmp_path, hooks=file) as here:
            await here.bus.publish_many([quote(price) for price in range(1, 6)])
            sink.status = 500
            await made(here, sink, replay=replay)
            await until(lambda: bool(sink.prices))
            await here.bus.publish_many([quote(price) for price in range(6, 11)])
        sink.status = 200
        async with world(tmp_path, hooks=file):
            await until(lambda: sink.prices[-5:] == [6, 7, 8, 9, 10])
        assert any("may not have come in full" in reason for reason in sink.gaps)


async def test_a_gap_behind_which_nothing_comes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "QUIET", 0.01)
    made_by: list[Subscription] = []
    given = Subscription.give

    def noted(self: Subscription, *args: Any, **terms: Any) -> None:
        made_by.append(self)
        given(self, *args, **terms)

    monkeypatch.setattr(Subscription, "give", noted)
    async with world(tmp_path) as here, SinkServer() as sink:
        await made(here, sink)
        await here.bus.publish(quote(1))
        await until(lambda: sink.prices == [1])
        made_by[0].miss(None, "b2: it cannot be reached")
        await until(lambda: sink.gaps == ["b2: it cannot be reached"])


async def test_a_webhook_that_ended_does_not_come_back(tmp_path: Path) -> None:
    file = tmp_path / "webhooks.json"
    async with world(hooks=file) as here, SinkServer() as sink:
        path = await made(here, sink)
        sink.status = 410
        await here.bus.publish(quote(1))
        while (await here.http.get(path)).json()["state"] != "ended":
            pass
    assert file.read_bytes() == b"[]"


async def test_a_token_that_cannot_be_sent_ends_a_webhook_that_was_stored(tmp_path: Path) -> None:
    file = tmp_path / "webhooks.json"
    async with SinkServer() as sink:
        file.write_text(f'[{{"id": "x", "filter": "EXISTS price", "sink": "{sink.url}", "token": " "}}]')
        async with world(hooks=file) as here:
            while (said := (await here.http.get("/subscriptions/x")).json())["state"] != "ended":
                await asyncio.sleep(0.01)
            assert "header" in said["reason"] and "make the web hook again" in said["reason"]


async def test_a_mistake_in_the_gateway_shows_on_the_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    async with world() as here, SinkServer() as sink:
        path = await made(here, sink)
        monkeypatch.setattr(here.gateway._webhooks._encoder, "text", fail)
        await here.bus.publish(quote(1))
        while (said := (await here.http.get(path)).json())["state"] != "ended":
            await asyncio.sleep(0.01)
        assert "something went wrong" in said["reason"]


async def test_how_far_it_came_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "QUIET", 0.01)
    monkeypatch.setattr(webhooks, "WRITTEN_EVERY", 0.01)
    file = tmp_path / "webhooks.json"
    monkeypatch.setattr(bus, "LEASE", 0.3)
    async with world(hooks=file) as here, SinkServer() as sink:
        await made(here, sink)
        (log,) = [str(origin) for origin in here.broker.host.core.recovery.origins.reachable]
        first = HookFile(file).read()[0].seen[log]
        await here.bus.publish(quote(1))
        await until(lambda: HookFile(file).read()[0].seen[log] == first + 1)
        assert sink.prices == [1]


async def test_a_webhook_that_cannot_be_stored_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "webhooks.json"
    file.with_name("webhooks.json.new").mkdir()
    async with world(hooks=file) as here, SinkServer() as sink:
        answer = await here.http.post("/subscriptions", json={"filter": "a = 1", "sink": sink.url})
        assert answer.status_code == 503 and "stored" in answer.json()["error"]
        assert (await here.http.get("/subscriptions")).json() == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("no JSON", "holds no web hooks"),
        ('[{"id": "x"}]', "holds no web hooks"),
        ('[{"id": "x", "filter": "a = 1", "sink": "http://example.org/", "since": 1}]', "example.org"),
    ],
)
async def test_a_file_that_cannot_be_used_is_said(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "webhooks.json"
    file.write_text(content)
    with pytest.raises(InvalidSetting, match=reason):
        async with world(hooks=file):
            pass
    assert file.read_text() == content


async def test_one_gateway_pushes_to_another() -> None:
    async with world() as here, world() as there:
        subscription = await there.bus.subscribe("EXISTS price")
        hook = {"filter": "price > 10", "sink": f"http://{there.address}/events"}
        assert (await here.http.post("/subscriptions", json=hook)).status_code == 201
        await here.bus.publish_many([quote(9), quote(11, id="e1"), quote(12)])
        found = [(await subscription.get(20)).event for _ in range(2)]
        assert ([event.data["price"] for event in found], found[0].id) == ([11, 12], "e1")
