"""CloudEvents in HTTP requests: one in headers and body, one in the body, or several in the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from msgspec import Struct
from starlette.datastructures import Headers

from vestnik.errors import InvalidEvent, InvalidRequest
from vestnik.gateway.bodies import read_number
from vestnik.gateway.entries import read_shallow
from vestnik.model.events import Event
from vestnik.model.strict_json import read_json

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
PLAIN: Final = "application/json"
_PREFIX: Final = "ce-"

TOLD: Final = 10
"""Refused events of which the reason is told; the others are only counted."""


class Refused(Struct, frozen=True, omit_defaults=True):
    """The event at a place in the request, from 0, was not published; or it is `unknown` whether it was."""

    index: int
    reason: str
    id: str = ""
    source: str = ""
    where: str = ""
    unknown: bool = False


class Entries(NamedTuple):
    """The entries of a request, `total` in all: the events, each with its place, and the first refused entries."""

    events: tuple[tuple[int, Event], ...]
    refused: tuple[Refused, ...]
    total: int


def read_events(headers: Headers, body: bytes, most: int) -> Entries:
    """Return the events of a request. InvalidEvent or InvalidRequest if they cannot be told from each other.

    InvalidRequest also if there are more than `most`; then none of them is looked at.
    """
    kind = content_type(headers)
    if kind not in (STRUCTURED, BATCH) and any(header.startswith(_PREFIX) for header in headers):
        return entries_of([_binary(headers, body)], most)
    if kind == STRUCTURED:
        return entries_of([_event(read_json(body), standard=True)], most)
    if kind == BATCH:
        value, shallow = read_shallow(body)
        return entries_of(shallow.restored(_list(value)), most, standard=True)
    if kind == PLAIN:
        value, shallow = read_shallow(body)
        return entries_of(shallow.restored(value) if isinstance(value, list) else [_event(value)], most)
    known = f"{STRUCTURED}, {BATCH}, {PLAIN}, or one with ce- headers"
    raise InvalidRequest(f"{kind or 'nothing'} is not understood; send {known}", "content-type", 415)


def content_type(headers: Headers) -> str:
    """Without parameters; text is UTF-8."""
    kind, *parameters = [part.strip().lower() for part in headers.get("content-type", "").split(";")]
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "us-ascii"):
            raise InvalidRequest(f"text is UTF-8, not {value}", "content-type", 415)
    return kind


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidEvent("a batch is a JSON list of events")
    return value


def entries_of(values: list[Any], most: int, *, standard: bool = False) -> Entries:
    """Return the events among `values`; InvalidRequest if there are too many.

    Each is an event, what JSON has, or the reason why it is refused.
    """
    if len(values) > most:
        reason = f"there are {len(values):,} events; a request may have limits.batch = {most:,}: send several requests"
        raise InvalidRequest(reason, status=413)
    events: list[tuple[int, Event]] = []
    refused: list[Refused] = []
    for index, value in enumerate(values):
        try:
            events.append((index, value if isinstance(value, Event) else _event(value, standard=standard)))
        except InvalidEvent as error:
            if len(refused) < TOLD:
                refused.append(Refused(index, error.reason, where=error.path))
    return Entries(tuple(events), tuple(refused), len(values))


def _event(value: Any, *, standard: bool = False) -> Event:
    if isinstance(value, InvalidEvent):
        raise value
    if standard and isinstance(value, Mapping) and "specversion" not in value:
        raise InvalidEvent("is required", "specversion")
    return Event.from_dict(value)


def _binary(headers: Headers, body: bytes) -> Event:
    """An event whose attributes are headers."""
    attributes: dict[str, Any] = {}
    for header, value in headers.items():
        if header.startswith(_PREFIX):
            name = header.removeprefix(_PREFIX)
            if name in attributes or name in ("data", "datacontenttype"):
                raise InvalidEvent("is there twice, or is no header", header)
            attributes[name] = _text(value, header)
    if "specversion" not in attributes:
        raise InvalidEvent("is required", f"{_PREFIX}specversion")
    if "priority" in attributes:
        attributes["priority"] = _integer(attributes["priority"], f"{_PREFIX}priority")
    if body:
        kind = content_type(headers)
        if kind != PLAIN and not kind.endswith("+json"):
            raise InvalidEvent("data must be JSON", "content-type")
        attributes["data"] = read_json(body)
    return Event.from_dict(attributes)


def _text(value: str, header: str) -> str:
    if not value.isascii():
        raise InvalidEvent("what is not ASCII is written with percent signs", header)
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise InvalidEvent("what is written with percent signs is not UTF-8", header) from None


def _integer(value: str, header: str) -> int:
    number = read_number(value)
    if number is None:
        raise InvalidEvent(f"an integer, not {value[:50]}", header)
    return number
