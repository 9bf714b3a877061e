"""Rights: what a message becomes that somebody may not send as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from vestnik.broker.rights import NOTHING, Rights
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import asks, is_reserved, ordinary
from vestnik.wire.messages import (
    NO_PAST,
    Advertise,
    Fetch,
    Malformed,
    Message,
    Publish,
    Question,
    Subscribe,
    Unsubscribe,
)
from vestnik.wire.replays import Replay

parse = Filter.parse
TEXTS = [
    "TRUE",
    "FALSE",
    "type IS market",
    "type IS vestnik",
    "type IS vestnik.subscription OR price > 1",
    "type > 'vestnik.'",
    "type < 'vestnik.z'",
    "price > 1",
    "price < 3",
    "price = 2 AND source = 'feed'",
    "NOT type IS market",
    "client = 'c'",
]
EVENTS = [
    Event(type, data, source=source, id="e")
    for type in ("market", "market.quote", "news", "vestnik.broker.left", "vestnik.subscription.made", "vestnikx")
    for data in ({}, {"price": 1}, {"price": 2}, {"price": 5}, {"client": "c"})
    for source in ("feed", "other")
    if not is_reserved(type) or "price" not in data  # brokers say nothing of that
]
filters = st.sampled_from([parse(text) for text in TEXTS])
OURS = parse("type IS vestnik")


@given(filters, filters, filters)
def test_a_subscription_gets_what_it_asks_for_and_may_see(asked: Filter, subscribe: Filter, seen: Filter) -> None:
    """And of what brokers publish, nothing that there is no right to: the broker adds none that is not asked for."""
    given = Subscribe("s", asked, request=1)
    found = Rights(subscribe=subscribe, subscriptions=seen).permitted(given)
    if isinstance(found, Malformed):
        assert found.request == 1
        assert not any(_sees(asked, event, subscribe, seen) for event in EVENTS)
        return
    assert isinstance(found, Subscribe)
    delivered = ordinary(found.filter)
    for event in EVENTS:
        if delivered.matches(event):
            assert asked.matches(event) and (seen if OURS.matches(event) else subscribe).matches(event)
        elif not OURS.matches(event):
            assert not _sees(asked, event, subscribe, seen)


def _sees(asked: Filter, event: Event, subscribe: Filter, seen: Filter) -> bool:
    wanted = asked if asks(asked) else ordinary(asked)
    return wanted.matches(event) and (seen if OURS.matches(event) else subscribe).matches(event)


@given(filters, filters)
def test_what_is_covered_is_left_alone(asked: Filter, bound: Filter) -> None:
    given = Fetch(asked, Replay(last=1))
    found = Rights(replay=bound, subscriptions=Filter.all()).permitted(given)
    if bound.covers(asked) and not asks(asked):
        assert found is given


@given(filters)
def test_events_outside_are_refused_and_the_others_are_not(bound: Filter) -> None:
    events = tuple([event.replace(id=str(number)) for number, event in enumerate(EVENTS)])
    found = Rights(publish=bound).permitted(Publish(events, request=7))
    assert isinstance(found, Publish) and found.request == 7
    assert found.events == tuple([event for event in events if bound.matches(event)])
    assert [refusal.id for refusal in found.refused] == [event.id for event in events if not bound.matches(event)]
    assert all("no right to publish" in refusal.reason for refusal in found.refused)


@pytest.mark.parametrize(
    "message",
    [
        Subscribe("s", parse("price > 1"), request=1),
        Subscribe("s", parse("price > 1"), replay=Replay(all=True), request=1),
        Advertise("a", parse("price > 1"), request=1),
        Fetch(parse("price > 1"), Replay(all=True), request=1),
        Question("status", request=1),
    ],
    ids=lambda message: type(message).__name__,
)
def test_without_a_right_all_is_refused(message: Message) -> None:
    found = Rights().permitted(message)
    assert isinstance(found, Malformed) and found.request == 1 and "there is no right to" in found.reason
    every = Filter.all()
    rights = Rights(publish=every, subscribe=every, replay=every, administer=True)
    assert rights.permitted(message) is message


def test_what_needs_no_right_is_left_alone() -> None:
    for message in (Unsubscribe("s"), Malformed("no filter", request=1)):
        assert Rights().permitted(message) is message


def test_nothing_may_be_asked_for_by_anybody() -> None:
    message = Subscribe("s", NOTHING)
    assert Rights().permitted(message) is message


def test_without_the_right_to_the_past_nobody_goes_on_from_any_position() -> None:
    given = Subscribe("s", parse("price > 1"), epoch=7, seen=(("b/1", 0),))
    assert Rights(subscribe=parse("TRUE")).permitted(given) == Subscribe("s", parse("price > 1"), epoch=7, made=NO_PAST)
    replayed = replace(given, replay=Replay(last=1), made=5)
    assert Rights(subscribe=parse("TRUE")).permitted(replayed) == replace(replayed, replay=None, seen=(), made=NO_PAST)
    since = replace(given, epoch=0, seen=(), made=5)
    assert Rights(subscribe=parse("TRUE")).permitted(since) == replace(since, made=NO_PAST), "nor since any time"
    refused = Rights(subscribe=parse("TRUE")).permitted(replace(given, epoch=0))
    assert isinstance(refused, Malformed) and "no right to replay" in refused.reason, "who was there before is told"
    assert Rights(subscribe=parse("TRUE"), replay=parse("price > 5")).permitted(given) != given
    assert Rights(subscribe=parse("TRUE"), replay=parse("price > 0")).permitted(given) == given


def test_what_cannot_be_seen_to_be_within_a_right_is_not() -> None:
    """And that is found out in no time, also where to narrow it would be too complex."""
    asked = parse(" OR ".join(f"(a{n} > {n} AND b{n} < {n})" for n in range(32)))
    right = parse(" OR ".join(f"(c{n} > {n} AND d{n} < {n})" for n in range(200)), limits=None)
    given = Subscribe("s", asked, epoch=7, seen=(("b/1", 0),))
    assert Rights(subscribe=parse("TRUE"), replay=right).permitted(given) == replace(given, seen=(), made=NO_PAST)
    narrowed = Rights(subscribe=right).permitted(given)
    assert isinstance(narrowed, Malformed) and "cannot be narrowed" in narrowed.reason
    assert Rights(subscribe=right).permitted(given) == narrowed


def test_of_many_events_without_the_right_the_first_ten_are_explained_and_all_are_named() -> None:
    rights = Rights(publish=parse("source = 'feed'"))
    events = tuple([Event("t", source="feed" if n % 2 else "other", id=str(n)) for n in range(100)])
    message = rights.permitted(Publish(events, request=1))
    assert isinstance(message, Publish)
    assert [event.id for event in message.events] == [str(n) for n in range(1, 100, 2)]
    assert [refusal.id for refusal in message.refused] == [str(n) for n in range(0, 100, 2)]
    assert ["feed" in refusal.reason for refusal in message.refused] == [True] * 10 + [False] * 40
