"""The rules over traces: a run that is right stays clean, and each way to spoil it is caught and named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.stored import StoredEvent
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter
from vestnik.session.session import Session
from vestnik.sim.network import Network
from vestnik.sim.topologies import line
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Corrupted,
    Crashed,
    Cut,
    Detached,
    Dropped,
    Linked,
    Lost,
    Missing,
    Notified,
    Published,
    Rejected,
    Restarted,
    Resumed,
    Sent,
    Settled,
    Stalled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
    Vanished,
)
from vestnik.verify.traces import check_trace
from vestnik.verify.violations import Violation
from vestnik.wire.messages import NodeId

WANTED, OTHER = Filter.parse("x > 1"), Filter.parse("x < 9")


def event(number: int, x: int = 5, source: str = "p", **envelope: Any) -> Event:
    found = Event("t", {"x": x}, source=source, id=f"e{number}", stream=("b", source), seq=number)
    return found.replace(**envelope)


def handed(at: float, given: Event, number: int, client: str = "c", name: str = "s") -> Notified:
    return Notified(at, client, given, ((name, number),))


ONE, TWO, SMALL, FOUR = event(1), event(2), event(3, x=0), event(4)
EFFECT = event(1, source="q", causes=[("p", "e1")])
HELD, MORTAL = event(1, not_before=3_000_000), event(1, expires=3_000_000)
SUBSCRIBED = Subscribed(0.0, "c", "s", WANTED)
UNSUBSCRIBED = Unsubscribed(6.0, "c", "s")
RIGHT: list[AnyRecord] = [
    SUBSCRIBED,
    Subscribed(0.0, "d", "s", OTHER),
    Advertised(0.0, "p", "a", Filter.all()),
    Settled(1.0),
    Published(2.0, "p", ONE),
    Published(2.0, "p", TWO),
    handed(3.0, ONE, 1),
    handed(3.0, ONE, 1, "d"),
    handed(3.0, TWO, 2),
    handed(3.0, TWO, 2, "d"),
    Settled(4.0),
    Published(4.0, "p", SMALL),
    handed(5.0, SMALL, 3, "d"),
    Settled(5.0),
    UNSUBSCRIBED,
    Unadvertised(6.0, "p", "a"),
    Settled(7.0),
]


def with_last(*records: AnyRecord) -> list[AnyRecord]:
    return [*RIGHT, *records]


def without(*places: int) -> list[AnyRecord]:
    return [record for place, record in enumerate(RIGHT) if place not in places]


def changed(place: int, *records: AnyRecord) -> list[AnyRecord]:
    return [*RIGHT[:place], *records, *RIGHT[place + 1 :]]


@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("settling", [None, 1.0, 2.0])
def test_what_is_right_is_clean(settling: float | None, advertisements: bool) -> None:
    assert check_trace(RIGHT, settling=settling, advertisements=advertisements) == []


def causally(*learnt: AnyRecord) -> list[AnyRecord]:
    """Of two clients that want everything, q says that what it publishes has a cause."""
    wanting = [Subscribed(0.0, client, "s", WANTED) for client in "cq"]
    return [*wanting, Published(2.0, "p", ONE), *learnt, Published(3.0, "q", EFFECT)]


LEARNT = handed(2.5, ONE, 1, "q")


class Spoiled(NamedTuple):
    """A trace with one mistake, and the rule, client, subscription and event that the violation is to name."""

    records: list[AnyRecord]
    rule: str
    client: str
    subscription: str
    event: Event | None
    said: str


SPOILED = {
    "delivered twice": Spoiled(
        changed(6, handed(3.0, ONE, 1), handed(3.0, ONE, 2)), "once", "c", "s", ONE, "a second time"
    ),
    "twice in one": Spoiled(
        changed(6, Notified(3.0, "c", ONE, (("s", 1), ("s", 2)))), "once", "c", "s", ONE, "a second time"
    ),
    "to the wrong client": Spoiled(
        changed(6, handed(3.0, ONE, 1, "q")), "active", "q", "s", ONE, "to which it had not subscribed"
    ),
    "for another's name": Spoiled(
        changed(6, handed(3.0, ONE, 1, "c", "t")), "active", "c", "t", ONE, "to which it had not subscribed"
    ),
    "for no subscription": Spoiled(
        changed(6, Notified(3.0, "c", ONE, ())), "active", "c", "", ONE, "for no subscription"
    ),
    "after the unsubscription": Spoiled(
        with_last(Published(7.0, "p", FOUR), handed(7.0, FOUR, 3)), "active", "c", "s", FOUR, "had unsubscribed"
    ),
    "before the subscription": Spoiled(
        [Published(0.0, "p", ONE), handed(0.0, ONE, 1), SUBSCRIBED], "active", "c", "s", ONE, "had not subscribed"
    ),
    "not matching": Spoiled(
        changed(12, handed(5.0, SMALL, 3)), "matching", "c", "s", SMALL, "which wants (x > 1)"
    ),
    "never published": Spoiled(without(4), "published", "c", "", ONE, "nobody had published"),
    "published later": Spoiled(
        [SUBSCRIBED, Settled(0.0), handed(1.0, ONE, 1), Published(2.0, "p", ONE)],
        "published", "c", "", ONE, "nobody had published",
    ),
    "altered on the way": Spoiled(
        changed(6, handed(3.0, event(1, x=6), 1)), "published", "c", "", event(1, x=6), "with other content"
    ),
    "refused": Spoiled(
        changed(4, Rejected(2.0, "p", ONE, "no")), "published", "c", "", ONE, "refused to its publisher"
    ),
    "dropped": Spoiled(without(8), "liveness", "c", "s", TWO, "was not notified"),
    "noted as dropped": Spoiled(
        changed(8, Dropped(3.0, "b2", TWO, "lost")), "liveness", "c", "s", TWO, "it was dropped at b2: lost"
    ),
    "late": Spoiled(
        [*RIGHT[:8], *RIGHT[9:11], RIGHT[8], *RIGHT[11:]], "liveness", "c", "s", TWO, "was not in time notified"
    ),
    "reordered": Spoiled(
        [*RIGHT[:6], handed(3.0, TWO, 1), handed(3.0, ONE, 2), RIGHT[7], *RIGHT[9:]],
        "fifo", "c", "s", ONE, "which was accepted later: 2 after 1",
    ),
    "a wrong first number": Spoiled(
        changed(6, handed(3.0, ONE, 2)), "numbers", "c", "s", ONE, "number 2 in s, where 1 comes next"
    ),
    "a gap in the numbers": Spoiled(
        changed(8, handed(3.0, TWO, 3)), "numbers", "c", "s", TWO, "number 3 in s, where 2 comes next"
    ),
    "a number again": Spoiled(
        changed(8, handed(3.0, TWO, 1)), "numbers", "c", "s", TWO, "number 1 in s, where 2 comes next"
    ),
    "lost in the wrong place": Spoiled(
        changed(8, handed(3.0, TWO, 2), Lost(3.0, "c", "s", 5, 6)), "numbers", "c", "s", None, "numbers 5 to 6 in s"
    ),
    "lost backwards": Spoiled(
        changed(8, handed(3.0, TWO, 2), Lost(3.0, "c", "s", 3, 2)), "numbers", "c", "s", None, "numbers 3 to 2 in s"
    ),
    "lost without a cause": Spoiled(
        changed(8, Lost(3.0, "c", "s", 2, 2)), "losses", "c", "s", None, "lost something in s, and nothing had happened"
    ),
    "anew without a cause": Spoiled(
        changed(8, Missing(3.0, "c", "s"), handed(3.0, TWO, 1)), "losses", "c", "s", None, "begin anew with s"
    ),
    "a seq again": Spoiled(
        changed(5, Published(2.0, "p", TWO.replace(seq=1))), "streams", "p", "", TWO.replace(seq=1), "p/e1 was number 1"
    ),
    "a seq that falls": Spoiled(
        changed(4, Published(2.0, "p", ONE.replace(seq=3))), "streams", "p", "", TWO, "where p/e1 was number 3 before"
    ),
    "an effect before its cause": Spoiled(
        [*causally(LEARNT), handed(4.0, EFFECT, 1), handed(4.0, ONE, 2)],
        "causal", "c", "", ONE, "after q/e1, of which it is a cause",
    ),
    "too early": Spoiled(
        [SUBSCRIBED, Published(2.0, "p", HELD), handed(2.5, HELD, 1)], "timely", "c", "", HELD, "is not to be delivered"
    ),
    "too late": Spoiled(
        [SUBSCRIBED, Published(2.0, "p", MORTAL), Settled(3.5), handed(4.0, MORTAL, 1)],
        "timely", "c", "", MORTAL, "was notified of p/e1, which had expired",
    ),
    "sent too late": Spoiled(
        [SUBSCRIBED, Published(2.0, "p", MORTAL), Sent(3.0, "b", "c", "Notify", (("p", "e1"),))],
        "timely", "c", "", MORTAL, "was sent p/e1, which had expired",
    ),
    "while it is away": Spoiled(
        changed(6, Detached(3.0, "c", "b"), handed(3.0, ONE, 1)), "presence", "c", "", ONE, "was not there"
    ),
    "after it crashed": Spoiled(
        changed(6, Crashed(3.0, "c"), handed(3.0, ONE, 1)), "presence", "c", "", ONE, "was not there"
    ),
    "told while it is away": Spoiled(
        changed(6, Detached(3.0, "c", "b"), Lost(3.0, "c", "s", 1, 1)), "presence", "c", "s", None, "was not there"
    ),
}  # fmt: skip


@pytest.mark.parametrize("spoiled", SPOILED.values(), ids=SPOILED.keys())
def test_what_is_wrong_is_named(spoiled: Spoiled) -> None:
    found = [violation for violation in check_trace(spoiled.records) if violation.rule == spoiled.rule]
    assert found, check_trace(spoiled.records)
    assert found[0][2:5] == (spoiled.client, spoiled.subscription, spoiled.event)
    assert spoiled.said in found[0].said and all(record in spoiled.records for record in found[0].records)


def test_a_violation_comes_with_its_records() -> None:
    (violation,) = check_trace(changed(9, Dropped(3.0, "b", TWO, "shed"), Lost(3.0, "d", "s", 2, 2)))
    said = "d was not notified of p/e2 for s, which wants it; it was dropped at b: shed"
    dropped = Dropped(3.0, "b", TWO, "shed")
    assert violation == Violation("liveness", said, "d", "s", TWO, (RIGHT[1], RIGHT[5], dropped, RIGHT[10]))
    assert str(violation) == f"liveness: {said}"


# --- moments ---


def test_the_old_filter_counts_for_what_was_published_until_its_change_has_settled() -> None:
    begin: list[AnyRecord] = [SUBSCRIBED, Settled(1.0), Subscribed(2.0, "c", "s", Filter.parse("x > 7"))]
    later: list[AnyRecord] = [Published(3.0, "p", ONE), handed(5.0, ONE, 1)]
    assert check_trace([*begin, *later]) == []
    assert check_trace([*begin, *later], settling=1.0) == []
    assert check_trace([*begin, later[0], Settled(4.0), later[1]]) == [], "it was lost, and asked for"
    assert [v.rule for v in check_trace([*begin, *later], settling=0.5)] == ["matching"]
    assert [v.rule for v in check_trace([*begin, Settled(2.5), *later])] == ["matching"]
    assert [v.rule for v in check_trace([*begin, later[0], Unsubscribed(4.0, "c", "s"), later[1]])] == ["active"]


def test_subscriptions_bind_when_they_have_settled() -> None:
    missed: list[AnyRecord] = [SUBSCRIBED, Published(2.0, "p", ONE), Settled(5.0)]
    assert check_trace(missed) == []
    assert check_trace(missed, settling=3.0) == []
    assert [v.rule for v in check_trace(missed, settling=1.5)] == ["liveness"]
    assert [v.rule for v in check_trace([SUBSCRIBED, Settled(1.0), *missed[1:]])] == ["liveness"]


def test_nothing_is_due_before_all_has_settled() -> None:
    assert check_trace([SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE)]) == []
    assert check_trace([SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE)], settling=1.0) == []


def test_who_unsubscribes_before_it_is_due_need_not_get_it() -> None:
    assert check_trace([SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE), UNSUBSCRIBED, Settled(7.0)]) == []


def test_a_new_subscription_of_an_old_name_counts_anew() -> None:
    begun = Subscribed(8.0, "c", "s", WANTED)
    assert check_trace(with_last(begun, Published(9.0, "p", FOUR), handed(9.0, FOUR, 1))) == []
    again = ONE.replace(seq=5)
    assert check_trace(with_last(begun, Published(9.0, "p", again), handed(9.0, again, 1))) == []
    assert [v.rule for v in check_trace(with_last(begun, handed(9.0, ONE, 3)))] == ["numbers"]


def test_numbers_go_on_and_nothing_comes_twice_where_a_broker_forgot() -> None:
    records: list[AnyRecord] = [SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE), handed(2.0, ONE, 1), Settled(2.0)]
    crash: list[AnyRecord] = [Crashed(2.5, "b"), Restarted(2.6, "b"), Missing(3.0, "c", "s"), Published(3.0, "p", TWO)]
    assert check_trace([*records, *crash, handed(3.0, TWO, 2)]) == []
    assert [v.rule for v in check_trace([*records, *crash, handed(3.0, TWO, 1)])] == ["numbers"]
    assert [v.rule for v in check_trace([*records, *crash, handed(3.0, ONE, 2)])] == ["once"]


def test_safety_from_some_moment_on() -> None:
    spoiled: list[AnyRecord] = [handed(0.0, ONE, 7), handed(0.5, ONE, 7), *RIGHT]
    assert check_trace(spoiled) and check_trace(spoiled, since=0.5)
    assert check_trace(spoiled, since=1.0) == []
    assert check_trace(with_last(handed(8.0, ONE, 3)), since=7.5)


def test_what_is_due_before_it_expires_is_due_however_late_the_next_record_is() -> None:
    missed: list[AnyRecord] = [SUBSCRIBED, Published(2.0, "p", MORTAL), Detached(9.0, "q", "b")]
    (violation,) = check_trace(missed, settling=0.5)
    assert (violation.rule, violation.records) == ("liveness", tuple(missed[:2]))
    assert check_trace(missed, settling=1.0) == []


def test_events_that_expire_or_wait() -> None:
    begin: list[AnyRecord] = [SUBSCRIBED, Settled(1.0)]
    assert check_trace([*begin, Published(2.0, "p", event(1, expires=3_000_000)), Settled(4.0)]) == []
    assert check_trace([*begin, Published(2.0, "p", event(1, expires=5_000_000)), Settled(4.0)]) != []
    waiting = Published(2.0, "p", event(1, not_before=3_000_000))
    assert check_trace([*begin, waiting, Detached(4.0, "q", "b")], settling=1.0) == []
    assert check_trace([*begin, waiting, Detached(4.5, "q", "b")], settling=1.0) != []
    early, late = event(1, not_before=3_000_000), event(2)
    records = [
        *begin,
        Published(2.0, "p", early),
        Published(2.0, "p", late),
        handed(2.0, late, 1),
        handed(3.0, early, 2),
    ]
    assert check_trace(records) == []


def test_priorities_may_overtake() -> None:
    low, high = event(1, priority=1), event(2, priority=9)
    records: list[AnyRecord] = [
        SUBSCRIBED,
        Published(2.0, "p", low),
        Published(2.0, "p", high),
        handed(3.0, high, 1),
        handed(3.0, low, 2),
    ]
    assert check_trace(records) == []


def test_effects_come_after_causes_that_were_known() -> None:
    assert check_trace([*causally(LEARNT), handed(4.0, ONE, 1), handed(4.0, EFFECT, 2)]) == []
    assert check_trace([*causally(LEARNT), handed(4.0, EFFECT, 1)]) == []
    assert check_trace([*causally(), handed(4.0, EFFECT, 1), handed(4.0, ONE, 2)]) == []


def test_a_stream_may_go_back_to_what_was_sent_on_before_a_crash() -> None:
    other = TWO.replace(id="other")
    begin: list[AnyRecord] = [SUBSCRIBED, Published(2.0, "p", ONE), handed(2.0, ONE, 1), Published(2.0, "p", TWO)]
    crashed, again = Crashed(3.0, "b"), Published(4.0, "p", other)
    assert check_trace([*begin, crashed, again, handed(5.0, other, 2)]) == []
    assert [v.rule for v in check_trace([*begin, again])] == ["streams"]
    assert [v.rule for v in check_trace([*begin, Crashed(3.0, "d"), again])] == ["streams"]
    assert [v.rule for v in check_trace([*begin, handed(3.0, TWO, 2), crashed, again])] == ["streams"]
    assert [v.rule for v in check_trace([*begin, crashed, again, handed(5.0, TWO, 2), handed(5.0, other, 3)])] == [
        "streams"
    ]


def test_an_effect_waits_for_no_cause_that_is_out_of_reach() -> None:
    """p publishes at b1, and at b3 when b1 is cut off; c is at b3."""
    cause = ONE.replace(stream=("b1", "p"), seq=1)
    effect = Event("t", {"x": 2}, source="p", id="e2", causes=[("p", "e1")], stream=("b3", "p"), seq=1)
    links: list[AnyRecord] = [Linked(0.0, "b1", "b2"), Linked(0.0, "b2", "b3"), Settled(0.0)]
    links += [Attached(0.0, "c", "b3"), SUBSCRIBED]
    cut, back = Cut(2.0, "b1", "b2"), Linked(4.0, "b1", "b2")
    first, second = Published(3.0, "p", cause), Published(3.5, "p", effect)
    seen: list[AnyRecord] = [handed(5.0, effect, 1), handed(5.0, cause, 2)]
    assert check_trace([*links, cut, first, second, *seen[:1], back, *seen[1:]]) == []
    assert check_trace([*links, cut, first, second, back, *seen]) == [], "it was out of reach when it was published"
    assert check_trace([*links, cut, first, Linked(3.2, "b1", "b2"), second, *seen]) == [], "that has not settled"

    def rules(*records: AnyRecord) -> list[str]:
        return [violation.rule for violation in check_trace([*links, *records, *seen])]

    assert rules(first, second) == ["causal"]
    assert rules(cut, first, Linked(3.2, "b1", "b2"), Settled(3.3), second) == ["causal"]
    assert rules(Linked(1.0, "b3", "b4"), Cut(2.0, "b3", "b4"), first, second) == ["causal"], "others are cut off"
    assert rules(cut, first, Published(3.5, "p", effect.replace(stream=("b1", "p"), seq=2))) != []


def test_what_was_sent_in_time_may_arrive_later() -> None:
    begin: list[AnyRecord] = [SUBSCRIBED, Published(2.0, "p", MORTAL)]
    sent = Sent(2.5, "b", "c", "Notify", (("p", "e1"),))
    assert check_trace([*begin, handed(4.0, MORTAL, 1)]) == []
    assert check_trace([*begin, handed(4.0, MORTAL, 1)], settling=1.0) == []
    late = [v.rule for v in check_trace([*begin, handed(4.0, MORTAL, 1)], settling=0.5)]
    assert late == ["timely", "liveness"]
    assert [v.rule for v in check_trace([*begin, sent, handed(4.0, MORTAL, 1)], settling=0.5)] == ["liveness"]
    assert check_trace([*begin, Sent(3.5, "b", "d", "Routed", (("p", "e1"),))]) == []


@pytest.mark.parametrize(
    "record",
    [
        Detached(2.0, "c", "b"),
        Crashed(2.0, "b"),
        Corrupted(2.0, "b", "x"),
        Dropped(2.0, "b", ONE, "lost"),
        Vanished(2.0, "c", "b", "Subscribe"),
        Vanished(2.0, "b", "c", "Accepted"),
    ],
)
def test_what_is_lost_is_lost_for_a_reason(record: AnyRecord) -> None:
    attached = Attached(0.0, "c", "b")
    back: list[AnyRecord] = [Attached(2.5, "c", "b")] if isinstance(record, Detached) else []
    tellings: list[AnyRecord] = [Lost(3.0, "c", "s", 1, 2), Missing(3.0, "c", "s")]
    for told in tellings:
        assert check_trace([attached, SUBSCRIBED, record, *back, told]) == []
        assert [v.rule for v in check_trace([attached, SUBSCRIBED, told])] == ["losses"]
        early = [v.rule for v in check_trace([attached, record, *back, SUBSCRIBED, told])]
        assert early == ["losses"], "it was before the subscription"


def test_who_does_not_take_its_notifications_may_lose_some() -> None:
    begin: list[AnyRecord] = [Attached(0.0, "c", "b"), Stalled(0.5, "c", "b"), SUBSCRIBED]
    resumed, told = Resumed(2.0, "c", "b"), Lost(3.0, "c", "s", 1, 2)
    assert check_trace([*begin, told]) == []
    assert check_trace([*begin, resumed, told]) == []
    over: list[AnyRecord] = [*begin[:2], Resumed(0.6, "c", "b"), SUBSCRIBED, told]
    assert [v.rule for v in check_trace(over)] == ["losses"]
    assert [v.rule for v in check_trace([Attached(0.0, "c", "b"), Stalled(0.5, "q", "b"), SUBSCRIBED, told])] == [
        "losses"
    ]


def test_who_does_not_take_its_notifications_need_not_get_them() -> None:
    stalled, resumed = Stalled(1.2, "c", "b"), Resumed(1.5, "c", "b")
    missed: list[AnyRecord] = [Settled(1.8), Published(2.0, "p", ONE), Settled(3.0)]
    assert check_trace([SUBSCRIBED, Settled(1.0), stalled, *missed]) == []
    for end in (resumed, Attached(1.5, "c", "b")):
        assert [v.rule for v in check_trace([SUBSCRIBED, Settled(1.0), stalled, end, *missed])] == ["liveness"]
    assert check_trace([SUBSCRIBED, Settled(1.0), *missed[:2], stalled, resumed, missed[2]]) == []


@pytest.mark.parametrize(
    "record",
    [Crashed(2.0, "d"), Detached(2.0, "q", "b"), Dropped(2.0, "d", ONE, "lost"), Vanished(2.0, "b", "d", "AdminS")],
)
def test_what_happens_to_others_is_no_reason(record: AnyRecord) -> None:
    records: list[AnyRecord] = [Attached(0.0, "c", "b"), SUBSCRIBED, record, Lost(3.0, "c", "s", 1, 2)]
    assert [v.rule for v in check_trace(records)] == ["losses"]


@pytest.mark.parametrize(
    "record", [Crashed(2.5, "p"), Crashed(2.5, "q"), Detached(2.5, "p", "b"), Detached(0.5, "q", "b")]
)
def test_a_client_that_is_away_excuses_itself_alone(record: AnyRecord) -> None:
    others = Subscribed(0.0, "q", "s", WANTED)
    missed: list[AnyRecord] = [others, SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE), Settled(3.0)]
    assert [v.client for v in check_trace(missed)] == ["q", "c"]
    place = 2 if record.at < 1 else 4
    found = check_trace([*missed[:place], record, *missed[place:]])
    excused = ["q"] if "q" in (getattr(record, "client", ""), getattr(record, "node", "")) else []
    assert [v.client for v in found] == [client for client in ("q", "c") if client not in excused]


def test_who_is_back_is_told_again() -> None:
    begin: list[AnyRecord] = [SUBSCRIBED, Detached(1.0, "c", "b"), Attached(2.0, "c", "b")]
    assert check_trace([*begin, Published(2.0, "p", ONE), handed(2.0, ONE, 1)]) == []


@pytest.mark.parametrize(
    "record", [Crashed(2.5, "b"), Cut(2.5, "b", "d"), Corrupted(2.5, "b", "x"), Detached(2.5, "c", "b")]
)
def test_what_is_disturbed_must_settle_first(record: AnyRecord) -> None:
    missed: list[AnyRecord] = [SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE), Settled(3.0)]
    assert check_trace(missed) != []
    assert check_trace([*missed[:3], record, missed[3]]) == []
    assert check_trace([*missed[:2], record, *missed[2:]]) == []
    there: list[AnyRecord] = [Attached(2.5, "c", "b")] if isinstance(record, Detached) else []
    assert check_trace([*missed[:2], record, *there, Settled(2.5), *missed[2:]]) != []


@pytest.mark.parametrize("record", [Detached(0.5, "c", "b"), Crashed(0.5, "c")])
def test_who_is_not_there_need_not_get_it(record: AnyRecord) -> None:
    missed: list[AnyRecord] = [
        SUBSCRIBED,
        record,
        Settled(1.0),
        Published(2.0, "p", ONE),
        Settled(3.0),
    ]
    assert check_trace(missed) == []


# --- advertisements ---


def test_what_is_not_advertised_is_not_taken() -> None:
    withdrawn = [*RIGHT[:3], Unadvertised(0.5, "p", "a"), *RIGHT[3:]]
    for records in (without(2), withdrawn, changed(2, Advertised(0.0, "q", "a", Filter.all()))):
        assert check_trace(records) == []
        found = check_trace(records, advertisements=True)
        assert [(violation.rule, violation.records) for violation in found] == [
            ("admission", (RIGHT[place],)) for place in (4, 5, 11)
        ]
        assert found[0][1:5] == ("p published p/e1, which is outside of what it advertised", "p", "", ONE)
        assert check_trace(records, since=6.0, advertisements=True) == []


def test_an_advertisement_counts_until_what_was_said_before_its_end_has_arrived() -> None:
    offer, withdrawn = Advertised(0.0, "p", "a", WANTED), Unadvertised(1.0, "p", "a")
    on_its_way: list[AnyRecord] = [offer, withdrawn, Published(2.0, "p", ONE), Settled(3.0)]
    assert check_trace(on_its_way, advertisements=True) == []
    assert check_trace(on_its_way, settling=1.0, advertisements=True) == []
    assert [v.rule for v in check_trace(on_its_way, settling=0.5, advertisements=True)] == ["admission"]
    settled = [*on_its_way[:2], Settled(1.5), *on_its_way[2:]]
    assert [v.rule for v in check_trace(settled, advertisements=True)] == ["admission"]


def test_what_a_broker_holds_was_advertised_when_it_came() -> None:
    held = event(1, not_before=9_000_000)
    records: list[AnyRecord] = [
        Advertised(0.0, "p", "a", WANTED),
        Unadvertised(1.0, "p", "a"),
        Settled(2.0),
        Published(9.0, "p", held),
    ]
    assert check_trace(records, advertisements=True) == []
    assert [v.rule for v in check_trace(records[1:], advertisements=True)] == ["admission"]


def test_liveness_binds_publisher_and_advertiser() -> None:
    missed: list[AnyRecord] = [SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE), Settled(3.0)]
    mine, others = Advertised(0.5, "p", "a", WANTED), Advertised(0.5, "q", "a", WANTED)
    assert [v.rule for v in check_trace(missed)] == ["liveness"]
    assert [v.rule for v in check_trace(missed, advertisements=True)] == ["admission"]
    assert [v.rule for v in check_trace([others, *missed], advertisements=True)] == ["admission"]
    assert [v.rule for v in check_trace([mine, *missed], advertisements=True)] == ["liveness"]
    assert check_trace([*missed[:2], mine, *missed[2:]], advertisements=True) == []
    withdrawn = [mine, *missed[:3], Unadvertised(2.5, "p", "a"), missed[3]]
    assert check_trace(withdrawn, advertisements=True) == []
    narrow = Advertised(0.5, "p", "a", Filter.parse("x = 3"))
    assert [v.rule for v in check_trace([narrow, *missed], advertisements=True)] == ["admission"]
    gone = Detached(2.5, "p", "b")
    assert check_trace([mine, *missed[:3], gone, missed[3]], advertisements=True) == []
    assert [v.rule for v in check_trace([*missed[:3], gone, missed[3]])] == ["liveness"]


@pytest.mark.parametrize("released", [0, 2_000_000])
def test_a_client_may_publish_and_take_its_advertisement_back(released: int) -> None:
    """What is recorded where the broker takes it was published before."""

    def core(name: NodeId, stored: Sequence[StoredEvent], log: OwnLog) -> BrokerCore:
        return BrokerCore(name, AdvertisingRouter(make_strategy("covering")), stored=stored, log=log)

    network = Network(line(2), core, lambda name: Session(name, lambda low, high: low))
    network.attach("p", "b0")
    network.advertise("p", "a", WANTED)
    network.settle()
    network.publish("p", Event("t", {"x": 5}, source="p", id="e1", not_before=released))
    network.unadvertise("p", "a")
    network.settle()
    network.run(3.0)
    kinds = [type(record) for record in network.trace]
    assert kinds.index(Unadvertised) < kinds.index(Published)
    assert check_trace(network.trace, advertisements=True) == []
