"""How a gateway is set up."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from vestnik.errors import InvalidSetting


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """One that cannot be is refused when it is made, with the reason.

    `origins` are the sites whose pages may use the gateway besides its own, `sinks` the hosts besides this machine
    that it may push to. No body and no WebSocket message is larger than `largest` bytes. So many `connections` may be
    open, and so many `webhooks`. A stream that was cut can be continued for `lease` seconds; on one that is quiet there
    is a ping every `ping` seconds. A broker is waited for `patience` seconds. Web hooks are stored in the file `hooks`.
    """

    origins: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    largest: int = 1024 * 1024
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
        for name in ("largest", "connections", "webhooks", "lease", "ping", "patience"):
            if not getattr(self, name) > 0:
                raise InvalidSetting(name, "must be more than nothing")
