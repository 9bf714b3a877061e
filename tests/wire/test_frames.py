"""Messages on their way through bytes."""

from __future__ import annotations

import tracemalloc
from bisect import bisect
from contextlib import suppress
from itertools import accumulate
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import DecodeError, Raw, msgpack
from msgspec.structs import replace

from strategies_events import events
from vestnik import Event, Filter, Limits
from vestnik.errors import InvalidEvent, InvalidFrame
from vestnik.model.frozen import FrozenDict
from vestnik.model.times import FIRST, LAST
from vestnik.wire import frames
from vestnik.wire.bounds import LARGEST
from vestnik.wire.frames import PART, Reader, frame
from vestnik.wire.messages import (
    Accepted,
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Announce,
    Answer,
    Ask,
    Delivery,
    Fetch,
    Fetched,
    Finding,
    Gap,
    Goodbye,
    Hello,
    Inquiry,
    Interest,
    Malformed,
    Message,
    Notify,
    Opened,
    Page,
    Ping,
    Pong,
    Position,
    Publish,
    Question,
    Refusal,
    Refused,
    Review,
    Reviewed,
    Stored,
    Subscribe,
    Took,
    Unadvertise,
    Unknown,
    Unread,
    Unsubscribe,
    Welcome,
    WhatIsOpen,
    count_of,
    each_of,
    split,
)
from vestnik.wire.origins import (
    FetchPage,
    Frontiers,
    Offer,
    Origin,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    ReadTerms,
    Routed,
    Slice,
    Span,
)
from vestnik.wire.packing import decode_plain, event_of, pack, unpack
from vestnik.wire.replays import Replay

CHEAP = Filter.parse("price < 10 AND symbol IN ('A', 'B') OR note LIKE 'x%'")
QUOTE = Event("quote", {"price": 5, "deep": {"list": [1, None, "ü"]}}, source="s", id="1", time=3, priority=9)
STAMPED = QUOTE.replace(stream=("b", "s"), seq=7, causes=[("s", "0")], extensions={"region": "eu"}, expires=9)

X = Origin("b", 1)
OFFERS = frozenset([Offer(1, CHEAP), Offer(2, Filter.all())])

ALL: list[Message] = [
    Hello(1, "c", token="secret"),
    Welcome(1, "b", True),
    Welcome(1, "b", True, 7, "covering with advertisements", 60.0),
    Goodbye("cycle", "it would close a cycle"),
    Ping(),
    Pong(),
    Announce((QUOTE, STAMPED)),
    Routed(X, (STAMPED,)),
    AdminS((Interest(CHEAP, "c/s", 5.0),), (Interest(Filter.none()),)),
    AdminA((Interest(Filter.all()),)),
    Addressed("far", "near", Inquiry("c", 4, "status", {"deep": [1]})),
    Addressed("near", "far", Finding("c", 4, {"a": 1}, "some")),
    Addressed("far", "near", WhatIsOpen(4, CHEAP)),
    Addressed("near", "far", Opened(4, (QUOTE,))),
    OriginHere(X, OFFERS, history=True),
    OriginHere(X),
    OriginGone(X),
    OriginOffers(X, OFFERS),
    Frontiers(((X, 3), (Origin("b2", 2**52), 1))),
    FetchPage(X, 2**52, ReadTerms(7, (CHEAP,), 10, 5, Replay(last=5)), 3, ("b2", "b3")),
    FetchPage(X, 4, ReadTerms(7, (), 0)),
    PageRead(X, 4, Slice(7, (STAMPED,), 9, Span(5, 7), "dropped", (12,), 100, (8,), more=True), 9, ("b2",)),
    PageRead(X, 4, Slice(7, (), 9), 9),
    Publish((QUOTE, STAMPED), request=3),
    Subscribe("s", CHEAP, 60.0, 10, 4, 5, request=1),
    Unsubscribe("s", request=2),
    Advertise("a", CHEAP, 60.0, request=3),
    Unadvertise("a"),
    Ask((Position("s", 2**52, 3),)),
    Took((Position("s", 2**52, 3),)),
    Notify((Delivery((STAMPED,), ((2**52, 1), (7, 2))),)),
    Answer(((7, 2),), (Delivery((QUOTE,), ((7, 2),)),)),
    Fetch(CHEAP, Replay(last=5, since=7, latest_by="symbol"), request=3),
    Fetched(3, (STAMPED,), ("b1: lost",), more=True),
    Review(CHEAP, 7, 9, 100, request=3),
    Reviewed(
        3, "b1", 5, 9, Page(8, (7, 8), (1, 2), b"\x90", (Unread(6, 6, "damaged"), Unread(8, 8, "x", True, 3, b"y")))
    ),
    Notify((Delivery((), ((7, 1),), gap=Gap("b1/1", 3, 5, "it was dropped")),)),
    Notify((Delivery((QUOTE,), ((7, 1),)), Delivery((QUOTE,), ((7, 2),), replayed=True)), (("b1", 2**52),)),
    Subscribe("s", CHEAP, 60.0, replay=Replay(all=True), last=3, seen=(("b1/1", 3),), made=5),
    Unknown(Position("s", 1, 2)),
    Accepted(1, 30.0, 7, 3, (("b1/1", 3),), 2, 5),
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


@given(cuts=st.lists(st.integers(0, 3000), max_size=12))
def test_however_the_bytes_are_cut_each_message_is_read_as_soon_as_it_is_complete(cuts: list[int]) -> None:
    packed = [frame(message) for message in ALL]
    data, ends = b"".join(packed), list(accumulate(map(len, packed)))
    reader, count, start = Reader(), 0, 0
    for end in (*sorted(cuts), len(data)):
        found = list(reader.read(data[start:end]))
        assert found == ALL[count : bisect(ends, end)]
        count, start = count + len(found), max(start, min(end, len(data)))
    assert count == len(ALL)


@pytest.mark.parametrize("piece", [2, frames.SMALL, 100_000])
def test_a_message_that_comes_in_pieces_takes_the_memory_of_its_bytes(piece: int) -> None:
    message = Publish((Event("t", {"x": "x" * 1_000_000}, id="1"),))
    packed, reader = frame(message), Reader()
    tracemalloc.start()
    try:
        for start in range(0, len(packed) - piece, piece):
            assert not list(reader.read(packed[start : start + piece]))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.5 * len(packed)
    assert list(reader.read(packed[start + piece :])) == [message] and not reader.is_amid


@given(event=events())
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    (back,) = read(frame(Routed(X, (event,))))
    assert isinstance(back, Routed)
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
        read(frame(Routed(X, (STAMPED,) * 10)), largest=100)
    with pytest.raises(InvalidFrame, match="Routed"):
        frame(Routed(X, (Event("t", {"x": "x" * LARGEST}),)))


def test_many_changes_are_sent_in_parts_with_the_additions_first() -> None:
    wanted = tuple([Interest(Filter.parse(f"symbol = '{'x' * 1000}{n}'")) for n in range(3000)])
    parts = [part for part in read(frame(AdminS(wanted, wanted[:2000]))) if isinstance(part, AdminS)]
    assert len(parts) > 4 and all(len(frame(part)) < 2 * PART for part in parts)
    assert [interest for part in parts for interest in part.add] == list(wanted)
    assert [interest for part in parts for interest in part.remove] == list(wanted[:2000])
    assert not any(part.add for part in parts[[bool(part.remove) for part in parts].index(True) :])


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
        ([33, "s", "price <", 60.0, 1, 0, 0, None, 0, [], False, False, 0, 7], "column 8", 7),
        ([33, "s", "price <"], "column 8", 0),
        ([33, "s", {"boxes": 5}], "plain data", 0),
        ([35, "a", "price <", 60.0, False, False, 8], "column 8", 8),
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


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=3)
    ),
    max_leaves=4,
)
seldom = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "subject": st.sampled_from(["s", "", None, 5]),
        "time": st.sampled_from([0, 5, FIRST, LAST, LAST + 1, "2024-05-01T12:30:00Z", "now", True, None]),
        "priority": st.sampled_from([0, 4, 9, 10, -1, True, None]),
        "not_before": st.sampled_from([1, None]),
        "expires": st.sampled_from([1, FIRST - 1]),
        "causes": st.sampled_from([[], [["s", "1"]], 5]),
        "extensions": st.sampled_from([{}, {"a": 1}, {"A": 1}]),
        "other": st.none(),
    },
)
texts = st.sampled_from(["a", "ü", "", None, 5, "t"])
data = st.dictionaries(st.text(max_size=2), junk, max_size=3) | junk
ids = st.sampled_from(["a", "ü", "", 5])
seqs = st.sampled_from([None, 1, 0, 2**63 - 1, 2**63, True])
packed_events = st.tuples(texts, texts, ids, data, seldom | junk, texts, seqs).flatmap(
    lambda whole: st.integers(3, 7).map(lambda size: list(whole[:size]))
)


def outcome(packed: bytes) -> str:
    """The event that Event itself makes of what is packed, or why it makes none."""
    try:
        return repr(event_of(decode_plain(packed)))
    except (InvalidEvent, DecodeError, UnicodeDecodeError) as error:
        return str(error)


@given(packed=st.lists(packed_events.map(msgpack.encode), min_size=1, max_size=2))
def test_events_that_the_decoder_checks_are_those_that_event_takes(packed: list[bytes]) -> None:
    """Whether events are read as plain ones or not: the same are taken, refused, and for the same reason."""
    body = b"\x92\x20" + bytes((0x90 | len(packed),)) + b"".join(packed)
    (publish,) = read(len(body).to_bytes(4, "big") + body)
    assert isinstance(publish, Publish)
    found = [*map(repr, publish.events), *(refusal.reason for refusal in publish.refused)]
    assert sorted(found) == sorted(map(outcome, packed))


@pytest.mark.parametrize("text", [b"\xa3\xed\xa0\x80", b"\xa1\xff"], ids=["surrogate", "no utf-8"])
def test_text_that_is_none_is_refused(text: bytes) -> None:
    body = (
        b"\x92\x20\x92" + b"\x95\xa1t\xa1s\xa11\x81\xa1x" + text + b"\xc0" + msgpack.encode(["t", "s", "2", {}, None])
    )
    (publish,) = read(len(body).to_bytes(4, "big") + body)
    assert isinstance(publish, Publish)
    assert [event.id for event in publish.events] == ["2"] and len(publish.refused) == 1


@given(events=st.lists(events(), max_size=5), size=st.integers(1, 300))
def test_events_are_sent_in_pieces_and_none_is_lost(events: list[Event], size: int) -> None:
    messages = (
        Publish(tuple(events)),
        Announce(tuple(events)),
        Routed(X, tuple(events)),
        Notify(
            tuple([Delivery((event,), ((1, 2),), place % 2 == 0) for place, event in enumerate(events)]), (("b", 7),)
        ),
    )
    for message in messages:
        (field,) = {"events", "carried", "deliveries"} & set(message.__struct_fields__)
        with mock.patch.object(frames, "PIECE", size):
            back = read(frame(message))
        assert [one for piece in back for one in getattr(piece, field)] == list(getattr(message, field))
        assert all(replace(piece, **{field: ()}) == replace(message, **{field: ()}) for piece in back)
        assert events == [] or len(back) <= len(events)


@given(run=st.lists(events(), max_size=5).map(tuple), size=st.integers(1, 300))
def test_events_that_are_carried_packed_are_the_same_message(run: tuple[Event, ...], size: int) -> None:
    raw = tuple([Raw(pack(event)) for event in run])
    same = (
        (Routed(X, run), Routed(X, raw)),
        (
            Notify((Delivery(run, ((1, 2),), True),), (("b", 7),)),
            Notify((Delivery(raw, ((1, 2),), True),), (("b", 7),)),
        ),
    )
    for plain, packed in same:
        with mock.patch.object(frames, "PIECE", size):
            assert frame(packed) == frame(plain)
        assert packed == plain and hash(packed) == hash(plain)
    delivery = Delivery(raw, ((1, 2),))
    assert delivery.count == (len(run) or 1)
    assert (
        list(map(bytes, delivery.packed)) == list(map(bytes, Delivery(run, ((1, 2),)).packed)) == list(map(pack, run))
    )
    assert (delivery.events, delivery.event) == (run, run[0] if run else None)
    assert list(Delivery(raw, ((1, 2),)).each()) == list(Delivery(run, ((1, 2),)).each())
    delivery = Delivery(raw, ((1, 2),))
    shared = [one.event for one in delivery.each()]  # before anybody has looked at the events
    assert all(one is event for one, event in zip(shared, delivery.events, strict=bool(run)))


@given(run=st.lists(events(), min_size=1, max_size=5).map(tuple), size=st.integers(1, 300))
def test_a_run_is_sent_in_pieces_that_go_on_with_its_numbers(run: tuple[Event, ...], size: int) -> None:
    gap = Delivery((), ((1, 7),), gap=Gap("b1/1", 3, 5, "it was dropped"))
    message = Notify((Delivery(run, ((1, 2), (5, 9))), gap, Delivery(run, ((1, 8),))), (("b", 7),))
    with mock.patch.object(frames, "PIECE", size):
        back = [piece for piece in read(frame(message)) if isinstance(piece, Notify)]
        assert all(len(frame(piece)) <= 2 * size + 4 or count_of(piece.deliveries) == 1 for piece in back)
    assert list(each_of([one for piece in back for one in piece.deliveries])) == list(each_of(message.deliveries))
    assert all(piece.logs == message.logs for piece in back)


@given(event=events())
def test_an_event_is_read_as_it_is_taken_apart(event: Event) -> None:
    packed = pack(event)
    found = unpack(packed)
    assert found == event and repr(found) == repr(event_of(decode_plain(packed))) == repr(event)
    assert type(found.data) is FrozenDict


@given(event=events(), depth=st.integers(1, 12))
def test_messages_with_events_of_any_depth_are_read(event: Event, depth: int) -> None:
    for _ in range(depth):
        event = event.replace(data={"x": [event.data]})
    for message in (
        Publish((event,), request=3),
        Announce((event, event)),
        Routed(X, (event, event)),
        Notify((Delivery((event,), ((1, 2),), replayed=True), Delivery((), ((1, 3),)))),
        Answer(((1, 5),), (Delivery((event,), ((1, 2),)),)),
        Fetched(4, (event,), ("lost",)),
        Addressed("b1", "b2", Opened(7, (event, event))),
        PageRead(X, 7, Slice(1, (event, event), 3, Span(1, 2), "gone", (5, 6)), 3, ("b1",)),
    ):
        assert read(frame(message)) == [message]


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (["t", "s", None, {}, None], "id: must not be null"),
        (["t", "s", "1", None, None], "data: must not be null"),
        (["t", "s", "1", {}, {"colour": 1}], "no attribute 'colour'"),
    ],
)
def test_what_an_event_has_is_what_is_said(packed: list[Any], reason: str) -> None:
    (publish,) = read(frame(Publish(([*packed],))))  # type: ignore[arg-type]
    assert isinstance(publish, Publish) and not publish.events and reason in publish.refused[0].reason


def test_who_publishes_does_not_say_what_is_refused() -> None:
    event = Event("t", id="1")
    assert read(frame(Publish((event,), (Refusal("2", "no"),), request=1))) == [Publish((event,), request=1)]


def test_what_is_too_deep_to_be_sent_is_an_error_of_the_frame() -> None:
    deep: Any = {}
    for _ in range(100_000):  # an encoder follows 1,000 levels before Python 3.12, and 10,000 from then on
        deep = {"x": deep}
    with pytest.raises(InvalidFrame, match="cannot be sent"):
        frame(Question("status", deep))


@pytest.mark.parametrize("depth", [50, 5_000, 200_000], ids=["decoded", "decoded by some Pythons", "not decoded"])
def test_an_event_that_is_nested_too_deep_is_refused_alone(depth: int) -> None:
    first, second = (Event("q", {"n": n}, source="s", id=str(n)) for n in range(2))
    deep = b"\x97\xa1q\xa1s\xa1d\x81\xa1x" + b"\x91" * depth + b"\x90" + b"\xc0" * 3
    body = b"\x94\x20\x93" + pack(first) + deep + pack(second) + b"\x90\x07"
    (message,) = Reader().read(len(body).to_bytes(4, "big") + body)
    assert isinstance(message, Publish) and (message.events, message.request) == ((first, second), 7)
    (refused,) = message.refused
    assert (refused.id, refused.source) == ("d", "s") and refused.reason.endswith("nested deeper than 32")


def test_another_message_that_is_nested_too_deep_ends_the_connection() -> None:
    body = b"\x94\x21\x91" + b"\x91" * 5_000 + b"\x90" + b"\x90\x07"
    with pytest.raises(InvalidFrame):
        list(Reader().read(len(body).to_bytes(4, "big") + body))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=6), st.integers(0, 30))
def test_notifications_are_split_at_any_place(runs: list[tuple[int, int]], most: int) -> None:
    gap = Gap("b/1", 1, 2, "dropped")
    deliveries = [
        Delivery(tuple([QUOTE] * count), ((7, first), (8, first + 1)), gap=None if count else gap)
        for count, first in runs
    ]
    head, rest = split(deliveries, most)
    assert count_of(head) == min(most, count_of(deliveries))
    assert list(each_of((*head, *rest))) == list(each_of(deliveries))
