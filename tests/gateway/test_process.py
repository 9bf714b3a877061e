"""`vestnik serve --http`: a broker and its gateway in one process."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

import vestnik
from network.processes import HTTP, LISTENING, told
from network.security import Authority, access_file
from vestnik.cli.edge import behind_gateway
from vestnik.errors import MissingExtra
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address

VESTNIK = Path(sys.executable).with_name("vestnik")
COMMAND = [str(VESTNIK), "serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]


@contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A broker, where it listens, and where its gateway does."""
    with subprocess.Popen([*COMMAND, *options], stderr=subprocess.PIPE, encoding="utf-8") as running:
        assert running.stderr is not None
        try:
            yield running, told(running.stderr, LISTENING), f"http://{told(running.stderr, HTTP)}"
        finally:
            running.kill()


def test_what_comes_in_one_way_goes_out_the_other() -> None:
    with served() as (_, address, url), httpx.Client(base_url=url, trust_env=False, timeout=20) as http:
        with vestnik.connect_sync(address) as bus:
            subscription = bus.subscribe("price > 10")
            answer = http.post("/events", json={"type": "q", "data": {"price": 11}})
            assert answer.json() == {"published": 1, "refused": [], "refused_count": 0}
            assert subscription.get(timeout=20).event.data == {"price": 11}
        text = http.get("/metrics").text
        assert 'vestnik_gateway_events_published_total{way="http"} 1.0' in text
        assert "vestnik_broker_clients 1.0" in text and "vestnik_broker_events_taken_total 1.0" in text
        assert "# TYPE vestnik_broker_events_taken_total counter" in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_streams_and_sockets_open(number: int) -> None:
    with served() as (running, _, url), httpx.Client(base_url=url, trust_env=False, timeout=20) as http:
        with (
            http.stream("GET", "/events", params={"filter": "EXISTS small"}) as stream,
            connect(f"{url.replace('http', 'ws')}/ws", proxy=None) as ws,
            stalled(http),
        ):
            next(stream.iter_lines())
            ws.send('{"op": "subscribe", "filter": "EXISTS small"}')
            assert json.loads(ws.recv())["op"] == "accepted"
            running.send_signal(number)
            assert running.wait(20) == 0
        assert running.stderr is not None
        assert "Traceback" not in running.stderr.read()


@contextmanager
def stalled(http: httpx.Client) -> Iterator[None]:
    """Readers that asked for a stream, and read nothing."""
    address = http.base_url.host, http.base_url.port or 0
    ws = connect(f"ws://{address[0]}:{address[1]}/ws", proxy=None, max_queue=1, close_timeout=0.1)
    with socket.create_connection(address) as end, ws as other:
        other.send('{"op": "subscribe", "filter": "EXISTS big"}')
        end.sendall(b"GET /events?filter=EXISTS%20big HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert end.recv(12) == b"HTTP/1.1 200"
        for _ in range(100):
            assert http.post("/events", json={"type": "q", "data": {"big": "x" * 100_000}}).is_success
        yield


def test_it_is_ready_when_it_has_joined() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with served("--join", f"{host}:{port}") as (_, _, url):
            answer = httpx.get(f"{url}/readyz", trust_env=False)
            assert (answer.status_code, answer.json()["waits"]) == (503, [f"the link to {host}:{port}"])
            assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
    with served() as (_, address, _), served("--join", address) as (_, _, url):
        while httpx.get(f"{url}/readyz", trust_env=False).status_code != 200:
            time.sleep(0.01)
        assert "vestnik_broker_neighbours 1.0" in httpx.get(f"{url}/metrics", trust_env=False).text


def test_with_a_certificate_it_speaks_tls_and_asks_for_a_token(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    papers = authority.issue("localhost", "127.0.0.1")
    access = access_file(tmp_path, '[desk]\ntokens = ["{desk}"]\npublish = true\n', desk="token-of-desk")
    options = ["--tls-cert", str(papers.cert), "--tls-key", str(papers.key), "--access", str(access)]
    trust = ssl.create_default_context(cafile=authority.file)
    with served(*options) as (process, _, url), httpx.Client(verify=trust, trust_env=False, timeout=20) as http:
        secure = url.replace("http", "https")
        assert http.get(f"{secure}/healthz", headers={"host": "any.example"}).status_code == 200
        assert http.post(f"{secure}/events", json={"type": "q"}).status_code == 401
        http.headers["authorization"] = "Bearer token-of-desk"
        assert http.post(f"{secure}/events", json={"type": "q"}).status_code == 200
        with pytest.raises(httpx.HTTPError):
            http.get(f"{url}/healthz")
        fresh = Authority(tmp_path, "other").issue("localhost", "127.0.0.1")
        papers.cert.write_bytes(fresh.cert.read_bytes())
        papers.key.write_bytes(fresh.key.read_bytes())
        process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                httpx.get(f"{secure}/healthz", verify=trust, trust_env=False)
            except httpx.ConnectError:
                break
        else:
            pytest.fail("the certificate of the gateway was not renewed")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--http", "0.0.0.0:0"],
            "http: 0.0.0.0 can be reached",
        ),
        (["--http", "nonsense:x"], "no address"),
        (["--origin", "example.org"], "origins: 'example.org'"),
    ],
)
def test_what_cannot_be_is_said(options: list[str], reason: str) -> None:
    done = subprocess.run([*COMMAND, *options], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 2 and reason in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("option", [("--origin", "https://example.org"), ("--sink", "127.0.0.1:9000")])
def test_options_of_the_gateway_need_a_gateway(option: tuple[str, str]) -> None:
    command = [str(VESTNIK), "serve", "--listen", "127.0.0.1:0", *option]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=20, check=False)
    name = option[0].removeprefix("--")
    assert done.returncode == 2 and f"{name}: is for a gateway: set http (--http HOST:PORT)" in done.stderr


def test_a_port_that_is_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [*COMMAND[:-1], f"127.0.0.1:{taken.getsockname()[1]}"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 2 and "cannot listen" in done.stderr and "Traceback" not in done.stderr


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vestnik.gateway.app", None)
    with pytest.raises(MissingExtra, match=r"vestnik\[web\]"):
        behind_gateway(Broker(Settings(name="b")), Address("127.0.0.1", 0))
