"""How much a broker lets others have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msgspec import Struct
from msgspec.structs import fields

from vestnik.broker.clients import MOST_KEPT
from vestnik.errors import InvalidSetting
from vestnik.model.nearest import meant
from vestnik.model.parser import OUTSIDE
from vestnik.recovery.allowance import WINDOW_SIZE
from vestnik.recovery.limits import IN_FLIGHT, STALLED
from vestnik.wire.bounds import Bounds
from vestnik.wire.pages import LARGEST_SAID


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each is named by whoever is refused for it.

    Of those who have not said who they are there are at most `strangers`, the oldest gives way, and each may send
    `stranger_bytes` in a message. Then there may be `connections`, and for each identity `identity_connections`.
    A client may send `message_bytes` and `values` in a message and publish a `batch` of so many events at once. It may
    have `subscriptions` and as many advertisements, each with a filter of `filter_boxes`, and `keep` notifications in
    flight to each subscription. A replay may pick `replay` events, the last or the latest by a key. A client may wait
    for `fetches` of past events at a time. It may publish `publish_rate` events a second, any number unless
    that is said, and `publish_burst` at once, as many as in a second unless that is said; who is faster is slowed down.
    While a reader lags by more than half of the log in memory, publishers wait, but not for one that has read nothing
    for `stalled` seconds. To all subscriptions together, `in_flight` bytes are in flight, or a share for each.

    The gateway holds at most `http_connections`, and at most half as many as the process may have file descriptors. A
    client of it has `http_header_seconds` to send the head of a request, or to say Hello over a WebSocket.
    """

    strangers: int = 256
    stranger_bytes: int = 64 * 1024
    connections: int = 10_000
    identity_connections: int = 1_000
    message_bytes: int = LARGEST_SAID
    values: int = 500_000
    batch: int = 10_000
    subscriptions: int = 10_000
    filter_boxes: int = 256
    keep: int = MOST_KEPT
    replay: int = 1_000_000
    fetches: int = 16
    publish_rate: int | None = None
    publish_burst: int | None = None
    stalled: int = int(STALLED)
    in_flight: int = IN_FLIGHT
    http_connections: int = 10_000
    http_header_seconds: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.default is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidSetting(f"limits.{field.name}", f"is a number from 1 on, not {value!r}")
        if self.message_bytes > LARGEST_SAID:
            raise InvalidSetting("limits.message_bytes", f"is at most {LARGEST_SAID:,}, not {self.message_bytes:,}")
        if self.in_flight < WINDOW_SIZE:
            reason = f"is at least {WINDOW_SIZE:,} bytes, which one subscription may have, not {self.in_flight:,}"
            raise InvalidSetting("limits.in_flight", reason)

    @property
    def bounds(self) -> Bounds:
        """Return the bounds of a message from a client."""
        filters = replace(OUTSIDE, boxes=self.filter_boxes)
        return Bounds(self.message_bytes, filters, self.batch, self.values)


def read_limits(words: Iterable[str]) -> Limits:
    """The limits in words as `connections=100`; InvalidSetting where there is none of that name."""
    given: dict[str, int] = {}
    for word in words:
        name, _, number = word.partition("=")
        known = Limits.__struct_fields__
        if name not in known:
            raise InvalidSetting("limits", f"there is none called {name}{meant(name, known)}")
        if not number.isdecimal():
            raise InvalidSetting(f"limits.{name}", f"is a number from 1 on, not {number!r}")
        given[name] = int(number)
    return Limits(**given)


def limits_of(table: object) -> Limits:
    """The limits in the table of a file; InvalidSetting where they are none."""
    if not isinstance(table, dict):
        raise InvalidSetting("limits", f"is a table, such as [limits] with connections = 100 below it, not {table!r}")
    for name in table:
        if name not in Limits.__struct_fields__:
            raise InvalidSetting("limits", f"there is none called {name}{meant(name, Limits.__struct_fields__)}")
    return Limits(**table)
