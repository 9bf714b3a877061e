"""Events as CloudEvents 1.0 structured JSON, and back: Event -> CloudEvent -> Event is the identity.

What CloudEvents has no attribute for travels in extension attributes: `sequence` (seq, as a string), `priority`,
`notbefore`, `expires`, `stream` (the broker's name) and `causes` (the pairs as compact JSON in a string).

The short form, without `specversion`, has the names of `Event` itself and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from vestnik.errors import InvalidEvent
from vestnik.model.events import FIELDS, Event
from vestnik.model.frozen import kind_name
from vestnik.model.strict_json import read_json
from vestnik.model.times import format_rfc3339, parse_rfc3339

_SEQUENCE = re.compile("[1-9][0-9]{0,18}")
_JSON_CONTENT = re.compile(r"[^/;\s]+/(?:[^/;\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE)


def to_cloudevent(event: Event) -> dict[str, Any]:
    """The JSON object that stands for `event`; attributes without a value are left out."""
    attributes = {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "time": _instant_text(event.time),
        "datacontenttype": "application/json",
        "sequence": None if event.seq is None else str(event.seq),
        "priority": event.priority,
        "notbefore": _instant_text(event.not_before),
        "expires": _instant_text(event.expires),
        "stream": None if event.stream is None else event.stream[0],
        "causes": msgspec.json.encode(event.causes).decode() if event.causes else None,
    }
    present = {name: value for name, value in attributes.items() if value is not None}
    return {**present, **event.extensions, "data": event.data}


def from_cloudevent(mapping: Mapping[str, Any]) -> Event:
    """The event that a JSON object stands for; InvalidEvent when it stands for none.

    With `specversion`, which must be "1.0", `id`, `source` and `type` are required. Without it this is the short form,
    which needs only `type`. An attribute that is null counts as absent; `data` may be absent but not null.
    """
    if not isinstance(mapping, Mapping):
        raise InvalidEvent(f"an event is a JSON object, not {kind_name(mapping)}")
    if mapping.get("data", ...) is None:
        raise InvalidEvent("data must be a map, not null", "data")
    return _from_standard(mapping) if "specversion" in mapping else _from_short(mapping)


def to_json(event: Event) -> str:
    """The text of `to_cloudevent`."""
    return msgspec.json.encode(to_cloudevent(event)).decode()


def from_json(text: str | bytes) -> Event:
    """`from_cloudevent` of strictly read JSON; whatever is wrong with `text` is an InvalidEvent."""
    return from_cloudevent(read_json(text))


def _from_short(mapping: Mapping[str, Any]) -> Event:
    _require(mapping, "type")
    arguments: dict[str, Any] = {}
    for name, value in mapping.items():
        if name not in _SHORT:
            meant = str(name).lower()
            hint = f"it is written {meant}" if meant in _SHORT else "what the event is about goes under data"
            raise InvalidEvent(f"an unknown attribute; {hint}", str(name))
        if value is not None:
            arguments[name] = _SHORT[name](value, name)
    return Event(**arguments)


def _from_standard(mapping: Mapping[str, Any]) -> Event:
    if mapping["specversion"] != "1.0":
        raise InvalidEvent('only specversion "1.0" is known', "specversion")
    _require(mapping, "id", "source", "type")
    if "data_base64" in mapping:
        raise InvalidEvent("binary data is not supported; data must be a map", "data_base64")
    _check_content(mapping.get("datacontenttype"))
    arguments: dict[str, Any] = {}
    extensions: dict[str, Any] = {}
    for name, value in mapping.items():
        if name in _ARGUMENTS:
            if value is not None:
                argument, read = _ARGUMENTS[name]
                arguments[argument] = read(value, name)
        elif value is not None and name not in _FORM:
            extensions[name] = value
    if "stream" in arguments:
        arguments["stream"] = (arguments["stream"], arguments["source"])
    return Event(**arguments, extensions=extensions or None)


def _require(mapping: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if mapping.get(name) is None:
            other = next((other for other in mapping if str(other).lower() == name != other), None)
            raise InvalidEvent("is required" if other is None else f"is required; {other} is another name", name)


def _check_content(kind: object) -> None:
    if kind in (None, "application/json"):
        return
    if not isinstance(kind, str) or not _JSON_CONTENT.fullmatch(kind):
        raise InvalidEvent("data must be JSON", "datacontenttype")


def _instant_text(micros: int | None) -> str | None:
    return None if micros is None else format_rfc3339(micros)


def _same(value: Any, name: str) -> Any:
    return value


def _instant(value: object, name: str) -> int:
    if not isinstance(value, str):
        raise InvalidEvent(f"a time is RFC 3339 text, not {kind_name(value)}", name)
    try:
        return parse_rfc3339(value)
    except ValueError as error:
        raise InvalidEvent(str(error), name) from None


def _sequence(value: object, name: str) -> int:
    if not isinstance(value, str) or not _SEQUENCE.fullmatch(value):
        raise InvalidEvent("a sequence number is a string of digits, counting from 1", name)
    return int(value)


def _causes(value: object, name: str) -> list[Any]:
    if not isinstance(value, str):
        raise InvalidEvent(f"must be a string, not {kind_name(value)}", name)
    pairs = read_json(value)
    if not isinstance(pairs, list):
        raise InvalidEvent("must be a JSON list of [source, id] pairs", name)
    return pairs


_FORM = frozenset({"specversion", "datacontenttype"})
_ARGUMENTS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "id": ("id", _same),
    "source": ("source", _same),
    "type": ("type", _same),
    "subject": ("subject", _same),
    "priority": ("priority", _same),
    "stream": ("stream", _same),
    "data": ("data", _same),
    "time": ("time", _instant),
    "notbefore": ("not_before", _instant),
    "expires": ("expires", _instant),
    "sequence": ("seq", _sequence),
    "causes": ("causes", _causes),
}
_SHORT: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(FIELDS, _same),
    **dict.fromkeys(("time", "not_before", "expires"), _instant),
}
