"""One client, message by message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event, Filter
from vestnik.session.acts import Alarm, Done, Hand, Lost, Missing, Say
from vestnik.session.agenda import PATIENCE
from vestnik.session.checking import Adaptive, Checking, Constant, MultiplicativeDecrease, RandomInterval
from vestnik.session.session import RENEWALS, Session
from vestnik.session.subscriptions import WINDOW
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Answer,
    Ask,
    Delivery,
    Message,
    Notify,
    Position,
    Publish,
    Refusal,
    Refused,
    Request,
    Stored,
    Subscribe,
    Took,
    Unadvertise,
    Unknown,
    Unsubscribe,
)

WANTED = Filter.parse("price < 10")
EPOCH = 100
"""The first that a session draws here."""


def event(number: int) -> Event:
    return Event("quote", {"price": number}, source="s", id=str(number))


def pushed(*numbers: int, epoch: int = EPOCH) -> Notify:
    return Notify(tuple(Delivery((event(number),), ((epoch, number),)) for number in numbers))


def kept(*numbers: int, epoch: int = EPOCH) -> tuple[Delivery, ...]:
    return pushed(*numbers, epoch=epoch).deliveries


def asked(after: int) -> Ask:
    return Ask((Position("s", EPOCH, after),))


def handed(*numbers: int) -> list[Hand]:
    return [Hand(event(number), (("s", number),)) for number in numbers]


def silent(**options: Any) -> Session:
    """A client that has said nothing."""
    return Session("c", lambda low, high: EPOCH if high > 1e9 else low, **options)


def session(**options: Any) -> Session:
    """A client with a subscription that its broker has accepted."""
    client = silent(refresh=options.pop("refresh", float("inf")))
    wanted = Filter.parse(options.pop("wanted", str(WANTED)))
    request = client.subscribe("s", wanted, 0.0, **options)[0].message.request  # type: ignore[union-attr]
    client.handle(Accepted(request, options.get("lease", float("inf")), EPOCH), 0.0)
    return client


def said(acts: Any) -> list[Message]:
    return [act.message for act in acts if isinstance(act, Say)]


def requested(acts: Any) -> list[Request]:
    """What is requested, without the numbers of the requests."""
    return [
        type(message)(**{name: getattr(message, name) for name in message.__struct_fields__ if name != "request"})
        for message in said(acts)
        if isinstance(message, Request)
    ]


def results(acts: Any) -> list[Any]:
    """All but what is said and when to wake up."""
    return [act for act in acts if not isinstance(act, Say | Alarm)]


def test_notifications_are_handed_over_in_order_and_once() -> None:
    client = session()
    assert client.handle(pushed(1, 2), 0.0) == handed(1, 2)
    assert client.handle(pushed(2, 3), 0.0) == handed(3)


def run(first: int, count: int, *epochs: int, causes: tuple[tuple[str, str], ...] = ()) -> Delivery:
    events = event(first).replace(causes=causes), *[event(number) for number in range(first + 1, first + count)]
    return Delivery(events, tuple([(epoch, first) for epoch in epochs]))


RUNS = st.lists(
    st.builds(
        run,
        st.integers(1, 8),
        st.integers(1, 5),
        st.sampled_from([EPOCH, EPOCH + 1, EPOCH + 2]),
        causes=st.sampled_from([(), (("s", "1"),)]),
    )
    | st.builds(run, st.integers(1, 8), st.integers(1, 5), st.just(EPOCH), st.just(EPOCH + 2)),
    max_size=6,
)


@given(RUNS)
def test_a_run_is_taken_like_its_notifications_one_by_one(runs: list[Delivery]) -> None:
    """The runs may come early, twice, or in a new numbering of the broker."""
    whole, single = session(), session()
    for client in (whole, single):
        (other,) = said(client.subscribe("t", WANTED, 0.0))
        assert isinstance(other, Subscribe) and other.afresh == EPOCH + 2
        client.handle(Accepted(other.request, epoch=other.afresh), 0.0)
    for delivery in runs:
        one_by_one = [act for one in delivery.each() for act in single._inbox._take(one, None, 1.0)]
        assert list(whole._inbox.take([delivery], {}, 1.0)) == one_by_one
    known = [client._subscriptions[name] for client in (whole, single) for name in ("s", "t")]
    places = [(one.epoch, one.last, one.given) for one in known]
    assert places[:2] == places[2:]


def test_an_application_may_act_in_the_middle_of_a_run() -> None:
    client = session()
    acts = client.notified(Notify((run(1, 2, EPOCH), run(3, 3, EPOCH))), 0.0)
    assert [next(acts) for _ in range(3)] == handed(1, 2, 3)
    client.change("s", Filter.parse("price < 5"), 0.0)
    assert next(acts) == handed(4)[0]
    client.unsubscribe("s", 0.0)
    (again,) = said(client.subscribe("s", WANTED, 0.0))
    assert list(acts) == [], "what is left is of the subscription that has ended"
    assert isinstance(again, Subscribe) and again.epoch == 0


def test_one_event_for_several_subscriptions_is_handed_over_once() -> None:
    client = session()
    (again,) = said(client.subscribe("t", WANTED, 0.0))
    assert isinstance(again, Subscribe)
    both = Notify((Delivery((event(1),), ((EPOCH, 1), (again.afresh, 1))),))
    assert client.handle(both, 0.0) == [Hand(event(1), (("s", 1), ("t", 1)))]
    assert client.handle(pushed(1, epoch=7), 0.0) == [], "a subscription that is no longer there"


def test_what_is_missing_is_asked_for_at_once_and_handed_over_first() -> None:
    client = session()
    client.handle(pushed(1), 0.0)
    assert said(client.handle(pushed(3), 1.0)) == [asked(1)]
    assert client.handle(pushed(4), 2.0) == [], "it has been asked for"
    assert client.handle(Answer(((EPOCH, 4),), kept(2, 3, 4)), 3.0) == handed(2, 3, 4)


def test_what_is_in_a_page_that_has_not_come_is_not_lost_but_asked_for_again() -> None:
    client = session()
    assert said(client.handle(pushed(6), 0.0)) == [asked(0)]
    assert client.handle(Answer(((EPOCH, 5),), kept(4, 5), after=3), 1.0) == [], "the page before it has not come"
    assert said(client.wake(PATIENCE)) == [asked(0)]
    assert client.handle(Answer(((EPOCH, 3),), kept(2, 3)), 6.0) == [Lost("s", 1, 1), *handed(2, 3, 4, 5, 6)]
    assert client.handle(Answer(((EPOCH, 6),), kept(4, 5, 6), after=3), 6.0) == []


def test_what_the_broker_lost_is_said_to_be_lost() -> None:
    client = session()
    client.handle(pushed(3), 0.0)
    client.handle(pushed(5), 0.0)
    answered = client.handle(Answer(((EPOCH, 5),), kept(5)), 1.0)
    assert answered == [Lost("s", 1, 2), *handed(3), Lost("s", 4, 4), *handed(5)]
    assert client.handle(pushed(6), 1.0) == handed(6)


def test_what_the_broker_has_with_holes_is_handed_over_and_the_holes_are_said() -> None:
    client = session()
    client.handle(pushed(6), 0.0)
    answered = client.handle(Answer(((EPOCH, 6),), kept(2, 5, 6)), 1.0)
    assert answered == [Lost("s", 1, 1), *handed(2), Lost("s", 3, 4), *handed(5, 6)]


def test_what_several_subscriptions_missed_comes_in_the_order_of_all() -> None:
    client = session()
    (other,) = said(client.subscribe("t", WANTED, 0.0))
    assert isinstance(other, Subscribe)
    client.handle(Accepted(other.request, epoch=other.afresh), 0.0)
    ask = said(client.resume(1.0))[-1]
    assert ask == Ask((Position("s", EPOCH, 0), Position("t", other.afresh, 0)))
    kept = tuple(Delivery((event(n),), ((epoch, n),)) for n, epoch in ((1, EPOCH), (1, other.afresh), (2, EPOCH)))
    answer = Answer(((EPOCH, 2), (other.afresh, 1)), kept)
    assert [hand.numbers for hand in results(client.handle(answer, 2.0))] == [(("s", 1),), (("t", 1),), (("s", 2),)]


def test_an_effect_waits_while_something_is_missing() -> None:
    client = session()
    (other,) = said(client.subscribe("t", WANTED, 0.0))
    assert isinstance(other, Subscribe)
    client.handle(Accepted(other.request, epoch=other.afresh), 0.0)
    client.handle(pushed(2), 1.0)
    effect = event(3).replace(causes=[("s", "1")])
    assert client.handle(Notify((Delivery((effect,), ((other.afresh, 1),)),)), 1.0) == []
    assert client.handle(Notify((Delivery((event(4),), ((other.afresh, 2),)),)), 1.0) == [], "it comes after the effect"
    answered = client.handle(Answer(((EPOCH, 2),), kept(1, 2)), 2.0)
    assert results(answered) == [*handed(1, 2), Hand(effect, (("t", 1),)), Hand(event(4), (("t", 2),))]


@pytest.mark.parametrize("how", ["accepted", "unknown", "unsubscribed"])
def test_an_effect_comes_when_nothing_is_missing_any_more(how: str) -> None:
    """Also if what was missing is of a numbering that is over, and no answer comes."""
    client = session()
    (other,) = said(client.subscribe("t", WANTED, 0.0))
    assert isinstance(other, Subscribe)
    client.handle(Accepted(other.request, epoch=other.afresh), 0.0)
    client.handle(pushed(2), 1.0)
    effect = event(3).replace(causes=[("s", "1")])
    assert client.handle(Notify((Delivery((effect,), ((other.afresh, 1),)),)), 1.0) == []
    if how == "accepted":
        acts = client.handle(Accepted(0, epoch=EPOCH + 1), 2.0)
    elif how == "unknown":
        acts = client.handle(Unknown(Position("s", EPOCH, 0)), 2.0)
    else:
        acts = client.unsubscribe("s", 2.0)
    assert [act for act in acts if isinstance(act, Hand)] == [Hand(effect, (("t", 1),))]


def test_what_is_lost_is_not_missing_any_more() -> None:
    client = session()
    client.handle(pushed(2), 0.0)
    client.handle(Answer(((EPOCH, 4),), kept(4)), 1.0)
    effect = event(5).replace(causes=[("s", "1")])
    assert client.handle(Notify((Delivery((effect,), ((EPOCH, 5),)),)), 2.0) == [Hand(effect, (("s", 5),))]


def test_a_question_that_is_not_answered_is_asked_again() -> None:
    client = session()
    client.handle(pushed(2), 0.0)
    assert client.wake(PATIENCE) == [Say(asked(0)), Alarm(2 * PATIENCE)]
    assert client.wake(2 * PATIENCE - 0.1) == [Alarm(2 * PATIENCE)], "an alarm too early is set again"


def test_a_broker_that_forgot_counts_anew() -> None:
    client = session()
    client.handle(pushed(1, 2), 0.0)
    subscribe, ask = said(client.resume(1.0))
    assert isinstance(subscribe, Subscribe)
    assert (subscribe.epoch, subscribe.afresh, ask) == (EPOCH, EPOCH + 2, asked(2))
    assert results(client.handle(Accepted(subscribe.request, epoch=EPOCH + 2), 2.0)) == [Done(subscribe)]
    assert results(client.handle(pushed(1, epoch=EPOCH + 2), 2.0)) == [Hand(event(1), (("s", 3),))]
    assert client.handle(pushed(3), 2.0) == [], "it is of the numbering that was forgotten"


def test_each_connection_proposes_a_numbering_of_its_own() -> None:
    """A broker may have begun the one proposed before, and its answer was lost with the connection."""
    client = session()
    proposed = [one for at in (1.0, 2.0) for one in said(client.resume(at)) if isinstance(one, Subscribe)]
    assert [one.epoch for one in proposed] == [EPOCH, EPOCH]
    assert len({EPOCH + 1, *(one.afresh for one in proposed)}) == 3
    assert client.handle(pushed(1, epoch=proposed[0].afresh), 3.0) == [], "no broker numbers like that here"
    assert results(client.handle(pushed(1, epoch=proposed[1].afresh), 3.0)) == handed(1)


def test_what_came_early_is_dropped_if_the_broker_forgot_and_comes_again() -> None:
    client = session()
    client.handle(pushed(2), 0.0)
    (subscribe,) = said(client.handle(Unknown(Position("s", EPOCH, 0)), 1.0))
    assert isinstance(subscribe, Subscribe) and (subscribe.epoch, subscribe.afresh) == (EPOCH, EPOCH + 1)
    assert said(client.handle(Answer(()), 1.0)) == [], "it is not asked for again"
    client.handle(Accepted(subscribe.request, epoch=EPOCH + 1), 2.0)
    assert results(client.handle(pushed(1, 2, epoch=EPOCH + 1), 3.0)) == handed(1, 2), "and nothing is lost"
    assert client.handle(Unknown(Position("s", 7, 0)), 1.0) == [] == client.handle(Unknown(Position("gone", 7, 0)), 1.0)


def test_what_brokers_announced_while_a_subscription_was_forgotten_may_be_lost() -> None:
    """No log holds events of brokers."""
    client = session(wanted="type IS vestnik.subscription")
    (missing,) = results(client.handle(Accepted(0, epoch=EPOCH + 1), 1.0))
    assert isinstance(missing, Missing) and missing.name == "s"
    assert results(session().handle(Accepted(0, epoch=EPOCH + 1), 1.0)) == []


def test_that_a_broker_forgot_is_seen_by_whatever_it_says() -> None:
    for told in (pushed(1, epoch=EPOCH + 1), Answer(((EPOCH + 1, 1),), kept(1, epoch=EPOCH + 1))):
        client = session()
        client.handle(pushed(1, 2), 0.0)
        assert results(client.handle(told, 2.0)) == [Hand(event(1), (("s", 3),))]


def test_what_comes_of_an_earlier_subscription_of_the_same_name_is_not_taken_for_this_one() -> None:
    client = session()
    client.handle(pushed(1), 0.0)
    client.unsubscribe("s", 1.0)
    (subscribe,) = said(client.subscribe("s", Filter.parse("price > 90"), 1.0))
    assert isinstance(subscribe, Subscribe) and subscribe.epoch == 0 and subscribe.afresh not in (EPOCH, EPOCH + 1)
    assert client.handle(pushed(2), 1.0) == []
    assert results(client.handle(pushed(1, epoch=subscribe.afresh), 2.0)) == handed(1), "begun, and not anew"


def test_leases_are_renewed_in_time() -> None:
    client = silent(refresh=10.0)
    assert Alarm(PATIENCE) in client.subscribe("s", WANTED, 0.0, lease=20.0)
    client.advertise("a", WANTED, 1.0, lease=20.0)
    client.handle(Accepted(1, 20.0, EPOCH), 1.0)
    client.handle(Accepted(2, 20.0), 2.0)
    assert requested(client.wake(9.9)) == []
    assert requested(client.wake(10.0)) == [Subscribe("s", WANTED, 20.0, WINDOW, EPOCH, EPOCH + 1)]
    assert requested(client.wake(11.0)) == [Advertise("a", WANTED, 20.0)]


def test_what_the_broker_grants_for_a_time_is_renewed_in_that_time() -> None:
    client = silent()
    client.subscribe("s", WANTED, 0.0)
    client.handle(Accepted(1, 30.0, EPOCH), 0.0)
    assert client.wake(PATIENCE) == [Alarm(0.9 * 30.0 / RENEWALS)]
    assert requested(client.wake(9.0)) == [Subscribe("s", WANTED, epoch=EPOCH, afresh=EPOCH + 1)]


def test_requests_are_said_again_until_they_are_answered() -> None:
    client = silent()
    (published,) = said(client.publish([event(1)], 0.0))
    wanted = said(client.subscribe("s", WANTED, 0.0))
    assert said(client.wake(PATIENCE)) == [published, *wanted]
    assert isinstance(published, Publish)
    assert client.handle(Stored(published.request), 6.0) == [Done(published)]
    assert said(client.wake(2 * PATIENCE)) == wanted
    over = said(client.unsubscribe("s", 11.0))
    assert said(client.wake(3 * PATIENCE + 2)) == over, "what was wanted before is not wanted any more"


def test_what_was_not_answered_is_said_to_the_next_broker() -> None:
    client = session()
    published = said(client.publish([event(1)], 0.0))
    gone = said(client.unsubscribe("t", 0.0))
    client.publish([event(2)], 0.0, answered=False)
    assert said(client.resume(1.0))[-2:] == published + gone


def test_what_the_application_says() -> None:
    client = session()
    assert requested(client.publish([event(1)], 0.0)) == [Publish((event(1),))]
    assert client.publish([event(1)], 0.0, answered=False) == [Say(Publish((event(1),)))]
    assert requested(client.unadvertise("a", 0.0)) == [Unadvertise("a")]
    (over,) = said(client.unsubscribe("s", 0.0))
    assert isinstance(over, Unsubscribe)
    assert client.handle(Accepted(over.request), 0.0) == [Done(over)]
    assert client.handle(Accepted(over.request), 0.0) == [], "it is answered"
    (wrong,) = said(client.advertise("", WANTED, 0.0))
    assert isinstance(wrong, Advertise)
    assert client.handle(Refused(wrong.request, "because"), 0.0) == [Done(wrong, "because")]
    assert client.handle(Answer(((EPOCH, 3),)), 0.0) == []
    with pytest.raises(TypeError, match="Publish"):
        client.handle(Publish(()), 0.0)


def test_events_that_are_refused_are_named() -> None:
    client = session()
    (publish,) = said(client.publish([event(1), event(2)], 0.0))
    assert isinstance(publish, Publish)
    refused = (Refusal("2", "because"),)
    assert client.handle(Stored(publish.request, refused), 0.0) == [Done(publish, refused=refused)]
    assert client.handle(Stored(0, refused), 0.0) == [Done(Publish(()), refused=refused)]
    assert client.handle(Stored(0), 0.0) == []


def test_what_is_changed_is_changed() -> None:
    client = session()
    dear = Filter.parse("price > 90")
    changed = client.subscribe("s", dear, 1.0, lease=30.0, window=5, checking=Constant(3))
    assert requested(changed) == [Subscribe("s", dear, 30.0, 5, EPOCH, EPOCH + 1)]
    assert Alarm(4.0) in changed


def test_checking_asks_and_adapts_to_what_was_missed() -> None:
    client = session(checking=Adaptive(delta=20, alpha=0.5, first=20))
    assert client.wake(20.0) == [Say(asked(0)), Alarm(25.0)]
    client.handle(Answer(((EPOCH, 0),)), 20.0)
    assert said(client.wake(59.9)) == [], "nothing was lost: 40 seconds until the next"
    assert said(client.wake(60.0)) == [asked(0)]
    assert client.handle(Answer(((EPOCH, 3),), kept(1, 2, 3)), 60.0) == handed(1, 2, 3)
    assert said(client.wake(60 + 40 * 2.5 / 4)) == [asked(3)]


def test_a_notification_in_between_is_waited_from_anew_and_does_not_change_the_interval() -> None:
    client = session(checking=Adaptive(delta=20, alpha=0.5, first=20))
    client.handle(pushed(1), 12.0)
    assert said(client.wake(20.0)) == []
    client.handle(pushed(2), 31.0)
    assert said(client.wake(32.0)) == [], "20 seconds from when the second came, not the first"
    assert client.wake(51.0) == [Say(asked(2)), Alarm(56.0)]
    client.handle(Answer(((EPOCH, 2),)), 51.0)
    assert said(client.wake(90.9)) == []
    assert said(client.wake(91.0)) == [asked(2)], "now it is 20 seconds more"


def test_a_gap_is_asked_for_at_once_and_counts_at_the_next_check() -> None:
    client = session(checking=Adaptive(delta=20, alpha=0.5, first=20))
    assert said(client.handle(pushed(3), 5.0)) == [asked(0)]
    assert client.handle(Answer(((EPOCH, 3),), kept(1, 2, 3)), 6.0) == handed(1, 2, 3)
    assert said(client.wake(24.9)) == []
    assert said(client.wake(25.0)) == [asked(3)], "the interval is as it was"
    client.handle(Answer(((EPOCH, 3),)), 25.0)
    following = 25 + 20 * 2 / 3
    assert said(client.wake(following - 0.1)) == []
    assert said(client.wake(following)) == [asked(3)], "two were lost"


def test_checking_goes_on_where_the_broker_forgot() -> None:
    client = session(checking=Constant(20))
    client.wake(20.0)
    client.handle(Unknown(Position("s", EPOCH, 0)), 21.0)
    assert asked(0) in said(client.wake(41.0))


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


def test_a_check_says_what_was_taken_because_a_took_may_be_lost() -> None:
    client = session(checking=Constant(10.0))
    client.handle(pushed(1, 2, 3), 1.0)
    assert said(client.took({"s": 3})) == [Took((Position("s", EPOCH, 2),))]
    assert said(client.wake(11.0)) == [Ask((Position("s", EPOCH, 3, taken=2),))]
