"""Frames: four bytes of length, and a message as MessagePack."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, get_args

from msgspec import Raw, Struct, msgpack, structs

from vestnik.errors import FilterError, FilterTooComplex, InvalidFrame
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.frozen import MAX_DEPTH
from vestnik.model.parser import OUTSIDE, Limits
from vestnik.model.work import STEPS, bounded
from vestnik.wire.bounds import LARGEST, Bounds, elements, length_of, values_in
from vestnik.wire.known import AnyMessage
from vestnik.wire.messages import (
    AdminA,
    AdminS,
    Advertise,
    Announce,
    Delivery,
    Fetch,
    Goodbye,
    Hello,
    Malformed,
    Message,
    NodeId,
    Notify,
    Publish,
    Refusal,
    Review,
    Subscribe,
    Welcome,
    count_of,
    split,
)
from vestnik.wire.opening import opened
from vestnik.wire.origins import Routed
from vestnik.wire.packing import UNREADABLE, decode_plain, split_all, unpack

VERSION: Final = 3
"""Of the protocol. Whoever speaks another is told so and not understood."""
PIECE: Final = 64 * 1024
"""Bytes of a message that is nothing but events, or some more: it is handled as a whole, and nothing else meanwhile."""
PART: Final = 1024 * 1024
"""Bytes of a message of what a neighbour wants or offers, unless it is a single change."""

EASY: Final = 2_000
"""Steps that the filters of a message may cost on the event loop: a few milliseconds."""
QUICKLY: Final = 2 * PIECE
"""Bytes up to which a message is read on the event loop."""
SMALL: Final = 16 * 1024
"""Bytes below which pieces of a message that is not complete are put together."""
REASONS: Final = 10
"""Number of entries of a Publish that are refused with the full reason."""
LONGEST_REASON: Final = 200
"""Characters of such a reason."""

_LENGTH: Final = 4
_length_at = struct.Struct(">I").unpack_from
_FIELDS: Final = 32
"""More than any message has."""
SOURCE, ID = 1, 2  # places in an event that is packed


class TakesLong(Exception):
    """Reading a message exceeds the budget of the event loop."""


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
_First: TypeAlias = Hello | Welcome | Goodbye
_decode_first = msgpack.Decoder(_First).decode


def _tags_of(kinds: object) -> frozenset[object]:
    """Return the tags of a union of messages."""
    return frozenset([kind.__struct_config__.tag for kind in get_args(kinds)])


_LATER_TAGS: Final = _tags_of(AnyMessage) - _tags_of(_First)


def frame(message: Message) -> bytes:
    """A message as it is sent. One of nothing but events, or of changes, is sent in pieces where it is large."""
    try:
        body = _encode(message)
    except (RecursionError, OverflowError) as error:
        raise InvalidFrame(f"{type(message).__name__} cannot be sent: {error}") from error
    if len(body) > 2 * PIECE:
        match message:
            case Notify(deliveries, logs) if (count := count_of(deliveries)) > 1:
                return b"".join(_notifications(deliveries, logs, max(1, count * PIECE // len(body))))
            case Announce(items) | Publish(items, refused=(), request=0) if len(items) > 1:
                return _in_pieces(type(message), items, -(-len(body) // PIECE))
            case Routed(origin=origin, carried=carried) if len(carried) > 1:
                return _in_pieces(partial(Routed, origin), carried, -(-len(body) // PIECE))
            case AdminS(add, remove) | AdminA(add, remove) if len(body) > PART and max(len(add), len(remove)) > 1:
                return _in_parts(type(message), add, remove)
    if len(body) > LARGEST:
        raise InvalidFrame(f"{type(message).__name__} has {len(body):,} bytes; at most {LARGEST:,} are sent at once")
    return len(body).to_bytes(_LENGTH, "big") + body


def filter_size(wanted: Filter) -> int:
    """Its bytes in a message."""
    return len(_encode(wanted))


def _in_pieces(kind: Callable[[tuple[Any, ...]], Message], items: tuple[Any, ...], count: int) -> bytes:
    """Some `count` messages that have an array of items and nothing else."""
    size = max(1, len(items) // count)
    return b"".join([frame(kind(items[start : start + size])) for start in range(0, len(items), size)])


def _notifications(
    deliveries: tuple[Delivery, ...], logs: tuple[tuple[NodeId, int], ...], size: int
) -> Iterator[bytes]:
    """Yield messages of `size` notifications each."""
    while deliveries:
        some, deliveries = split(deliveries, size)
        yield frame(Notify(some, logs))


def _in_parts(kind: type[Message], add: tuple[Any, ...], remove: tuple[Any, ...]) -> bytes:
    """Many changes, additions first, as several messages."""
    half = max(len(add), len(remove)) // 2
    parts = (add[:half], ()), (add[half:], ()), ((), remove[:half]), ((), remove[half:])
    return b"".join([frame(kind(*part)) for part in parts if any(part)])


class Reader:
    """Reads the messages of one connection, from bytes as they arrive.

    InvalidFrame where they are no messages: nothing after that can be understood. What a `stranger` says is read as
    what may come first on a connection, and as nothing else, until it is known who it is.
    """

    def __init__(
        self,
        limits: Limits | None = OUTSIDE,
        largest: int = LARGEST,
        *,
        stranger: bool = False,
        bounds: Bounds | None = None,
    ) -> None:
        self._bounds = bounds or Bounds(largest, limits)
        self._is_stranger = stranger
        self._rest = b""
        self._start = 0  # of what was not read yet
        self._pieces: list[bytes | bytearray] = []  # which have come after it, of a message that is not complete
        self._missing = 0  # bytes of that message, if they are known
        self._easy: float | None = None  # steps that are left for the filters of a message
        self._decode = msgpack.Decoder(AnyMessage, dec_hook=self._read).decode

    def know(self, bounds: Bounds) -> None:
        """From the next message on, these bounds hold, and all messages are understood."""
        self._bounds, self._is_stranger = bounds, False

    def forget(self) -> None:
        """Let go of what has come of a message that will not be complete."""
        self._rest, self._start, self._missing = b"", 0, 0
        self._pieces.clear()

    @property
    def is_amid(self) -> bool:
        """Whether the length of a message has come, and not all of the rest."""
        return self._missing > 0

    def read(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete with `data`."""
        self.add(data)
        while (body := self.next_body()) is not None:
            yield self.message(body)

    def add(self, data: bytes) -> None:
        """Take what has arrived. It is copied only if a message before it is not complete, and then once."""
        if len(data) < self._missing:
            self._missing -= len(data)
            self._keep(data)
            return
        if self._start < len(self._rest):
            data = b"".join((memoryview(self._rest)[self._start :], *self._pieces, data))
        self._rest, self._start, self._missing = data, 0, 0
        self._pieces.clear()

    def _keep(self, piece: bytes) -> None:
        """Keep a piece of a message. Small ones are put together: each by itself takes more memory than its bytes."""
        if len(piece) >= SMALL:
            self._pieces.append(piece)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += piece
        else:
            self._pieces.append(bytearray(piece))

    def next_body(self) -> bytes | None:
        """Return the bytes of the next complete message, for `message`, or None."""
        rest, start = self._rest, self._start + _LENGTH
        if len(rest) < start:
            return None
        (length,) = _length_at(rest, self._start)
        if length > self._bounds.largest:
            raise InvalidFrame(f"a message of {length:,} bytes; at most {self._bounds.largest:,} are taken")
        end = start + length
        if len(rest) < end:
            self._missing = self._missing or end - len(rest)
            return None
        self._start = end
        return rest[start:end]

    def message(self, body: bytes, *, quickly: bool = False) -> Message:
        """Decode a message; raise TakesLong if it should be done `quickly` and exceeds the budget.

        Without `quickly` it may run on another thread, as long as nothing else is read here meanwhile.
        """
        if self._is_stranger:
            return _first_message(body)
        if quickly and len(body) > QUICKLY:
            raise TakesLong
        self._easy = EASY if quickly else None
        try:
            if self._bounds.values is not None and (refused := self._too_much(body, self._bounds.values)):
                return refused
            try:
                message: Message = self._decode(body)
            except UNREADABLE:
                return self._opened(body)
            return self._within_bounds(message, body) if type(message) is Publish else message
        except FilterError as error:
            return self._malformed(body, str(error))
        except UNREADABLE as error:
            raise InvalidFrame(str(error)) from error

    def _opened(self, body: bytes) -> Message:
        """Decode what the decoder does not follow, or a Publish in which something is no event."""
        packed = _publish_in(body)
        if packed is None:
            return opened(body, self._read)
        return self._too_many(body, len(packed.events)) or _published(packed)

    def _within_bounds(self, message: Publish, body: bytes) -> Message:
        if message.refused:  # which is said here, and not by who publishes
            message = structs.replace(message, refused=())
        return self._too_many(body, len(message.events)) or message

    def _too_many(self, body: bytes, events: int) -> Message | None:
        most = self._bounds.events
        if most is None or events <= most:
            return None
        return self._malformed(body, f"a Publish of {events:,} events; the limit batch is {most:,}")

    def _too_much(self, body: bytes, most: int) -> Message | None:
        if len(body) <= most or values_in(body, most) <= most:
            return None
        return self._malformed(body, f"a message of more than {most:,} values, which is the limit values")

    def _malformed(self, body: bytes, reason: str) -> Malformed:
        """Return the refusal of a request; raise InvalidFrame if the message cannot be answered."""
        number = _request_of(body)
        if number is None:
            raise InvalidFrame(reason)
        return Malformed(reason, request=number)

    def _read(self, kind: type, value: Any) -> Any:
        if self._easy is None:
            return self._filter(value)
        with bounded(int(self._easy)) as work:
            try:
                return self._filter(value)
            except FilterTooComplex as error:
                if error.limit == STEPS:
                    raise TakesLong from None
                raise
            finally:
                self._easy = max(0.0, work.left)

    def _filter(self, value: Any) -> Filter:
        limits = self._bounds.filters
        return Filter.parse(value, limits=limits) if isinstance(value, str) else Filter.from_dict(value, limits=limits)


def _first_message(body: bytes) -> Message:
    """Decode a message from a peer that has not been admitted; any kind but the handshake's is malformed, unread."""
    try:
        message: Message = _decode_first(body)
        return message
    except UNREADABLE as error:
        if length_of(body[:1]) and len(body) > 1 and body[1] in _LATER_TAGS:
            return Malformed("the first message is Hello")
        raise InvalidFrame(str(error)) from error


def _publish_in(body: bytes) -> _Publish | None:
    """A Publish, its events as they are packed; None where it is another message."""
    try:
        return _decode_publish(body)
    except RecursionError:
        return _deep_publish_in(body)
    except UNREADABLE:
        return None


def _deep_publish_in(body: bytes) -> _Publish | None:
    """As `_publish_in`, if something is nested deeper than the decoder goes."""
    with suppress(InvalidFrame, ValueError, *UNREADABLE):
        tag, events, *rest = elements(body)
        request = decode_plain(rest[1]) if len(rest) > 1 else 0
        if decode_plain(tag) == Publish.__struct_config__.tag and isinstance(request, int):
            return _Publish([Raw(event) for event in elements(events)], request=request)
    return None


def _published(message: _Publish) -> Publish:
    """A Publish in which something is no event."""
    events: list[Event] = []
    wrong: list[tuple[Raw, str]] = []
    for raw in message.events:
        try:
            events.append(unpack(raw))
        except UNREADABLE as error:
            is_deep = isinstance(error, RecursionError)
            wrong.append((raw, f"nested deeper than {MAX_DEPTH}" if is_deep else str(error)[:LONGEST_REASON]))
    return Publish(tuple(events), tuple(_refusals(wrong)), request=message.request)


def _refusals(wrong: list[tuple[Raw, str]]) -> Iterator[Refusal]:
    """Yield the first refusals with reasons, then one for each entry with an id, then the count of the others."""
    nameless = 0
    for place, (raw, reason) in enumerate(wrong):
        id, source = _text_at(raw, ID), _text_at(raw, SOURCE)
        if place < REASONS:
            yield Refusal(id, reason, source)
        elif id:
            yield Refusal(id, "it is no event", source)
        else:
            nameless += 1
    if nameless:
        yield Refusal("", f"{nameless:,} more are no events")


def _request_of(body: bytes) -> int | None:
    """Return the number of a request, 0 if it asks for no answer, or None if nobody could be answered."""
    if length_of(body) > _FIELDS:
        return None
    with suppress(*UNREADABLE):
        tag, *fields = split_all(body)
        for kind in (Publish, Subscribe, Advertise, Fetch, Review):
            if decode_plain(tag) == kind.__struct_config__.tag:
                number = decode_plain(fields[-1]) if len(fields) == len(kind.__struct_fields__) else 0
                return number if isinstance(number, int) and (number or kind is not Publish) else None
    return None


def _text_at(raw: Raw, place: int) -> str:
    """The id or the source of what is no event, if it has one."""
    with suppress(InvalidFrame, *UNREADABLE):
        try:
            packed: Sequence[Raw | bytes] = split_all(raw)
        except RecursionError:
            packed = elements(bytes(raw))
        if len(packed) > place:
            text = decode_plain(packed[place])
            return text if isinstance(text, str) else ""
    return ""
