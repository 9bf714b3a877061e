"""A `vestnik serve --http` process to attack, and what an attacker sees of it."""

from __future__ import annotations

import json
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from network.processes import HTTP, LISTENING, serving, told
from network.security import access_file

VESTNIK = Path(sys.executable).with_name("vestnik")
MIB = 1024 * 1024
TOKEN = "token-of-desk"
ACCESS = '[desk]\ntokens = ["{desk}"]\npublish = true\nsubscribe = true\n'
LINKED = re.compile(r"\blinked with (\S+)")
PATIENCE = 60.0
"""Seconds after which a test gives up."""


class Reply(NamedTuple):
    """A response: its status, and its JSON body."""

    status: int
    body: Any


class Victim(NamedTuple):
    """A broker process with a gateway."""

    process: subprocess.Popen[str]
    broker: str
    http: tuple[str, int]

    @property
    def peak(self) -> int:
        """The most memory that the process ever used, in bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def connect(self) -> socket.socket:
        return socket.create_connection(self.http, timeout=PATIENCE)

    def ask(self, request: bytes) -> Reply:
        """Send bytes, and return the response to them."""
        with self.connect() as end:
            end.sendall(request)
            return response(end)

    def figure(self, name: str) -> float:
        """Return a figure that the gateway shows at /metrics."""
        with self.connect() as end:
            end.sendall(head("GET", "/metrics", connection="close"))
            lines = rest(end).decode().splitlines()
        (found,) = [float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")]
        return found

    def publish(self, count: int = 1) -> Reply:
        """Publish as a client with a token does."""
        return self.ask(post(json.dumps([{"type": "q", "data": {"n": n}} for n in range(count)]).encode(), TOKEN))


@contextmanager
def victim(*options: str, descriptors: int | None = None) -> Iterator[Victim]:
    """Start a broker and its gateway, with at most so many file descriptors."""

    def confine() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [str(VESTNIK), "serve", "--name", "victim", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", preexec_fn=confine) as process:
        try:
            broker = told(process.stderr, LISTENING)
            host, _, port = told(process.stderr, HTTP).rpartition(":")
            yield Victim(process, broker, (host, int(port)))
        finally:
            process.kill()


@contextmanager
def neighbour(of: Victim) -> Iterator[None]:
    """Start a broker that is linked with another, which then compares the filters of its clients for it."""
    with serving("--name", "neighbour", "--join", of.broker) as (running, _):
        assert told(running.stderr, LINKED)
        yield


def with_access(folder: Path) -> tuple[str, str]:
    """The options by which only TOKEN is let in."""
    return "--access", str(access_file(folder, ACCESS, desk=TOKEN))


def head(method: str, target: str, token: str = "", **headers: object) -> bytes:
    """A request without its body."""
    fields: dict[str, object] = {"host": "localhost", **({"authorization": f"Bearer {token}"} if token else {})}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode()


def post(body: bytes, token: str = "", target: str = "/events") -> bytes:
    return head("POST", target, token, content_type="application/json", content_length=len(body)) + body


def response(end: socket.socket) -> Reply:
    """Read one response that has a length."""
    with end.makefile("rb") as file:
        status = int(file.readline().split()[1])
        fields = {}
        while line := file.readline().strip():
            name, _, value = line.decode().partition(":")
            fields[name.lower()] = value.strip()
        return Reply(status, json.loads(file.read(int(fields["content-length"]))))


def rest(end: socket.socket) -> bytes:
    """Read what else comes until the connection is closed."""
    found = b""
    with suppress(ConnectionError):
        while more := end.recv(MIB):
            found += more
    return found


@contextmanager
def roomy(descriptors: int) -> Iterator[None]:
    """Let this process have so many file descriptors meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, descriptors), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
