"""The attributes of an event, and what each may be: a check makes of what was given what an event holds.

InvalidEvent, naming the attribute or the path in `data`, when something does not fit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, TypedDict

from vestnik.errors import InvalidEvent
from vestnik.model.frozen import MAX_INT, FrozenDict, freeze, kind_name, plain_text
from vestnik.model.times import to_micros

Instant: TypeAlias = datetime | int | str
"""Microseconds since 1970 UTC, an aware datetime, or RFC 3339 text."""
Pair: TypeAlias = tuple[str, str]
Pairs: TypeAlias = tuple[Pair, ...]

CLOUDEVENT_NAMES: Final = frozenset(
    {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data"}
    | {"sequence", "priority", "notbefore", "expires", "stream", "causes"}
)
"""Names with a meaning of their own in CloudEvents form, which no extension may take."""
EXTENSION_NAME: Final = "[a-z0-9]+"
MEDIUM: Final = 4
"""The priority of an event that says none."""
NOTHING: Final = FrozenDict()
"""No data, and no extensions."""
_extension_names = re.compile(EXTENSION_NAME)


class Envelope(TypedDict, total=False):
    """The keyword arguments of `Event` besides `type` and `data`."""

    source: str
    id: str | None
    subject: str | None
    time: Instant | None
    priority: int
    not_before: Instant | None
    expires: Instant | None
    causes: Iterable[Pair]
    extensions: Mapping[str, str | bool | int] | None
    stream: Pair | None
    seq: int | None


class Changes(Envelope, total=False):
    """The keyword arguments of `Event.replace`."""

    type: str
    data: dict[str, Any] | None


def text_of(value: object, path: str) -> str:
    if not value and isinstance(value, str):
        raise InvalidEvent("must not be empty", path)
    return value if type(value) is str and value.isascii() else plain_text(value, path)


def optional_text_of(value: object, path: str) -> str | None:
    return None if value is None else text_of(value, path)


def id_of(value: object, path: str) -> str:
    return _new_id() if value is None else text_of(value, path)


_spare_ids: list[str] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_spare_ids.clear)


def _new_id() -> str:
    """128 random bits, which the system is asked for by the dozen."""
    try:
        return _spare_ids.pop()
    except IndexError:
        drawn = os.urandom(64 * 16).hex()
        _spare_ids.extend([drawn[start : start + 32] for start in range(32, len(drawn), 32)])
        return drawn[:32]


def data_of(value: object, path: str) -> FrozenDict:
    return NOTHING if value is None else freeze(value)


def instant_of(value: Any, path: str) -> int | None:
    if value is None:
        return None
    try:
        return to_micros(value)
    except ValueError as error:
        raise InvalidEvent(str(error), path) from None


def _priority(value: object, path: str) -> int:
    if type(value) is int and 0 <= value <= 9:
        return value
    raise InvalidEvent("a priority is an integer from 0 to 9", path)


def _seq(value: object, path: str) -> int | None:
    if value is None or (type(value) is int and 1 <= value <= MAX_INT):
        return value
    raise InvalidEvent("a sequence number is an integer from 1", path)


def _stream(value: object, path: str) -> Pair | None:
    return None if value is None else _pair(value, path)


def _causes(value: object, path: str) -> Pairs:
    if value == ():
        return ()
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidEvent(f"causes are (source, id) pairs, not {kind_name(value)}", path)
    return tuple([_pair(pair, f"{path}[{position}]") for position, pair in enumerate(value)])


def _pair(value: object, path: str) -> Pair:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidEvent("must be a pair of strings", path)
    return text_of(value[0], path), text_of(value[1], path)


def _extensions(value: object, path: str) -> FrozenDict:
    if value is None:
        return NOTHING
    if not isinstance(value, Mapping):
        raise InvalidEvent(f"extensions must be a map, not {kind_name(value)}", path)
    return FrozenDict({_extension_name(name, path): _extension(item, f"{path}.{name}") for name, item in value.items()})


def _extension_name(name: object, path: str) -> str:
    if type(name) is not str or not _extension_names.fullmatch(name):
        raise InvalidEvent(f"an extension's name is lower-case letters and digits, not {name!a}", path)
    if name in CLOUDEVENT_NAMES:
        raise InvalidEvent(f"{name} is an attribute, not an extension", path)
    return name


def _extension(value: object, path: str) -> str | bool | int:
    if isinstance(value, str):
        return plain_text(value, path)
    if isinstance(value, bool) or (type(value) is int and -(2**31) <= value < 2**31):
        return value
    raise InvalidEvent("an extension is a string, a boolean or an integer of 32 bits", path)


CHECKS: Final[dict[str, Callable[[Any, str], object]]] = {
    "type": text_of,
    "data": data_of,
    "source": text_of,
    "id": id_of,
    "subject": optional_text_of,
    "time": instant_of,
    "priority": _priority,
    "not_before": instant_of,
    "expires": instant_of,
    "causes": _causes,
    "extensions": _extensions,
    "stream": _stream,
    "seq": _seq,
}
