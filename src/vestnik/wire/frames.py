"""Frames: four bytes of length, and a message as MessagePack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Union, get_args

from msgspec import DecodeError, Raw, Struct, msgpack

from vestnik.errors import FilterError, InvalidEvent, InvalidFrame
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.parser import OUTSIDE, Limits
from vestnik.wire.messages import (
    AdminA,
    AdminS,
    Advertise,
    AnyMessage,
    Delivery,
    Fetch,
    Forward,
    Malformed,
    Message,
    Notify,
    Publish,
    Refusal,
    Subscribe,
)
from vestnik.wire.packing import Plain, opened, pack, unpack

VERSION: Final = 1
"""Of the protocol. Whoever speaks another is told so and not understood."""
LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a message."""
PIECE: Final = 64 * 1024
"""Bytes of a message that is nothing but events: it is handled as a whole, and nothing else meanwhile."""
PART: Final = 1024 * 1024
"""Bytes of a message of what a neighbour wants or offers, unless it is a single change."""

_LENGTH: Final = 4
SOURCE, ID = 1, 2  # places in an event that is packed
_UNREADABLE: Final = (DecodeError, UnicodeDecodeError, InvalidEvent, RecursionError)


class _Publish(Struct, array_like=True, tag=32):
    """Publish with its events unread: one that is wrong is refused, and the others are not."""

    events: list[Raw]
    refused: list[Any] = []
    request: int = 0


class _PlainPublish(Struct, array_like=True, tag=32, gc=False):
    events: list[Plain]
    refused: list[Any] = []
    request: int = 0


class _PlainForward(Struct, array_like=True, tag=16, gc=False):
    events: list[Plain]


class _PlainDelivery(Struct, array_like=True, gc=False):
    event: Plain
    numbers: tuple[tuple[int, int], ...]
    replayed: bool = False
    gap: str = ""
    again: bool = False


class _PlainNotify(Struct, array_like=True, tag=64, gc=False):
    deliveries: list[_PlainDelivery]


def _readable(twins: dict[type, type]) -> Any:
    """What is read, where some kinds of message are read as their twins."""
    return Union[tuple([twins.get(kind, kind) for kind in get_args(AnyMessage)])]  # noqa: UP007


_ANY_EVENTS: Final = _readable({Publish: _Publish})
_PLAIN_EVENTS: Final = _readable({Publish: _PlainPublish, Forward: _PlainForward, Notify: _PlainNotify})


def _plain(value: object) -> Any:
    if isinstance(value, Event):
        return Raw(pack(value))
    if isinstance(value, Filter):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} does not travel")


_encoder = msgpack.Encoder(enc_hook=_plain)
_encode = msgpack.Encoder().encode
_HEADS: Final[dict[type[Message], bytes]] = {
    kind: b"\x92" + _encode(kind.__struct_config__.tag) for kind in (Notify, Forward, Publish)
}
"""How an array of the tag of a message and one array begins."""
_decode_any = msgpack.Decoder().decode


def frame(message: Message) -> bytes:
    """A message as it is sent. One of nothing but events, or of changes, is sent in pieces where it is large."""
    match message:
        case Notify(deliveries):
            return _in_pieces(Notify, [_delivered(one) for one in deliveries])
        case Forward(events) | Publish(events, refused=(), request=0):
            return _in_pieces(type(message), [pack(event) for event in events])
        case AdminS() | AdminA():
            return _in_parts(message)
    return _framed(type(message), _encoder.encode(message))


def filter_size(wanted: Filter) -> int:
    """Its bytes in a message."""
    return len(_encoder.encode(wanted))


def _framed(kind: type[Message], body: bytes) -> bytes:
    if len(body) > LARGEST:
        raise InvalidFrame(f"{kind.__name__} has {len(body):,} bytes; at most {LARGEST:,} are sent at once")
    return len(body).to_bytes(_LENGTH, "big") + body


def _in_pieces(kind: type[Message], items: list[bytes]) -> bytes:
    """Messages that have an array of items and nothing else; none is larger than PIECE unless one item is."""
    pieces: list[bytes] = []
    first = size = 0
    for position, item in enumerate(items):
        if size + len(item) > PIECE and position > first:
            pieces.append(_framed(kind, _body(kind, items[first:position])))
            first, size = position, 0
        size += len(item)
    pieces.append(_framed(kind, _body(kind, items[first:])))
    return b"".join(pieces)


def _in_parts(message: AdminS | AdminA) -> bytes:
    """Many changes, additions first, as several messages where they are large."""
    kind, add, remove = type(message), message.add, message.remove
    body, half = _encoder.encode(message), max(len(add), len(remove)) // 2
    if len(body) <= PART or not half:
        return _framed(kind, body)
    parts = kind(add[:half]), kind(add[half:]), kind((), remove[:half]), kind((), remove[half:])
    return b"".join([_in_parts(part) for part in parts if part.add or part.remove])


def _body(kind: type[Message], items: list[bytes]) -> bytes:
    return b"".join([_HEADS[kind], _array(len(items)), *items])


def _array(size: int) -> bytes:
    """The beginning of an array in MessagePack."""
    return bytes((0x90 | size,)) if size < 16 else b"\xdd" + size.to_bytes(4, "big")


def _delivered(delivery: Delivery) -> bytes:
    if delivery.event is None or delivery.replayed or delivery.again:
        return _encoder.encode(delivery)
    return b"\x92" + pack(delivery.event) + _encode(delivery.numbers)


class Reader:
    """Reads the messages of one connection, from bytes as they arrive.

    InvalidFrame where they are no messages: nothing after that can be understood. `limits` are for filters; `largest`
    is the most bytes of a message.
    """

    def __init__(self, limits: Limits | None = OUTSIDE, largest: int = LARGEST) -> None:
        self._limits = limits
        self._largest = largest
        self._rest = bytearray()
        self._decode = msgpack.Decoder(_ANY_EVENTS, dec_hook=self._read).decode
        self._decode_plain = msgpack.Decoder(_PLAIN_EVENTS, dec_hook=self._read).decode

    def know(self, largest: int, limits: Limits | None) -> None:
        """From the next message on, other limits hold."""
        self._largest, self._limits = largest, limits

    def forget(self) -> None:
        """Let go of what has come of a message that will not be complete."""
        self._rest = bytearray()

    def read(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete with `data`."""
        self._rest += data
        start = 0
        try:
            while len(self._rest) - start >= _LENGTH:
                length = int.from_bytes(self._rest[start : start + _LENGTH], "big")
                if length > self._largest:
                    raise InvalidFrame(f"a message of {length:,} bytes; at most {self._largest:,} are taken")
                end = start + _LENGTH + length
                if len(self._rest) < end:
                    break
                body = bytes(self._rest[start + _LENGTH : end])
                start = end
                yield self._message(body)
        finally:
            del self._rest[:start]

    def _message(self, body: bytes) -> Message:
        try:
            try:
                message = self._decode_plain(body)
            except _UNREADABLE:
                message = self._decode(body)
        except FilterError as error:
            return self._malformed(body, str(error))
        except _UNREADABLE as error:
            raise InvalidFrame(str(error)) from error
        whole = _WHOLE.get(type(message))
        return message if whole is None else whole(message)

    def _malformed(self, body: bytes, reason: str) -> Malformed:
        try:
            return Malformed(reason, request=_request_of(_decode_any(body)))
        except _UNREADABLE as error:
            raise InvalidFrame(str(error)) from error

    def _read(self, kind: type, value: Any) -> Any:
        if kind is Event:
            return unpack(value)
        if isinstance(value, str):
            return Filter.parse(value, limits=self._limits)
        return Filter.from_dict(value, limits=self._limits)


def _published(message: _Publish) -> Publish:
    events: list[Event] = []
    refused: list[Refusal] = []
    for raw in message.events:
        packed = None
        try:
            packed = _decode_any(raw)
            events.append(unpack(packed))
        except _UNREADABLE as error:
            refused.append(Refusal(_text_at(packed, ID), str(error), _text_at(packed, SOURCE)))
    return Publish(tuple(events), tuple(refused), request=message.request)


def _plain_published(message: _PlainPublish) -> Publish:
    return Publish(tuple([opened(event) for event in message.events]), request=message.request)


def _plain_forwarded(message: _PlainForward) -> Forward:
    return Forward(tuple([opened(event) for event in message.events]))


def _plain_notified(message: _PlainNotify) -> Notify:
    deliveries = [Delivery(opened(d.event), d.numbers, d.replayed, d.gap, d.again) for d in message.deliveries]
    return Notify(tuple(deliveries))


_WHOLE: Final[dict[type, Callable[[Any], Message]]] = {
    _Publish: _published,
    _PlainPublish: _plain_published,
    _PlainForward: _plain_forwarded,
    _PlainNotify: _plain_notified,
}
"""How a message is made of its twin."""


def _request_of(message: list[Any]) -> int:
    """The number of a request whose filter is wrong; 0 where it has none, or is none."""
    for kind in (Subscribe, Advertise, Fetch):
        fields = (type, *kind.__struct_fields__)
        if message[0] == kind.__struct_config__.tag and len(message) == len(fields) and isinstance(message[-1], int):
            return message[-1]
    return 0


def _text_at(packed: Any, place: int) -> str:
    """The id or the source of what is no event, if it has one."""
    has_text = isinstance(packed, list) and len(packed) > place and isinstance(packed[place], str)
    return packed[place] if has_text else ""
