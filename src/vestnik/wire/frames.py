"""Frames: four bytes of length, and a message as MessagePack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from msgspec import Raw, Struct, msgpack, structs

from vestnik.errors import FilterError, InvalidFrame
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.parser import OUTSIDE, Limits
from vestnik.wire.messages import (
    AdminA,
    AdminS,
    Advertise,
    AnyMessage,
    Fetch,
    Forward,
    Malformed,
    Message,
    Notify,
    Publish,
    Refusal,
    Review,
    Subscribe,
)
from vestnik.wire.opening import opened
from vestnik.wire.packing import UNREADABLE, decode_plain, unpack

VERSION: Final = 1
"""Of the protocol. Whoever speaks another is told so and not understood."""
LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a message."""
PIECE: Final = 64 * 1024
"""Bytes of a message that is nothing but events, or some more: it is handled as a whole, and nothing else meanwhile."""
PART: Final = 1024 * 1024
"""Bytes of a message of what a neighbour wants or offers, unless it is a single change."""

_LENGTH: Final = 4
SOURCE, ID = 1, 2  # places in an event that is packed


class _Publish(Struct, array_like=True, tag=Publish.__struct_config__.tag):
    """Publish with its events unread: one that is wrong is refused, and the others are not."""

    events: list[Raw]
    refused: list[Any] = []
    request: int = 0


def _plain(value: object) -> Any:
    if isinstance(value, Filter):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} does not travel")


_encode = msgpack.Encoder(enc_hook=_plain).encode
_decode_publish = msgpack.Decoder(_Publish).decode


def frame(message: Message) -> bytes:
    """A message as it is sent. One of nothing but events, or of changes, is sent in pieces where it is large."""
    try:
        body = _encode(message)
    except (RecursionError, OverflowError) as error:
        raise InvalidFrame(f"{type(message).__name__} cannot be sent: {error}") from error
    if len(body) > 2 * PIECE:
        match message:
            case Notify(items) | Forward(items) | Publish(items, refused=(), request=0) if len(items) > 1:
                return _in_pieces(type(message), items, -(-len(body) // PIECE))
            case AdminS(add, remove) | AdminA(add, remove) if len(body) > PART and max(len(add), len(remove)) > 1:
                return _in_parts(type(message), add, remove)
    if len(body) > LARGEST:
        raise InvalidFrame(f"{type(message).__name__} has {len(body):,} bytes; at most {LARGEST:,} are sent at once")
    return len(body).to_bytes(_LENGTH, "big") + body


def filter_size(wanted: Filter) -> int:
    """Its bytes in a message."""
    return len(_encode(wanted))


def _in_pieces(kind: type[Message], items: tuple[Any, ...], count: int) -> bytes:
    """Some `count` messages that have an array of items and nothing else."""
    size = max(1, len(items) // count)
    return b"".join([frame(kind(items[start : start + size])) for start in range(0, len(items), size)])


def _in_parts(kind: type[Message], add: tuple[Any, ...], remove: tuple[Any, ...]) -> bytes:
    """Many changes, additions first, as several messages."""
    half = max(len(add), len(remove)) // 2
    parts = (add[:half], ()), (add[half:], ()), ((), remove[:half]), ((), remove[half:])
    return b"".join([frame(kind(*part)) for part in parts if any(part)])


class Reader:
    """Reads the messages of one connection, from bytes as they arrive.

    InvalidFrame where they are no messages: nothing after that can be understood. `limits` are for filters; `largest`
    is the most bytes of a message.
    """

    def __init__(self, limits: Limits | None = OUTSIDE, largest: int = LARGEST) -> None:
        self._limits = limits
        self._largest = largest
        self._rest = bytearray()
        self._decode = msgpack.Decoder(AnyMessage, dec_hook=self._read).decode

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
                message: Message = self._decode(body)
                if isinstance(message, Publish) and message.refused:  # which is said here, and not by who publishes
                    return structs.replace(message, refused=())
                return message
            except UNREADABLE:
                return _published(body) or opened(body, self._read)
        except FilterError as error:
            return self._malformed(body, str(error))
        except UNREADABLE as error:
            raise InvalidFrame(str(error)) from error

    def _malformed(self, body: bytes, reason: str) -> Malformed:
        try:
            return Malformed(reason, request=_request_of(decode_plain(body)))
        except UNREADABLE as error:
            raise InvalidFrame(str(error)) from error

    def _read(self, kind: type, value: Any) -> Any:
        if isinstance(value, str):
            return Filter.parse(value, limits=self._limits)
        return Filter.from_dict(value, limits=self._limits)


def _published(body: bytes) -> Publish | None:
    """A Publish in which something is no event; None where it is another message."""
    try:
        message = _decode_publish(body)
    except UNREADABLE:
        return None
    events: list[Event] = []
    refused: list[Refusal] = []
    for raw in message.events:
        try:
            events.append(unpack(raw))
        except UNREADABLE as error:
            refused.append(Refusal(_text_at(raw, ID), str(error), _text_at(raw, SOURCE)))
    return Publish(tuple(events), tuple(refused), request=message.request)


def _request_of(message: list[Any]) -> int:
    """The number of a request whose filter is wrong; 0 where it has none, or is none."""
    for kind in (Subscribe, Advertise, Fetch, Review):
        fields = (type, *kind.__struct_fields__)
        if message[0] == kind.__struct_config__.tag and len(message) == len(fields) and isinstance(message[-1], int):
            return message[-1]
    return 0


def _text_at(raw: Raw, place: int) -> str:
    """The id or the source of what is no event, if it has one."""
    with suppress(*UNREADABLE):
        packed: list[Any] = decode_plain(raw)
        if isinstance(packed, list) and len(packed) > place and isinstance(packed[place], str):
            return str(packed[place])
    return ""
