"""One client, message by message."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.session.checking import Adaptive, Checking, Constant, MultiplicativeDecrease, RandomInterval
from vestnik.session.session import PATIENCE, Alarm, Anew, Done, Hand, Lost, Say, Session
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Answer,
    Ask,
    Delivery,
    Gap,
    Notify,
    Publish,
    Refused,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

WANTED = Filter.parse("price < 10")


def event(number: int) -> Event:
    return Event("quote", {"price": number}, source="s", id=str(number))


def pushed(*numbers: int, name: str = "s") -> Notify:
    return Notify(tuple(Delivery(event(number), ((name, number),)) for number in numbers))


def kept(*numbers: int) -> tuple[Delivery, ...]:
    return pushed(*numbers).deliveries


def handed(*numbers: int) -> list[Hand]:
    return [Hand(event(number), (("s", number),)) for number in numbers]


def session(**options: Any) -> Session:
    client = Session("c", lambda low, high: (low + high) / 2, refresh=options.pop("refresh", float("inf")))
    client.subscribe("s", WANTED, 0.0, **options)
    return client


def test_notifications_are_handed_over_in_order_and_once() -> None:
    client = session()
    assert client.handle(pushed(1, 2), 0.0) == handed(1, 2)
    assert client.handle(pushed(2, 3), 0.0) == handed(3)


def test_one_event_for_several_subscriptions_is_handed_over_once() -> None:
    client = session()
    client.subscribe("t", WANTED, 0.0)
    both = Notify((Delivery(event(1), (("s", 1), ("t", 1))),))
    assert client.handle(both, 0.0) == [Hand(event(1), (("s", 1), ("t", 1)))]
    assert client.handle(pushed(1, name="gone"), 0.0) == [], "a subscription that is no longer there"


def test_what_is_missing_is_asked_for_at_once_and_handed_over_first() -> None:
    client = session(keep=10)
    client.handle(pushed(1), 0.0)
    assert client.handle(pushed(3), 1.0) == [Say(Ask("s", 1)), Alarm(1.0 + PATIENCE)]
    assert client.handle(pushed(4), 2.0) == [], "it has been asked for"
    assert client.handle(Answer("s", 4, kept(2, 3, 4)), 3.0) == handed(2, 3, 4)


def test_what_the_broker_lost_is_said_to_be_lost() -> None:
    client = session(keep=1)
    client.handle(pushed(3), 0.0)
    client.handle(pushed(5), 0.0)
    assert client.handle(Gap("s", 1, 4), 1.0) == [Lost("s", 1, 2), *handed(3), Lost("s", 4, 4), *handed(5)]
    assert client.handle(Answer("s", 5, kept(5)), 1.0) == []
    assert client.handle(pushed(6), 1.0) == handed(6)


def test_a_question_that_is_not_answered_is_asked_again() -> None:
    client = session(keep=1)
    client.handle(pushed(2), 0.0)
    assert client.wake(PATIENCE) == [Say(Ask("s", 0)), Alarm(2 * PATIENCE), Alarm(2 * PATIENCE)]


def test_a_broker_that_forgot_counts_anew() -> None:
    client = session(keep=1)
    client.handle(pushed(1, 2), 0.0)
    assert client.resume(1.0)[:2] == [Say(Subscribe("s", WANTED, keep=1)), Say(Ask("s", 2))]
    assert client.handle(Answer("s", 1, kept(1)), 2.0) == [Anew("s"), *handed(1)]


def test_a_broker_that_forgot_says_so_before_it_counts_anew() -> None:
    client = session(keep=1)
    assert client.handle(Accepted("s", begun=True), 0.0) == [Done("s")]
    client.handle(pushed(1, 3), 0.0)
    client.resume(1.0)
    assert client.handle(Accepted("s", begun=True), 1.0) == [Anew("s"), Done("s")]
    assert client.handle(pushed(1, 2, 3), 2.0) == handed(1, 2, 3)


def test_leases_are_renewed_in_time() -> None:
    client = Session("c", lambda low, high: low, refresh=10.0)
    assert client.subscribe("s", WANTED, 0.0, lease=20.0) == [Say(Subscribe("s", WANTED, 20.0)), Alarm(9.0)]
    client.advertise("a", WANTED, 1.0, lease=20.0)
    assert client.wake(9.0) == [Say(Subscribe("s", WANTED, 20.0)), Alarm(10.0)]
    assert client.wake(10.0) == [Say(Advertise("a", WANTED, 20.0)), Alarm(18.0)]


def test_what_the_application_says() -> None:
    client = session()
    assert client.publish(event(1)) == [Say(Publish((event(1),)))]
    assert client.unadvertise("a") == [Say(Unadvertise("a"))]
    assert client.unsubscribe("s") == [Say(Unsubscribe("s"))]
    assert client.handle(Accepted("s"), 0.0) == [Done("s")]
    assert client.handle(Refused("1", "because"), 0.0) == [Done("1", "because")]
    assert client.handle(Gap("s", 1, 2), 0.0) == client.handle(Answer("s", 3), 0.0) == []
    with pytest.raises(TypeError, match="Publish"):
        client.handle(Publish(()), 0.0)


def test_checking_asks_and_adapts_to_what_was_missed() -> None:
    client = session(keep=9, checking=Adaptive(delta=20, alpha=0.5, first=20))
    assert client.wake(20.0) == [Say(Ask("s", 0)), Alarm(25.0), Alarm(25.0)]
    assert client.handle(Answer("s", 0), 20.0) == [Alarm(60.0)], "nothing was lost: 40 seconds until the next"
    client.wake(60.0)
    assert client.handle(Answer("s", 3, kept(1, 2, 3)), 60.0) == [*handed(1, 2, 3), Alarm(60 + 40 * 2.5 / 4)]


@pytest.mark.parametrize(
    ("strategy", "without", "with_two"),
    [
        (Adaptive(delta=20, alpha=0.5), 60.0, 40 * 2 / 3),
        (MultiplicativeDecrease(), 20.0, 20.0),
        (RandomInterval(10, 30), 20.0, 20.0),
        (Constant(7), 7.0, 7.0),
    ],
)
def test_strategies_of_checking(strategy: Checking, without: float, with_two: float) -> None:
    def middle(low: float, high: float) -> float:
        return (low + high) / 2

    assert strategy.next(40.0, 0, middle) == without
    assert strategy.next(40.0, 2, middle) == pytest.approx(with_two)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Adaptive(alpha=1.0),
        lambda: Adaptive(delta=0),
        lambda: MultiplicativeDecrease(1.0),
        lambda: RandomInterval(5, 4),
        lambda: Constant(0),
    ],
)
def test_strategies_that_cannot_be(wrong: Any) -> None:
    with pytest.raises(ValueError):
        wrong()
