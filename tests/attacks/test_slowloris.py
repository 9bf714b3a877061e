"""Connections that take up room and say nothing: they give way, and leave the broker its file descriptors."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import vestnik
from attacks.gateways import PATIENCE, Victim, head, post, response, rest, roomy, victim
from vestnik import Event

DESCRIPTORS = 1024
ATTACKERS = 1100
HALF_A_HEAD = b"POST /events HTTP/1.1\r\nhost: localhost\r\nx-half: "
HALF_A_BODY = head("POST", "/events", content_type="application/json", content_length=100) + b"{"
BIG = "x" * 100_000


@contextmanager
def crowd(target: Victim, begun: bytes) -> Iterator[list[socket.socket]]:
    """Connections that send the beginning of a request, and keep quiet."""
    with roomy(DESCRIPTORS + ATTACKERS), ExitStack() as stack:
        ends = []
        for _ in range(ATTACKERS):
            end = stack.enter_context(target.connect())
            end.sendall(begun)
            ends.append(end)
        yield ends


@pytest.mark.parametrize("begun", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["nothing", "half a head", "half a body"])
def test_half_sent_requests_leave_room_for_the_broker(tmp_path: Path, begun: bytes) -> None:
    """New clients connect, publish over several segments of the journal, and get what they want, by both ways."""
    options = ["--data", str(tmp_path), "--retain-size", "8000000"]
    with victim(*options, descriptors=DESCRIPTORS) as target, crowd(target, begun):
        with vestnik.connect_sync(target.broker) as bus:
            subscription = bus.subscribe("TRUE")
            for n in range(30):
                bus.publish(Event("q", {"n": n, "big": BIG}))
            assert [subscription.get(timeout=PATIENCE).event.data["n"] for _ in range(30)] == list(range(30))
            assert target.ask(post(json.dumps({"type": "q", "data": {"n": -1}}).encode())).status == 200
            assert subscription.get(timeout=PATIENCE).event.data["n"] == -1
        assert target.descriptors < DESCRIPTORS - 100


def test_the_oldest_gives_way() -> None:
    with victim("--limits", "http_connections=2") as target, target.connect() as first, target.connect() as second:
        first.sendall(HALF_A_HEAD)
        second.sendall(HALF_A_HEAD)
        with target.connect() as third:
            third.sendall(head("GET", "/healthz"))
            assert response(third).status == 200
            assert rest(first) == b""
            second.sendall(b"\r\ncontent-length: 0\r\n\r\n")
            assert response(second).status == 415


def test_who_is_being_served_does_not_give_way() -> None:
    with victim("--limits", "http_connections=2") as target, target.connect() as one, target.connect() as other:
        for end in (one, other):
            end.sendall(head("GET", "/events?filter=TRUE"))
            assert end.recv(12) == b"HTTP/1.1 200"
        with target.connect() as third:
            reply = response(third)
            assert reply.status == 503 and "limits.http_connections = 2" in reply.body["error"]
        one.close()
        deadline = iter(range(1000))
        while (status := target.ask(head("GET", "/healthz")).status) != 200:
            assert status == 503 and next(deadline) < 999


@pytest.mark.parametrize("begun", [HALF_A_HEAD, head("GET", "/healthz") + HALF_A_HEAD], ids=["first", "second"])
def test_a_head_that_does_not_come_is_not_waited_for(begun: bytes) -> None:
    with victim("--limits", "http_header_seconds=1") as target, target.connect() as end:
        end.sendall(begun)
        found = rest(end)
        assert b"HTTP/1.1 408" in found and b"limits.http_header_seconds = 1" in found
