"""How a gateway is set up."""

from __future__ import annotations

import resource
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from vestnik.errors import InvalidSetting
from vestnik.gateway.sinks import named_place


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """The settings of a gateway. A value that cannot be used is refused when the settings are made, with the reason.

    Pages of the sites `origins` may use the gateway besides its own pages. Web hooks may push only to `sinks`, each a
    host or a host and a port. A body or a WebSocket message has at most `largest` bytes and `values`, and publishes at
    most `batch` events. The gateway holds at most `http_connections` connections, `connections` streams, as many
    sockets, and `webhooks` web hooks. A client has `http_header_seconds` to send the head of a request. A stream that
    was cut can be continued for `lease` seconds; a quiet one gets a ping every `ping` seconds. The gateway waits
    `patience` seconds for an answer of the broker. It stores web hooks in the file `hooks`.
    """

    origins: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    largest: int = 1024 * 1024
    values: int = 500_000
    batch: int = 10_000
    http_connections: int = 10_000
    http_header_seconds: float = 10
    connections: int = 1000
    webhooks: int = 100
    lease: float = 60.0
    ping: float = 15.0
    patience: float = 10.0
    hooks: Path | None = None

    def __post_init__(self) -> None:
        for origin in self.origins:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}":
                raise InvalidSetting("origins", f"{origin!r} is not like https://example.org")
        for sink in self.sinks:
            if named_place(sink) is None:
                reason = f"{sink!r} is neither a host, such as example.org, nor a host and a port, such as [::1]:9000"
                raise InvalidSetting("sink", reason)
        for name in (
            "largest", "values", "batch", "http_connections", "http_header_seconds", "connections", "webhooks", "lease",
            "ping", "patience",
        ):  # fmt: skip
            if not getattr(self, name) > 0:
                raise InvalidSetting(name, "must be more than nothing")


def most_connections(wanted: int) -> int:
    """Return how many connections a gateway may hold: at most half of the file descriptors of this process.

    The other half stays for the clients, the links and the journal of a broker in the same process.
    """
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if descriptors == resource.RLIM_INFINITY else min(wanted, max(1, descriptors // 2))
