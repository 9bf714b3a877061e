"""Messages on their way through bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from strategies_events import events
from vestnik import Event, Filter, Limits
from vestnik.errors import InvalidFrame
from vestnik.wire.frames import LARGEST, Reader, frame
from vestnik.wire.messages import (
    Accepted,
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Answer,
    Ask,
    Delivery,
    Fetch,
    Fetched,
    Forward,
    Goodbye,
    Hello,
    Interest,
    Last,
    Malformed,
    Message,
    Notify,
    Ping,
    Pong,
    Position,
    Publish,
    Reach,
    Refusal,
    Refused,
    Stored,
    Subscribe,
    Unadvertise,
    Unknown,
    Unsubscribe,
    Welcome,
)
from vestnik.wire.replays import Replay

CHEAP = Filter.parse("price < 10 AND symbol IN ('A', 'B') OR note LIKE 'x%'")
QUOTE = Event("quote", {"price": 5, "deep": {"list": [1, None, "ü"]}}, source="s", id="1", time=3, priority=9)
STAMPED = QUOTE.replace(stream=("b", "s"), seq=7, causes=[("s", "0")], extensions={"region": "eu"}, expires=9)

ALL: list[Message] = [
    Hello(1, "c", token="secret"),
    Welcome(1, "b", True),
    Goodbye("cycle", "it would close a cycle"),
    Ping(),
    Pong(),
    Forward((QUOTE, STAMPED)),
    AdminS((Interest(CHEAP, "c/s", 5.0),), (Interest(Filter.none()),)),
    AdminA((Interest(Filter.all()),)),
    Addressed("far", "near", Forward((STAMPED,))),
    Reach(("b1", "b2")),
    Publish((QUOTE, STAMPED), request=3),
    Subscribe("s", CHEAP, 60.0, 10, 4, 5, request=1),
    Unsubscribe("s", request=2),
    Advertise("a", CHEAP, 60.0, request=3),
    Unadvertise("a"),
    Ask((Position("s", 2**52, 3),)),
    Notify((Delivery(STAMPED, ((2**52, 1), (7, 2))),)),
    Answer(((7, 2),), (Delivery(QUOTE, ((7, 2),)),)),
    Last(((7, 2),)),
    Fetch(CHEAP, Replay(last=5, since=7, latest_by="symbol"), request=3),
    Fetched(3, (STAMPED,)),
    Subscribe("s", CHEAP, 60.0, replay=Replay(all=True)),
    Unknown(Position("s", 1, 2)),
    Accepted(1, 30.0, 7),
    Refused(1, "because"),
    Stored(1, (Refusal("e", "because"),)),
]


def read(*pieces: bytes, **options: Any) -> list[Message]:
    reader = Reader(**options)
    return [message for piece in pieces for message in reader.read(piece)]


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    assert read(frame(message)) == [message]


def test_messages_come_back_however_the_bytes_are_cut() -> None:
    data = b"".join(map(frame, ALL))
    for size in (1, 2, 3, 7, 100, len(data)):
        assert read(*(data[start : start + size] for start in range(0, len(data), size))) == ALL


@given(event=events())
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    (back,) = read(frame(Forward((event,))))
    assert isinstance(back, Forward)
    assert back.events[0] == event and repr(back.events[0]) == repr(event)


def test_filters_may_be_text() -> None:
    message = msgpack.encode([33, "s", "price < 10", 60.0])
    assert read(len(message).to_bytes(4, "big") + message) == [Subscribe("s", Filter.parse("price < 10"), 60.0)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "truncated"),
        (b"\xc1", "malformed"),
        (msgpack.encode(5), "array"),
        (msgpack.encode([999]), "999"),
        (msgpack.encode([33, "s"]), "array"),
        (msgpack.encode([33, 5, "price < 1"]), "str"),
        (msgpack.encode([16, [["t", "s", "1", {"x": 2**64 - 1}, None]]]), "x"),
        (msgpack.encode([16, [["t", "s"]]]), "array of type"),
        (msgpack.encode([16, [["t", "s", "1", {}, {"color": 1}]]]), "color"),
        (msgpack.encode([37, [["s", 1]]]), "array"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidFrame, match=reason):
        read(len(body).to_bytes(4, "big") + body)


def test_messages_that_are_too_large_are_refused_before_they_are_there() -> None:
    with pytest.raises(InvalidFrame, match=r"4,294,967,295 bytes; at most 16,777,216"):
        read(b"\xff\xff\xff\xff")
    with pytest.raises(InvalidFrame, match="at most 100"):
        read(frame(Forward((STAMPED,) * 10)), largest=100)
    with pytest.raises(InvalidFrame, match="Forward"):
        frame(Forward((Event("t", {"x": "x" * LARGEST}),)))


def test_one_wrong_event_does_not_lose_the_others() -> None:
    wrong: list[Any] = [["t", "s", "bad", {}, {"priority": 99}], 5, ["t", "", "empty", {}, None]]
    packed = [["t", "s", "1", {"x": 1}, None], *wrong, ["t", "s", "2", {"x": 2}, None]]
    body = msgpack.encode([32, packed, [], 9])
    (publish,) = read(len(body).to_bytes(4, "big") + body)
    assert isinstance(publish, Publish) and publish.request == 9
    assert [event.id for event in publish.events] == ["1", "2"]
    assert [refusal.id for refusal in publish.refused] == ["bad", "", "empty"]
    assert "priority" in publish.refused[0].reason


def test_a_wrong_filter_is_refused_and_no_more() -> None:
    for body, reason, request in (
        ([33, "s", "price <", 60.0, 0, 0, 0, None, 7], "column 8", 7),
        ([33, "s", "price <"], "column 8", 0),
        ([33, "s", {"boxes": 5}], "plain data", 0),
        ([35, "a", "price <", 60.0, 8], "column 8", 8),
    ):
        (found,) = read(len(msgpack.encode(body)).to_bytes(4, "big") + msgpack.encode(body))
        assert isinstance(found, Malformed) and reason in found.reason and found.request == request


def test_filters_from_outside_are_bounded() -> None:
    many = Filter.parse(" OR ".join(f"a{n} = {n}" for n in range(20)))
    (refused,) = read(frame(Subscribe("s", many, request=1)), limits=Limits(boxes=10))
    assert isinstance(refused, Malformed) and "too complex" in refused.reason and refused.request == 1
    assert read(frame(Subscribe("s", many)), limits=None) == [Subscribe("s", many)]


@given(data=st.binary(max_size=200))
def test_garbage_is_refused_and_never_more(data: bytes) -> None:
    with suppress(InvalidFrame):
        read(data)
