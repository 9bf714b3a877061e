"""Frames: four bytes of length, and a message as MessagePack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Union, get_args

from msgspec import DecodeError, Raw, Struct, msgpack

from vestnik.errors import FilterError, InvalidEvent, InvalidFrame
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.parser import OUTSIDE, Limits
from vestnik.wire.messages import Advertise, AnyMessage, Fetch, Malformed, Message, Publish, Refusal, Subscribe
from vestnik.wire.packing import pack, unpack

VERSION: Final = 1
"""Of the protocol. Whoever speaks another is told so and not understood."""
LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a message."""

_LENGTH: Final = 4
_UNREADABLE: Final = (DecodeError, UnicodeDecodeError, InvalidEvent, RecursionError)


class _Publish(Struct, array_like=True, tag=32):
    """Publish with its events unread: one that is wrong is refused, and the others are not."""

    events: list[Raw]
    refused: list[Any] = []
    request: int = 0


_READABLE: Final = Union[tuple([_Publish if kind is Publish else kind for kind in get_args(AnyMessage)])]  # noqa: UP007


def _plain(value: object) -> Any:
    if isinstance(value, Event):
        return Raw(pack(value))
    if isinstance(value, Filter):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} does not travel")


_encoder = msgpack.Encoder(enc_hook=_plain)
_decode_any = msgpack.Decoder().decode


def frame(message: Message) -> bytes:
    """A message as it is sent."""
    body = _encoder.encode(message)
    if len(body) > LARGEST:
        raise InvalidFrame(f"{type(message).__name__} has {len(body):,} bytes; at most {LARGEST:,} are sent at once")
    return len(body).to_bytes(_LENGTH, "big") + body


class Reader:
    """Reads the messages of one connection, from bytes as they arrive.

    InvalidFrame where they are no messages: nothing after that can be understood. `limits` are for filters; `largest`
    is the most bytes of a message.
    """

    def __init__(self, limits: Limits | None = OUTSIDE, largest: int = LARGEST) -> None:
        self._limits = limits
        self._largest = largest
        self._rest = bytearray()
        self._decode = msgpack.Decoder(_READABLE, dec_hook=self._read).decode

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
            message = self._decode(body)
        except FilterError as error:
            return self._malformed(body, str(error))
        except _UNREADABLE as error:
            raise InvalidFrame(str(error)) from error
        return _published(message) if isinstance(message, _Publish) else message

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
            refused.append(Refusal(_id_of(packed), str(error)))
    return Publish(tuple(events), tuple(refused), request=message.request)


def _request_of(message: list[Any]) -> int:
    """The number of a request whose filter is wrong; 0 where it has none, or is none."""
    for kind in (Subscribe, Advertise, Fetch):
        fields = (type, *kind.__struct_fields__)
        if message[0] == kind.__struct_config__.tag and len(message) == len(fields) and isinstance(message[-1], int):
            return message[-1]
    return 0


def _id_of(packed: Any) -> str:
    """The id of what is no event, if it has one."""
    has_id = isinstance(packed, list) and len(packed) > 2 and isinstance(packed[2], str)
    return packed[2] if has_id else ""
