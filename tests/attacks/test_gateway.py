"""Requests to the gateway that are made to cost much: strangers pay with a constant, clients within limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from attacks.gateways import MIB, PATIENCE, TOKEN, Victim, head, post, response, rest, victim, with_access

ZEROS = b"[" + b"0," * (MIB // 2 - 2) + b"0]"
"""A megabyte of JSON: a list of half a million numbers, where events should be."""
MAPS_INSIDE = b"{}," * (MIB // 3 - 100) + b"{}"
MAPS = b'{"type": "q", "data": {"x": [' + MAPS_INSIDE + b"]}}"
"""A megabyte of JSON: an event of 350,000 empty maps."""
COSTLY = " AND ".join(f"a LIKE '%{first}_{second}%'" for first, second in zip("abcdefgh", "hgfedcba", strict=True))
"""A filter that takes half a second to parse."""
MEMORY = 256 * MIB
"""The process uses some 60 MB before anybody asks for anything."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with victim(*with_access(tmp_path_factory.mktemp("access"))) as started:
        yield started


def websocket(target: Victim, token: str = "") -> ClientConnection:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    host, port = target.http
    return connect(f"ws://{host}:{port}/ws", proxy=None, additional_headers=headers, compression=None)


def unharmed(target: Victim) -> None:
    assert target.peak < MEMORY
    assert target.publish().status == 200


@pytest.mark.parametrize("token", ["", "wrong"], ids=["no token", "a wrong token"])
@pytest.mark.parametrize(
    "request_",
    [
        ("POST", "/events"),
        ("POST", "/subscriptions"),
        ("GET", "/subscriptions"),
        ("GET", "/subscriptions/any"),
        ("DELETE", "/subscriptions/any"),
        ("GET", f"/events?filter={quote(COSTLY)}"),
        ("GET", "/events?filter=no%20filter%20at%20all"),
        ("GET", "/events?queue=0&replay=nonsense"),
    ],
    ids=["publish", "hook", "hooks", "a hook", "delete", "a costly filter", "no filter", "wrong parameters"],
)
def test_a_stranger_is_refused_before_anything_is_read(target: Victim, request_: tuple[str, str], token: str) -> None:
    """The body is announced and never sent: who waits for it, or reads the filter, answers something else."""
    reply = target.ask(head(*request_, token, content_type="application/json", content_length=MIB))
    assert reply.status == 401 and "token" in reply.body["error"]


@pytest.mark.parametrize("path", ["/events", "/subscriptions"])
def test_the_body_of_a_stranger_is_not_decoded(target: Victim, path: str) -> None:
    for _ in range(5):
        assert target.ask(post(ZEROS, target=path)).status == 401
    unharmed(target)


def test_a_stranger_cannot_send_for_ever(target: Victim) -> None:
    """After the answer, the gateway reads at most a megabyte of the body and closes the connection."""
    with target.connect() as end:
        end.sendall(head("POST", "/events", content_type="application/json", content_length=1 << 40))
        assert response(end).status == 401
        sent = 0
        with suppress(ConnectionError):
            while sent < 64 * MIB:
                sent += end.send(bytes(MIB // 4))
        assert sent < 64 * MIB
    unharmed(target)


@pytest.mark.parametrize(
    "text",
    [ZEROS.decode(), '{"op": "publish", "events": ' + ZEROS.decode() + "}", "{"],
    ids=["list", "publish", "no JSON"],
)
def test_a_stranger_on_a_socket_may_only_say_hello(target: Victim, text: str) -> None:
    with websocket(target) as one:
        one.send(text)
        with pytest.raises(ConnectionClosed) as closed:
            one.recv(PATIENCE)
    assert closed.value.rcvd is not None and closed.value.rcvd.code in (1008, 1009)
    unharmed(target)


def test_a_socket_with_a_wrong_token_is_not_opened(target: Victim) -> None:
    upgrade = head(
        "GET", "/ws", "wrong", connection="Upgrade", upgrade="websocket",
        sec_websocket_version=13, sec_websocket_key="AAAAAAAAAAAAAAAAAAAAAA==",
    )  # fmt: skip
    assert target.ask(upgrade).status == 401


def test_a_client_may_publish_only_so_many_events_at_once(target: Victim) -> None:
    for _ in range(3):
        reply = target.ask(post(ZEROS[: MIB // 2] + b",0]", TOKEN))
        assert reply.status == 413 and "limits.batch = 10,000" in reply.body["error"]
        reply = target.ask(post(ZEROS, TOKEN))
        assert reply.status == 413 and "limits.values = 500,000" in reply.body["error"]
    with websocket(target, TOKEN) as one:
        one.send(json.dumps({"op": "publish", "request": 1, "events": [0] * 300_000}))
        said = json.loads(one.recv(PATIENCE))
        assert (said["op"], said["request"]) == ("refused", 1) and "limits.batch = 10,000" in said["reason"]
    unharmed(target)


@pytest.mark.parametrize("body", [MAPS, b"[" + MAPS_INSIDE + b"]"], ids=["one event", "a batch"])
def test_many_bodies_of_many_values_at_once_take_little_memory(target: Victim, body: bytes) -> None:
    """Each becomes 25 MB: the gateway holds few of them at a time, and the broker keeps few of their events."""
    with ThreadPoolExecutor(30) as pool:
        found = {reply.status for reply in pool.map(target.ask, [post(body, TOKEN)] * 30)}
    assert found <= {200, 413, 503}
    unharmed(target)


def test_many_messages_of_many_values_at_once_take_little_memory(target: Victim) -> None:
    def publish(_: int) -> str:
        with websocket(target, TOKEN) as one:
            one.send(b'{"op": "publish", "events": [' + MAPS + b"]}", text=True)
            return str(json.loads(one.recv(60))["op"])

    with ThreadPoolExecutor(30) as pool:
        assert set(pool.map(publish, range(30))) == {"accepted"}
    unharmed(target)


def test_ten_of_many_refusals_are_told(target: Victim) -> None:
    reply = target.ask(post(json.dumps([0] * 10_000).encode(), TOKEN))
    assert (reply.status, reply.body["published"], reply.body["refused_count"]) == (400, 0, 10_000)
    assert [one["index"] for one in reply.body["refused"]] == list(range(10))
    with websocket(target, TOKEN) as one:
        one.send(json.dumps({"op": "publish", "events": [{"type": "q"}, *[0] * 9_999]}))
        said = json.loads(one.recv(PATIENCE))
        assert (said["published"], said["refused_count"]) == (1, 9_999)
        assert [one["index"] for one in said["refused"]] == list(range(1, 11))
    assert target.publish(10_000).body == {"published": 10_000, "refused": [], "refused_count": 0}
    unharmed(target)


def test_a_request_of_two_lengths_is_refused(target: Victim) -> None:
    """Another server before this one may believe the other length, and take the rest for a request."""
    smuggled = b"0\r\n\r\n" + head("GET", "/healthz")
    both = head("POST", "/events", TOKEN, content_length=len(smuggled), transfer_encoding="chunked")
    with target.connect() as end:
        end.sendall(both + smuggled)
        assert response(end).status == 400
        assert rest(end) == b""


@pytest.mark.parametrize(
    "target_",
    [
        "/events?filter=TRUE&queue=" + "9" * 5_000,
        "/events?filter=TRUE&replay=last=" + "9" * 5_000,
    ],
    ids=["queue", "replay"],
)
def test_a_number_of_many_digits_is_wrong_input(target: Victim, target_: str) -> None:
    assert target.ask(head("GET", target_, TOKEN)).status == 400


def test_a_priority_of_many_digits_is_wrong_input(target: Victim) -> None:
    event = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "s", "ce_type": "q", "ce_priority": "9" * 5_000}
    assert target.ask(head("POST", "/events", TOKEN, content_length=0, **event)).status == 400


def test_nothing_is_said_of_mistakes_in_the_gateway(tmp_path: Path) -> None:
    """None of these requests ends with a traceback."""
    with victim(*with_access(tmp_path)) as target:
        for request in (post(ZEROS), post(ZEROS, TOKEN), post(b"[[" * 1000, TOKEN), head("GET", "/events", TOKEN)):
            target.ask(request)
        with websocket(target):
            pass
        target.process.terminate()
        assert target.process.stderr is not None
        assert "Traceback" not in target.process.stderr.read()
