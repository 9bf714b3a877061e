"""Events as MessagePack: type, source, id, data, a map of what seldom is there; then the broker and the seq, if any.

A decoder checks them as it reads. What is nested deeper than it follows, and what is wrong, is taken apart by Event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from msgspec import DecodeError, Raw, Struct, msgpack
from msgspec.structs import force_setattr

from vestnik.errors import InvalidEvent
from vestnik.model.events import Event, Seldom, Text

UNREADABLE: Final = (DecodeError, UnicodeDecodeError, InvalidEvent, RecursionError)
"""What is raised of bytes that are no events, or no messages."""
TAKEN: Final = 1
"""The kind of a journal's record that holds a client and an event that it published, as `pack_taken` packs them."""

if TYPE_CHECKING:
    Carried: TypeAlias = Event | Raw
else:
    Carried = Event  # what a decoder makes of it
"""An event in a message, which may be packed already."""

EVENT_FIELDS: Final = 7
"""Fields of an event that has a broker and a seq."""
NIL: Final = Raw(b"\xc0")

_encode = msgpack.Encoder().encode
_encode_in_order = msgpack.Encoder(order="deterministic").encode
split_all: Final = msgpack.Decoder(list[Raw]).decode
"""The events that were packed as one, each as it was packed."""
split_taken: Final = msgpack.Decoder(tuple[str, Raw]).decode
"""A client, and an event as it was packed."""
pack: Final[Callable[[Event], bytes]] = _encode
decode_plain: Final = msgpack.Decoder().decode
_decode_event = msgpack.Decoder(Event).decode


class Outline(Struct, frozen=True, array_like=True, gc=False):
    """A packed event of which only the names and the seq are read."""

    type: Raw
    source: Text
    id: Text
    body: Raw
    seldom: Raw
    broker: Raw = NIL
    seq: int | None = None


outline: Final[Callable[[bytes | Raw], Outline]] = msgpack.Decoder(Outline).decode
"""Read the outline of a packed event; raise one of UNREADABLE if it has none."""


def unpack(packed: bytes | Raw) -> Event:
    """The event that was packed; one of UNREADABLE where it is none."""
    try:
        return _decode_event(packed)
    except UNREADABLE:
        return event_of(decode_plain(packed))


def unpacked(carried: Iterable[Carried]) -> tuple[Event, ...]:
    """Return events of which each may be packed."""
    return tuple([unpack(one) if isinstance(one, Raw) else one for one in carried])


class Carrying:
    """Mixes into a struct whose field `carried` is events, of which each may be packed.

    A broker that has an event packed lets it be Raw: it is not packed again, and is unpacked only if somebody looks at
    `events`.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        carried: tuple[Carried, ...]

    @property
    def is_packed(self) -> bool:
        return not self.carried or self.carried[0].__class__ is Raw

    @property
    def packed(self) -> Sequence[bytes | Raw]:
        """The events, each packed."""
        return cast(tuple[Raw, ...], self.carried) if self.is_packed else tuple(map(pack, self.events))

    @property
    def events(self) -> tuple[Event, ...]:
        if self.is_packed:
            force_setattr(self, "carried", unpacked(self.carried))  # type: ignore[arg-type]  # it is a struct
        return cast(tuple[Event, ...], self.carried)


def digest(event: Event) -> bytes:
    """Sixteen bytes by which an event is known again. The order of fields does not matter; 1 and 1.0 differ."""
    return blake2b(_encode_in_order(event), digest_size=16).digest()


def pack_all(events: Sequence[Event]) -> bytes:
    """Events as one, in no more memory than that takes: an encoder leaves room behind what it writes."""
    return bytes(memoryview(_encode(events)))


def unpack_all(packed: bytes) -> Iterator[Event]:
    """The events that were packed as one."""
    return map(unpack, split_all(packed))


def pack_taken(client: str, event: Event | bytes) -> bytes:
    """Pack an event, which may be packed already, and the client that published it."""
    return _encode((client, Raw(event) if isinstance(event, bytes) else event))


def has_seq(packed: bytes | Raw) -> bool:
    """Return whether a packed event has its seq. One that waits for its time has none."""
    fields = split_all(packed)
    return len(fields) == EVENT_FIELDS and fields[-1] != NIL


def unpack_taken(packed: bytes | memoryview) -> tuple[str, Event]:
    client, event = split_taken(packed)
    return client, unpack(event)


def event_of(packed: Any) -> Event:
    """The event of a decoded array; InvalidEvent, and nothing else, where it is none."""
    if not isinstance(packed, list) or not 5 <= len(packed) <= 7 or not isinstance(packed[4], dict | None):
        raise InvalidEvent("an event is an array of type, source, id, data and a map")
    type, source, id, data, seldom, broker, seq = (*packed, None, None)[:7]
    if id is None or data is None:
        raise InvalidEvent("must not be null", "id" if id is None else "data")
    unknown = [name for name in seldom or () if name not in Seldom.__struct_fields__]
    if unknown:
        raise InvalidEvent(f"an event has no attribute {unknown[0]!a}")
    stream = None if broker is None else (broker, source)
    try:
        return Event(type, data, source=source, id=id, **(seldom or {}), stream=stream, seq=seq)
    except TypeError as error:
        raise InvalidEvent(str(error)) from None
