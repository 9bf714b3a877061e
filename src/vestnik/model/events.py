"""Events: an envelope and `data`, immutable, checked when they are made.

An event is laid out as it travels: as an array of type, source, id, data, what seldom is there, and the broker and the
seq of its stream. The decoder that reads one checks it as it goes; nothing is looked at twice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeAlias, Unpack, final

from msgspec import Meta, Struct, StructMeta
from msgspec.structs import force_setattr
from msgspec.structs import replace as struct_replace

from vestnik.errors import InvalidEvent
from vestnik.model.envelope import (
    CHECKS,
    CLOUDEVENT_NAMES,
    EXTENSION_NAME,
    MEDIUM,
    NOTHING,
    Changes,
    Envelope,
    Instant,
    Pair,
    Pairs,
    id_of,
    instant_of,
    text_of,
)
from vestnik.model.frozen import MAX_INT, FrozenDict, freeze, frozen
from vestnik.model.times import FIRST, LAST, format_rfc3339

if TYPE_CHECKING:
    from inspect import Signature

FIELDS = (
    "type", "data", "source", "id", "subject", "time", "priority", "not_before", "expires", "causes", "extensions",
    "stream", "seq",
)  # fmt: skip
"""Everything an event is made of, in the order it is shown."""

Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Finite: TypeAlias = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Scalar: TypeAlias = bool | Annotated[int, Meta(le=MAX_INT)] | Finite | str | None
Nested: TypeAlias = Scalar | list[Scalar] | dict[str, Scalar]
Deeper: TypeAlias = Scalar | list[Nested] | dict[str, Nested]
Deepest: TypeAlias = Scalar | list[Deeper] | dict[str, Deeper]
"""As deep as the decoder follows. What is deeper is taken apart by `Event`."""
Micros: TypeAlias = Annotated[int, Meta(ge=FIRST, le=LAST)]
Extension: TypeAlias = bool | Annotated[int, Meta(ge=-(2**31), lt=2**31)] | str
ExtensionName: TypeAlias = Annotated[
    str, Meta(pattern=rf"\A(?!(?:{'|'.join(sorted(CLOUDEVENT_NAMES))})\Z){EXTENSION_NAME}\Z")
]


class Seldom(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What most events do not say."""

    subject: Text | None = None
    time: Micros | None = None
    priority: Annotated[int, Meta(ge=0, le=9)] = MEDIUM
    not_before: Micros | None = None
    expires: Micros | None = None
    causes: tuple[tuple[Text, Text], ...] = ()
    extensions: dict[ExtensionName, Extension] = NOTHING


_ORDINARY: Final = Seldom()


class _Checked(StructMeta):
    """Checks what an event is made of; what a decoder makes, it has checked itself."""

    __match_args__ = ("type", "data")

    @property
    def __signature__(cls) -> Signature:  # noqa: N805  # a class
        from inspect import signature

        found = signature(_Checked._with_more)
        return found.replace(parameters=[one for name, one in found.parameters.items() if name != "cls"])

    def __call__(
        cls,  # noqa: N805  # a class
        type: str,
        data: dict[str, Any] | None = None,
        *,
        source: str = "local",
        id: str | None = None,
        **others: Any,
    ) -> Event:
        if others:
            return cls._with_more(type, data, source=source, id=id, **others)
        body = NOTHING if data is None else freeze(data)
        return _made(text_of(type, "type"), text_of(source, "source"), id_of(id, "id"), body, None)

    def _with_more(
        cls,  # noqa: N805  # a class
        type: str,
        data: dict[str, Any] | None = None,
        *,
        source: str = "local",
        id: str | None = None,
        subject: str | None = None,
        time: Instant | None = None,
        priority: int = MEDIUM,
        not_before: Instant | None = None,
        expires: Instant | None = None,
        causes: Iterable[Pair] = (),
        extensions: Mapping[str, str | bool | int] | None = None,
        stream: Pair | None = None,
        seq: int | None = None,
    ) -> Event:
        """An event that says more than most."""
        given = (
            type, data, source, id, subject, time, priority, not_before, expires, causes, extensions, stream, seq
        )  # fmt: skip
        return _event(*[CHECKS[name](value, name) for name, value in zip(FIELDS, given, strict=True)])


@final
class Event(Struct, metaclass=_Checked, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False, eq=False):
    """What happened. Equal by content, identified for ever by `(source, id)`, which is what it hashes by.

    `id` is random unless given. `data` and `extensions` are read-only copies of what was given. Instants are kept as
    microseconds since 1970 UTC. `stream`, the pair (broker, source), and `seq` are set by the broker that accepts it.
    InvalidEvent, naming the attribute or the path in `data`, when something does not fit.

    `body` and `seldom` are what it is made of, as it was read, and not to be changed.
    """

    type: Text
    source: Text
    id: Text
    body: dict[str, Deepest]
    seldom: Seldom | None
    broker: Text | None = None
    seq: Annotated[int, Meta(ge=1, le=MAX_INT)] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            type: str,
            data: dict[str, Any] | None = None,
            *,
            source: str = "local",
            id: str | None = None,
            subject: str | None = None,
            time: Instant | None = None,
            priority: int = MEDIUM,
            not_before: Instant | None = None,
            expires: Instant | None = None,
            causes: Iterable[Pair] = (),
            extensions: Mapping[str, str | bool | int] | None = None,
            stream: Pair | None = None,
            seq: int | None = None,
        ) -> None: ...

    @property
    def data(self) -> FrozenDict:
        body = self.body
        if body.__class__ is not FrozenDict:
            body = frozen(body)
            force_setattr(self, "body", body)
        return body

    @property
    def subject(self) -> str | None:
        return None if self.seldom is None else self.seldom.subject

    @property
    def time(self) -> int | None:
        return None if self.seldom is None else self.seldom.time

    @property
    def priority(self) -> int:
        return MEDIUM if self.seldom is None else self.seldom.priority

    @property
    def not_before(self) -> int | None:
        return None if self.seldom is None else self.seldom.not_before

    @property
    def expires(self) -> int | None:
        return None if self.seldom is None else self.seldom.expires

    @property
    def causes(self) -> Pairs:
        return () if self.seldom is None else self.seldom.causes

    @property
    def extensions(self) -> FrozenDict:
        return NOTHING if self.seldom is None else frozen(self.seldom.extensions)

    @property
    def stream(self) -> Pair | None:
        return None if self.broker is None else (self.broker, self.source)

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
        contents = {name: getattr(self, name) for name in FIELDS}
        for name, value in changes.items():
            if name not in contents:
                raise TypeError(f"an event has no attribute {name}")
            contents[name] = CHECKS[name](value, name)
        return _event(*contents.values())

    def __replace__(self, **changes: Any) -> Event:
        return self.replace(**changes)

    def stamped(self, broker: str, seq: int) -> Event:
        """This event as the one that a broker gave this seq; neither is checked."""
        return struct_replace(self, broker=broker, seq=seq)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return (
            self.id == other.id
            and _contents(self) == _contents(other)
            and (self.seldom or _ORDINARY) == (other.seldom or _ORDINARY)
            and _same_kinds(self.body, other.body)
            and _same_kinds(self.extensions, other.extensions)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

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
        return _made, (self.type, self.source, self.id, self.data, self.seldom, self.broker, self.seq)


def _refuse(event: Event, name: str, *value: object) -> NoReturn:
    raise AttributeError(f"events are immutable; use event.replace({name}=...)")


for _name in ("__setattr__", "__delattr__"):
    setattr(Event, _name, _refuse)  # in place of what a frozen Struct has

_Checked.__call__.__qualname__ = _Checked._with_more.__qualname__ = "Event"

_made: Final[Callable[..., Event]] = partial(StructMeta.__call__, Event)
"""An event of what is stored in it, which is not checked."""
_contents = attrgetter("type", "source", "id", "body", "broker", "seq")
_DEFAULTS: dict[str, object] = {**dict.fromkeys(FIELDS), "priority": MEDIUM, "causes": (), "extensions": {}}


def _event(
    type: Any,
    data: Any,
    source: Any,
    id: Any,
    subject: Any,
    time: Any,
    priority: Any,
    not_before: Any,
    expires: Any,
    causes: Any,
    extensions: Any,
    stream: Any,
    seq: Any,
) -> Event:
    """The event of attributes that were checked one by one."""
    if stream is not None and stream[1] != source:
        raise InvalidEvent("a stream is the pair of a broker and the event's own source", "stream")
    seldom = Seldom(subject, time, priority, not_before, expires, causes, extensions or NOTHING)
    ordinary = seldom == _ORDINARY
    return _made(type, source, id, data, None if ordinary else seldom, None if stream is None else stream[0], seq)


def _same_kinds(one: Any, other: Any) -> bool:
    """Whether two values that are equal in Python are equal for filters, too: TRUE is not 1, but 1 is 1.0."""
    if one is other:
        return True
    if isinstance(one, dict):
        return all(_same_kinds(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(map(_same_kinds, one, other))
    return isinstance(one, bool) is isinstance(other, bool)


def _shown(name: str, value: Any) -> str:
    return repr(format_rfc3339(value) if CHECKS[name] is instant_of else value)
