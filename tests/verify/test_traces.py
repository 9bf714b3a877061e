"""The rules over traces: a run that is right stays clean, and each way to spoil it is caught and named."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from vestnik import Event, Filter
from vestnik.trace.records import (
    Advertised,
    Anew,
    AnyRecord,
    Attached,
    Corrupted,
    Crashed,
    Cut,
    Detached,
    Dropped,
    Lost,
    Notified,
    Published,
    Rejected,
    Restarted,
    Settled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from vestnik.verify.traces import check_trace
from vestnik.verify.violations import Violation

WANTED, OTHER = Filter.parse("x > 1"), Filter.parse("x < 9")


def event(number: int, x: int = 5, source: str = "p", **envelope: int) -> Event:
    found = Event("t", {"x": x}, source=source, id=f"e{number}", stream=("b", source), seq=number)
    return found.replace(**envelope)  # type: ignore[arg-type]


def handed(at: float, given: Event, number: int, client: str = "c", name: str = "s") -> Notified:
    return Notified(at, client, given, ((name, number),))


ONE, TWO, THREE, SMALL = event(1), event(2), event(3), event(4, x=0)
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
        with_last(Published(7.0, "p", THREE), handed(7.0, THREE, 3)), "active", "c", "s", THREE, "had unsubscribed"
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
        changed(8, handed(3.0, TWO, 2), Lost(3.0, "c", "s", 5, 6)), "numbers", "c", "s", None, "number 5 in s"
    ),
}  # fmt: skip


@pytest.mark.parametrize("spoiled", SPOILED.values(), ids=SPOILED.keys())
def test_what_is_wrong_is_named(spoiled: Spoiled) -> None:
    found = [violation for violation in check_trace(spoiled.records) if violation.rule == spoiled.rule]
    assert found, check_trace(spoiled.records)
    assert found[0][2:5] == (spoiled.client, spoiled.subscription, spoiled.event)
    assert spoiled.said in found[0].said and all(record in spoiled.records for record in found[0].records)


def test_a_violation_comes_with_its_records() -> None:
    told = Lost(3.0, "d", "s", 2, 2)
    (violation,) = check_trace(changed(9, told))
    said = "d was not notified of p/e2 for s, which wants it"
    assert violation == Violation("liveness", said, "d", "s", TWO, (RIGHT[1], RIGHT[5], RIGHT[10]))
    assert str(violation) == f"liveness: {said}"


# --- moments ---


def test_the_old_filter_counts_until_its_change_has_settled() -> None:
    records: list[AnyRecord] = [
        SUBSCRIBED,
        Settled(1.0),
        Published(2.0, "p", ONE),
        Subscribed(2.0, "c", "s", Filter.parse("x > 7")),
        handed(3.0, ONE, 1),
    ]
    assert check_trace(records) == []
    assert check_trace([*records, Settled(3.0)]) == []
    assert check_trace(records, settling=1.0) == []
    assert [v.rule for v in check_trace(records, settling=0.5)] == ["matching"]
    assert [v.rule for v in check_trace([*records[:4], Settled(2.5), records[4]])] == ["matching"]


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
    assert check_trace(with_last(begun, Published(9.0, "p", THREE), handed(9.0, THREE, 1))) == []
    assert check_trace(with_last(begun, Published(9.0, "p", ONE), handed(9.0, ONE, 1))) == []
    assert [v.rule for v in check_trace(with_last(begun, handed(9.0, ONE, 3)))] == ["numbers"]


def test_numbers_go_on_and_nothing_comes_twice_where_a_broker_forgot() -> None:
    records: list[AnyRecord] = [SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE), handed(2.0, ONE, 1), Settled(2.0)]
    crash: list[AnyRecord] = [Crashed(2.5, "b"), Restarted(2.6, "b"), Anew(3.0, "c", "s"), Published(3.0, "p", TWO)]
    assert check_trace([*records, *crash, handed(3.0, TWO, 2)]) == []
    assert [v.rule for v in check_trace([*records, *crash, handed(3.0, TWO, 1)])] == ["numbers"]
    assert [v.rule for v in check_trace([*records, *crash, handed(3.0, ONE, 2)])] == ["once"]


def test_safety_from_some_moment_on() -> None:
    spoiled: list[AnyRecord] = [handed(0.0, ONE, 7), handed(0.5, ONE, 7), *RIGHT]
    assert check_trace(spoiled) and check_trace(spoiled, since=0.5)
    assert check_trace(spoiled, since=1.0) == []
    assert check_trace(with_last(handed(8.0, ONE, 3)), since=7.5)


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


def test_what_is_not_advertised_is_not_notified() -> None:
    for place, said in ((2, []), (3, [Unadvertised(0.5, "p", "a")])):
        records = [*RIGHT[:2], *([] if place == 2 else [RIGHT[2]]), *said, *RIGHT[3:]]
        assert check_trace(records) == []
        found = check_trace(records, advertisements=True)
        assert {violation.rule for violation in found} == {"advertised"} and len(found) == 5
        assert found[0].records == (RIGHT[4], RIGHT[6])


def test_an_advertisement_of_another_does_not_count() -> None:
    records = changed(2, Advertised(0.0, "q", "a", Filter.all()))
    assert {violation.rule for violation in check_trace(records, advertisements=True)} == {"advertised"}


def test_liveness_binds_publisher_and_advertiser() -> None:
    missed: list[AnyRecord] = [SUBSCRIBED, Settled(1.0), Published(2.0, "p", ONE), Settled(3.0)]
    mine, others = Advertised(0.5, "p", "a", WANTED), Advertised(0.5, "q", "a", WANTED)
    assert check_trace(missed) != []
    assert check_trace(missed, advertisements=True) == []
    assert check_trace([others, *missed], advertisements=True) == []
    assert [v.rule for v in check_trace([mine, *missed], advertisements=True)] == ["liveness"]
    assert check_trace([*missed[:2], mine, *missed[2:]], advertisements=True) == []
    withdrawn = [mine, *missed[:3], Unadvertised(2.5, "p", "a"), missed[3]]
    assert check_trace(withdrawn, advertisements=True) == []
    narrow = Advertised(0.5, "p", "a", Filter.parse("x = 3"))
    assert check_trace([narrow, *missed], advertisements=True) == []
