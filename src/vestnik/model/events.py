"""Events: an envelope and `data`, immutable, checked when they are made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, NoReturn, TypeAlias, TypedDict, Unpack, cast, final

from vestnik.errors import InvalidEvent
from vestnik.model.frozen import MAX_INT, FrozenDict, freeze, kind_name, plain_text
from vestnik.model.times import format_rfc3339, to_micros

Instant: TypeAlias = datetime | int | str
"""Microseconds since 1970 UTC, an aware datetime, or RFC 3339 text."""
Pair: TypeAlias = tuple[str, str]
Pairs: TypeAlias = tuple[Pair, ...]

FIELDS = (
    "type", "data", "source", "id", "subject", "time", "priority", "not_before", "expires", "causes", "extensions",
    "stream", "seq",
)  # fmt: skip
"""Everything an event is made of, in the order it is shown and pickled."""

CLOUDEVENT_NAMES = frozenset(
    {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data"}
    | {"sequence", "priority", "notbefore", "expires", "stream", "causes"}
)
"""Names with a meaning of their own in CloudEvents form, which no extension may take."""

_MEDIUM = 4
_EXTENSION_NAME = re.compile("[a-z0-9]+")
NOTHING = FrozenDict()
"""No data, and no extensions."""
_contents = attrgetter(*FIELDS)
_unstamped = attrgetter(*FIELDS[:-2])
_POSITIONS = {name: position for position, name in enumerate(FIELDS)}


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


class _Draft:
    """An event while it is made: the same fields, still writable, so that filling them costs a fifth."""

    __slots__ = FIELDS

    type: str
    data: FrozenDict
    source: str
    id: str
    subject: str | None
    time: int | None
    priority: int
    not_before: int | None
    expires: int | None
    causes: Pairs
    extensions: FrozenDict
    stream: Pair | None
    seq: int | None


@final
class Event(_Draft):
    """What happened. Equal by content, identified for ever by `(source, id)`, which is what it hashes by.

    `id` is random unless given. `data` and `extensions` are read-only copies of what was given. Instants are kept as
    microseconds since 1970 UTC. `stream`, the pair (broker, source), and `seq` are set by the broker that accepts it.
    InvalidEvent, naming the attribute or the path in `data`, when something does not fit.
    """

    __slots__ = ()
    __match_args__ = ("type", "data")

    def __new__(
        cls,
        type: str,
        data: dict[str, Any] | None = None,
        *,
        source: str = "local",
        id: str | None = None,
        subject: str | None = None,
        time: Instant | None = None,
        priority: int = _MEDIUM,
        not_before: Instant | None = None,
        expires: Instant | None = None,
        causes: Iterable[Pair] = (),
        extensions: Mapping[str, str | bool | int] | None = None,
        stream: Pair | None = None,
        seq: int | None = None,
    ) -> Event:
        if (
            priority is _MEDIUM and causes == () and extensions is None and stream is None and seq is None
            and subject is None and time is None and not_before is None and expires is None
        ):  # fmt: skip  # as it mostly is: nothing of it has to be checked
            return checked_event(
                _text(type, "type"), _data(data, "data"), _text(source, "source"), _id(id, "id"),
                None, None, _MEDIUM, None, None, (), NOTHING, None, None,
            )  # fmt: skip
        return checked_event(
            _text(type, "type"),
            _data(data, "data"),
            _text(source, "source"),
            _id(id, "id"),
            _optional_text(subject, "subject"),
            _instant(time, "time"),
            _priority(priority, "priority"),
            _instant(not_before, "not_before"),
            _instant(expires, "expires"),
            _causes(causes, "causes"),
            _extensions(extensions, "extensions"),
            _stream(stream, "stream"),
            _seq(seq, "seq"),
        )

    @classmethod
    def tuple(cls, *values: Any, type: str = "tuple", **envelope: Unpack[Envelope]) -> Event:
        """An event whose data are `values` under the names "0", "1", ..."""
        return cls(type, {str(position): value for position, value in enumerate(values)}, **envelope)

    @classmethod
    def from_json(cls, text: str | bytes) -> Event:
        """Read CloudEvents 1.0 structured JSON, or the short form without `specversion`.

        InvalidEvent, and nothing else, when `text` is neither.
        """
        from vestnik.model import cloudevents

        return cloudevents.from_json(text)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Event:
        """As `from_json`, of JSON that was decoded before."""
        from vestnik.model import cloudevents

        return cloudevents.from_cloudevent(mapping)

    def to_json(self) -> str:
        """CloudEvents 1.0 structured JSON; `from_json` gives an equal event back."""
        from vestnik.model import cloudevents

        return cloudevents.to_json(self)

    def replace(self, **changes: Unpack[Changes]) -> Event:
        """This event with some attributes changed. Only those are checked."""
        contents = list(_contents(self))
        for name, value in changes.items():
            if name not in _POSITIONS:
                raise TypeError(f"an event has no attribute {name}")
            contents[_POSITIONS[name]] = _CHECKS[name](value, name)
        return checked_event(*contents)

    def stamped(self, stream: Pair, seq: int) -> Event:
        """This event as the one of its stream that has this seq; neither is checked."""
        return checked_event(*_unstamped(self), stream, seq)  # type: ignore[call-arg]  # so many they are

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"events are immutable; use event.replace({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("events are immutable")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return (
            self.id == other.id
            and _contents(self) == _contents(other)
            and _same_kinds(self.data, other.data)
            and _same_kinds(self.extensions, other.extensions)
        )

    def __hash__(self) -> int:
        return hash((self.source, self.id))

    def __repr__(self) -> str:
        shown = [repr(self.type), repr(self.data), f"source={self.source!r}", f"id={self.id!r}"]
        for name in FIELDS[4:]:
            value = getattr(self, name)
            if value != _DEFAULTS[name]:
                shown.append(f"{name}={_shown(name, value)}")
        return f"Event({', '.join(shown)})"

    def __reduce__(self) -> Any:
        return checked_event, _contents(self)


def _same_kinds(one: Any, other: Any) -> bool:
    """Whether two values that are equal in Python are equal for filters, too: TRUE is not 1, but 1 is 1.0."""
    if one is other:
        return True
    if isinstance(one, dict):
        return all(_same_kinds(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(map(_same_kinds, one, other))
    return isinstance(one, bool) is isinstance(other, bool)


def _text(value: object, path: str) -> str:
    if not value and isinstance(value, str):
        raise InvalidEvent("must not be empty", path)
    return value if type(value) is str and value.isascii() else plain_text(value, path)


def _optional_text(value: object, path: str) -> str | None:
    return None if value is None else _text(value, path)


def _id(value: object, path: str) -> str:
    return _new_id() if value is None else _text(value, path)


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


def _data(value: object, path: str) -> FrozenDict:
    return NOTHING if value is None else freeze(value)


def _instant(value: Any, path: str) -> int | None:
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
    return _text(value[0], path), _text(value[1], path)


def _extensions(value: object, path: str) -> FrozenDict:
    if value is None:
        return NOTHING
    if not isinstance(value, Mapping):
        raise InvalidEvent(f"extensions must be a map, not {kind_name(value)}", path)
    return FrozenDict({_extension_name(name, path): _extension(item, f"{path}.{name}") for name, item in value.items()})


def _extension_name(name: object, path: str) -> str:
    if type(name) is not str or not _EXTENSION_NAME.fullmatch(name):
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


_CHECKS: dict[str, Callable[[Any, str], object]] = {
    "type": _text,
    "data": _data,
    "source": _text,
    "id": _id,
    "subject": _optional_text,
    "time": _instant,
    "priority": _priority,
    "not_before": _instant,
    "expires": _instant,
    "causes": _causes,
    "extensions": _extensions,
    "stream": _stream,
    "seq": _seq,
}
_DEFAULTS: dict[str, object] = {**dict.fromkeys(FIELDS), "priority": 4, "causes": (), "extensions": {}}


def _shown(name: str, value: Any) -> str:
    return repr(format_rfc3339(value) if _CHECKS[name] is _instant else value)


def checked_event(
    type: str,
    data: FrozenDict,
    source: str,
    id: str,
    subject: str | None,
    time: int | None,
    priority: int,
    not_before: int | None,
    expires: int | None,
    causes: Pairs,
    extensions: FrozenDict,
    stream: Pair | None,
    seq: int | None,
) -> Event:
    """The event of fields that are as `Event` makes them; only that the stream is the source's own is checked here."""
    if stream is not None and stream[1] != source:
        raise InvalidEvent("a stream is the pair of a broker and the event's own source", "stream")
    draft = _Draft()
    draft.type = type
    draft.data = data
    draft.source = source
    draft.id = id
    draft.subject = subject
    draft.time = time
    draft.priority = priority
    draft.not_before = not_before
    draft.expires = expires
    draft.causes = causes
    draft.extensions = extensions
    draft.stream = stream
    draft.seq = seq
    draft.__class__ = Event
    return cast(Event, draft)
