"""What is spoken by whoever is neither a broker nor a client, seen by its first bytes."""

from __future__ import annotations

from typing import Final

FIRST: Final = 8
"""Bytes that are enough to tell."""
FOREIGN: Final = "foreign"
"""The word for the end of such a connection."""

_METHODS: Final = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ")
_NO_GATEWAY: Final = (
    "HTTP is not spoken here: this is the port of a Vestnik broker. vestnik serve --http HOST:PORT opens one for HTTP"
)


def spoken(first: bytes) -> str:
    """What the other end speaks instead, and what to do; empty where that is not known."""
    if first.startswith(b"HTTP/"):
        return (
            "HTTP is spoken there, as by a gateway (vestnik serve --http); "
            "the broker itself has another port, 8020 unless --listen says otherwise"
        )
    if first.startswith(_METHODS):
        return _NO_GATEWAY
    if first.startswith(b"\x16\x03"):
        return "it speaks TLS, and this broker does not: write vestnik:// and not vestniks://, or set tls_cert"
    return ""


def answer(first: bytes) -> bytes:
    """What whoever speaks so can read; empty where it cannot be answered in its own way."""
    if not first.startswith(_METHODS):
        return b""
    body = f"{_NO_GATEWAY}\n".encode()
    head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: "
    return f"{head}{len(body)}\r\n\r\n".encode() + body
