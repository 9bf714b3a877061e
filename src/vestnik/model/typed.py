"""Typed events: a Python class stands for an event type, its subclasses for the descendants."""

from __future__ import annotations

from typing import Any, ClassVar, Self, Unpack, cast, dataclass_transform

import msgspec

from vestnik.errors import InvalidEvent
from vestnik.model.envelope import Envelope
from vestnik.model.events import Event

_classes: dict[str, list[type[TypedEvent]]] = {}
_OWN_NAMES = frozenset({"event", "event_type", "from_event"})


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class TypedEventMeta(msgspec.StructMeta):
    """Gives each class its event type, and keeps the classes by it."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, type: str | None = None, **options: Any
    ) -> TypedEventMeta:
        parents = [cast(Any, base).event_type for base in bases if isinstance(base, TypedEventMeta)]
        if parents:
            _check_fields(name, namespace)
            namespace["event_type"] = _type_name(name, parents, type)
        cls: Any = super().__new__(mcls, name, bases, namespace, **options)
        _classes.setdefault(cls.event_type, []).append(cls)
        return cast(TypedEventMeta, cls)


class TypedEvent(msgspec.Struct, metaclass=TypedEventMeta, frozen=True):
    """Base of typed events: `class Quote(TypedEvent, type="market.quote"): symbol: str; price: float`.

    A subclass stands for a descendant of its parent's type: the one it names with `type=`, or the parent's type and
    its own name in lower case. TypeError when what it names is no descendant. The fields are the event's data.
    """

    event_type: ClassVar[str] = ""

    def event(self, **envelope: Unpack[Envelope]) -> Event:
        """The event that says this."""
        return Event(self.event_type, msgspec.to_builtins(self, str_keys=True), **envelope)

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """`event` as the most specific class, this one or below it, that stands for its type or an ancestor.

        InvalidEvent when there is none, or when the data do not fit its fields. Data without a field is left out.
        """
        kind = cls._most_specific(event.type)
        try:
            return msgspec.convert(event.data, type=kind, str_keys=True)
        except msgspec.ValidationError as error:
            reason, _, place = str(error).partition(" - at `$")
            raise InvalidEvent(f"no {kind.__name__}: {reason}", f"data{place.rstrip('`')}") from None

    @classmethod
    def _most_specific(cls, event_type: str) -> type[Self]:
        name = event_type
        while name:
            for kind in reversed(_classes.get(name, ())):
                if issubclass(kind, cls):
                    return kind
            name = name.rpartition(".")[0]
        raise InvalidEvent(f"{event_type} is not {cls.event_type or 'the type of a class'} or below it", "type")


def _type_name(name: str, parents: list[str], given: str | None) -> str:
    event_type = f"{parents[0]}.{name.lower()}".removeprefix(".") if given is None else given
    for parent in parents:
        if parent and not event_type.startswith(f"{parent}."):
            raise TypeError(f"the type of {name}, {event_type}, is no descendant of {parent}")
    if not all(event_type.split(".")):
        raise TypeError(f"the type of {name}, {event_type}, has an empty part")
    return event_type


def _check_fields(name: str, namespace: dict[str, Any]) -> None:
    taken = _OWN_NAMES.intersection(namespace.get("__annotations__", ()))
    if taken:
        raise TypeError(f"{name} cannot have fields named {', '.join(sorted(taken))}")
