"""What a client says over a WebSocket: JSON objects, each with what to do in `op`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from vestnik.client.notifications import Overflow

Name: TypeAlias = str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""What a client calls a request."""


class Said(Struct, frozen=True, kw_only=True, tag_field="op", forbid_unknown_fields=True):
    """The answer names the `request`."""

    request: Name | None = None


class Hello(Said, frozen=True, tag="hello"):
    """The first thing, where a token is to be shown and cannot be in a header."""

    token: str


class Subscribe(Said, frozen=True, tag="subscribe"):
    filter: str
    name: str | None = None
    replay: dict[str, Any] | None = None
    handback: Any = None
    queue: int = 1000
    overflow: Overflow = "block"


class Change(Said, frozen=True, tag="change"):
    name: str
    filter: str


class Unsubscribe(Said, frozen=True, tag="unsubscribe"):
    name: str


class Advertise(Said, frozen=True, tag="advertise"):
    filter: str
    name: str | None = None


class Unadvertise(Said, frozen=True, tag="unadvertise"):
    name: str


class Publish(Said, frozen=True, tag="publish"):
    """Events in CloudEvents or short form. Without `durable` the answer does not wait for the broker."""

    events: list[Any]
    durable: bool = True


class Fetch(Said, frozen=True, tag="fetch"):
    filter: str
    limit: int = 100
    since: str | int | None = None
    latest_by: str | None = None


AnySaid: TypeAlias = Hello | Subscribe | Change | Unsubscribe | Advertise | Unadvertise | Publish | Fetch
