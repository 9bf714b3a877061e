"""Where brokers are: `host:port`, and `vestnik://host:port`."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from vestnik.errors import InvalidAddress, WrongType

PORT: Final = 8020
SCHEME: Final = "vestnik"
SECURE: Final = "vestniks"


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_url(text: str) -> tuple[Address, bool]:
    """Where a broker is, and whether TLS is spoken there, which `vestniks://host:port` says."""
    _check(text)
    scheme, apart, rest = text.partition("://")
    is_secure = bool(apart) and scheme.lower() == SECURE
    return read_address(rest if is_secure else text), is_secure


def read_address(text: str) -> Address:
    """The address in `host`, `host:port`, `[::1]:port` or `vestnik://host:port`; the port is 8020 unless given."""
    _check(text)
    try:
        parts = urlsplit(text if "://" in text else f"{SCHEME}://{text}")
    except ValueError as error:
        raise InvalidAddress(text, str(error)) from None
    try:
        port = parts.port if parts.port is not None else PORT
    except ValueError:
        raise InvalidAddress(text, "its port is no number up to 65535") from None
    if parts.scheme == SECURE:
        raise InvalidAddress(text, "brokers with tls_cert and tls_key join others by TLS anyway", "HOST:PORT")
    if parts.scheme != SCHEME:
        raise InvalidAddress(text, f"{parts.scheme} is not spoken here")
    if text.isdecimal():
        raise InvalidAddress(text, f"it is a port without a host; 127.0.0.1:{text} is that port of this machine")
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        raise InvalidAddress(text, "it is not a host and a port")
    return Address(parts.hostname, port)


def _check(text: str) -> None:
    if not isinstance(text, str):
        raise WrongType("the address of a broker is text, such as '127.0.0.1:8020'", text)
