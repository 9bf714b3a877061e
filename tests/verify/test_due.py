"""The rule `due` counts accepted events against those that were handed over or are in gaps."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik import Event, Filter, Replay
from vestnik.model.times import MICROS
from vestnik.trace.records import (
    AnyRecord,
    Attached,
    Crashed,
    Detached,
    Lost,
    Missing,
    Notified,
    Published,
    Quiet,
    Restarted,
    Settled,
    Stalled,
    Subscribed,
    Unsubscribed,
)
from vestnik.verify.due import due
from vestnik.verify.histories import History
from vestnik.verify.quiet import agreements
from vestnik.verify.repeats import repeats

LOG = "b/1"
BEGIN: list[AnyRecord] = [Restarted(0.0, "b", LOG), Attached(1.0, "c", "b")]


def at(seconds: float) -> int:
    return int(seconds * MICROS)


def event(number: int, **envelope: Any) -> Event:
    return Event("t", {"x": number}, source="s", id=str(number), stream=("b", "s"), seq=number, **envelope)


def published(number: int, when: float, **envelope: Any) -> Published:
    return Published(when + 0.1, "p", event(number, **envelope), at(when))


def subscribed(when: float, wanted: str = "x > 0", since: float | None = None, **terms: Any) -> Subscribed:
    return Subscribed(when, "c", "s", Filter.parse(wanted), since=at(when if since is None else since), **terms)


def notified(when: float, number: int) -> Notified:
    return Notified(when, "c", event(number), (("s", number),))


def missed(*records: AnyRecord) -> list[int]:
    found = due(History([*BEGIN, *records, Settled(100.0)]))
    return [int(violation.event.id) for violation in found if violation.event is not None]


def test_what_is_accepted_and_wanted_is_due_once_all_has_settled() -> None:
    records: list[AnyRecord] = [subscribed(2.0), published(1, 5.0), published(2, 6.0), notified(7.0, 1)]
    assert missed(*records) == [2]
    assert missed(*records, notified(8.0, 2)) == []
    assert missed(subscribed(2.0), Settled(3.0), published(1, 5.0)) == [1]
    assert list(due(History([*BEGIN, *records]))) == [], "it may be on its way"


def test_what_was_accepted_before_is_not_due() -> None:
    assert missed(published(1, 1.5), subscribed(2.0), published(2, 2.1), published(3, 2.3)) == [3], "clocks may differ"


def test_cursors_and_replays_reach_back() -> None:
    past = [published(number, number * 0.1) for number in (1, 2, 3)]
    assert missed(*past, subscribed(2.0, seen=((LOG, 2),))) == [2, 3]
    assert missed(*past, subscribed(2.0, seen=(("x/1", 2),))) == [], "that is another log"
    assert missed(*past, subscribed(2.0, since=0.0, replay=Replay(all=True))) == [1, 2, 3]
    assert missed(*past, subscribed(2.0, since=0.0, replay=Replay(since=at(0.2)))) == [2, 3]
    assert missed(*past, subscribed(2.0, replay=Replay(last=1))) == [], "what is picked other rules check"


def test_every_filter_since_must_want_it() -> None:
    change = Subscribed(10.0, "c", "s", Filter.parse("x > 1"))
    records: list[AnyRecord] = [subscribed(2.0, "x < 3"), *[published(number, 5.0) for number in (1, 2, 3)], change]
    assert missed(*records, *[published(number, 15.0) for number in (4, 5)]) == [2, 4, 5]


def test_it_is_the_same_subscription_in_another_life_of_its_broker() -> None:
    ended: list[AnyRecord] = [Crashed(6.0, "b"), Detached(6.0, "c", "b"), Unsubscribed(6.0, "c", "s")]
    again: list[AnyRecord] = [Restarted(8.0, "b", LOG), Attached(9.0, "c", "b")]
    records = [subscribed(2.0), published(1, 5.0), *ended, *again]
    assert missed(*records) == [], "its client has not come back"
    assert missed(*records, subscribed(9.0, since=2.0)) == [1]
    assert missed(*records, subscribed(9.0)) == [], "it is another"
    assert missed(*records, subscribed(9.0, since=2.0), notified(9.5, 1)) == []
    assert (
        missed(subscribed(2.0), notified(4.0, 1), published(1, 3.0), *ended, *again, subscribed(9.0, since=2.0)) == []
    )


def test_a_subscription_that_ended_has_what_is_before_its_cursors() -> None:
    first: list[AnyRecord] = [subscribed(2.0), published(1, 5.0), notified(8.0, 1)]
    records = [*first[:2], published(2, 6.0), published(3, 7.0), *first[2:]]
    assert missed(*records, Unsubscribed(9.0, "c", "s", ((LOG, 3),))) == [2]
    assert missed(*records, Unsubscribed(9.0, "c", "s", ((LOG, 3),)), Detached(9.1, "c", "b")) == [2]
    assert missed(*records, Unsubscribed(9.0, "c", "s", (("x/1", 3),))) == [], "that is another log"
    assert missed(*records, notified(8.5, 2), Unsubscribed(9.0, "c", "s", ((LOG, 3),))) == []
    assert missed(*records, subscribed(9.0, seen=((LOG, 3),)), notified(10.0, 3)) == [2], "its client says the same"


@pytest.mark.parametrize(
    "excuse",
    [
        Missing(20.0, "c", "s", "gone", LOG, 1, 2),
        Missing(20.0, "c", "s", "forgotten"),
        Lost(20.0, "c", "s", 1, 1),
        Unsubscribed(20.0, "c", "s"),
        Detached(20.0, "c", "b"),
        Stalled(20.0, "c", "b"),
        Crashed(20.0, "b"),
    ],
    ids=lambda record: type(record).__name__ if isinstance(record, object) else "",
)
def test_what_excuses(excuse: AnyRecord) -> None:
    assert missed(subscribed(2.0), published(1, 5.0), excuse) == []


def test_what_does_not_excuse() -> None:
    assert missed(subscribed(2.0), published(1, 5.0), Missing(20.0, "c", "s", "gone", LOG, 2, 9)) == [1]
    assert missed(subscribed(2.0), Missing(4.0, "c", "s", "forgotten"), published(1, 5.0)) == [1]
    assert missed(subscribed(2.0), published(1, 5.0, expires=at(200.0))) == [1]
    assert missed(subscribed(2.0), published(1, 5.0, expires=at(50.0))) == []


def repeated(*records: AnyRecord) -> list[str]:
    return [violation.said for violation in repeats(History([*BEGIN, *records]))]


def test_an_event_that_was_published_at_two_brokers_comes_once() -> None:
    twin = Notified(9.0, "c", event(1).replace(stream=("x", "s"), seq=7), (("s", 2),))
    first: list[AnyRecord] = [subscribed(2.0), notified(4.0, 1)]
    assert repeated(*first, twin) == ["c was notified of s/1, for s a second time"]
    back: list[AnyRecord] = [Detached(5.0, "c", "b"), Unsubscribed(6.0, "c", "s"), Attached(7.0, "c", "b")]
    again = notified(9.0, 1)
    came_back = subscribed(8.0, since=2.0, seen=((LOG, 2),))
    assert repeated(*first, *back, came_back, twin) == [], "its client recognises it"
    assert len(repeated(*first, *back, came_back, again)) == 1, "its client has it, and said so"
    assert repeated(*first, *back, subscribed(8.0, since=2.0, seen=((LOG, 1),)), again) == [], "it did not come"
    assert repeated(*first, *back, subscribed(8.0, seen=((LOG, 2),)), again) == [], "that is another subscription"
    moved: list[AnyRecord] = [Detached(5.0, "c", "b"), Attached(7.0, "c", "x")]
    assert repeated(*first, *moved, subscribed(8.0, since=2.0, seen=((LOG, 2),)), twin) == []


def quiet(node: str, since: float, when: float, own: int, other: int) -> Quiet:
    """Return what one of the brokers a and b says of its own log and that of the other."""
    logs = {"a": (("a/1", own), ("b/1", other)), "b": (("b/1", own), ("a/1", other))}
    return Quiet(when, node, since, logs[node])


def test_what_was_due_before_a_broker_ended_is_due_though_others_agree_after_that() -> None:
    """The broker of the event and of its client ends first, and the other has time to say that it is quiet."""
    ups: list[AnyRecord] = [Restarted(0.0, "a", "a/1"), *BEGIN, subscribed(2.0), published(1, 5.0)]
    agreed: list[AnyRecord] = [quiet("a", 6.0, 9.0, 0, 2), quiet("b", 6.0, 10.0, 2, 0)]
    ended: list[AnyRecord] = [Crashed(11.0, "b"), Detached(11.0, "c", "b"), Unsubscribed(11.0, "c", "s")]
    shut: list[AnyRecord] = [*ups, *agreed, *ended, quiet("a", 12.0, 15.0, 0, 2)]
    assert [violation.client for violation in due(History(shut))] == ["c"]
    assert not list(due(History([*ups, notified(5.5, 1), *shut[len(ups) :]])))
    assert not list(due(History([*ups, *ended, quiet("a", 12.0, 15.0, 0, 2)]))), "it was on its way when b ended"


def test_brokers_agree_if_all_are_quiet_and_have_read_all_logs() -> None:
    ups: list[AnyRecord] = [Restarted(0.0, "a", "a/1"), Restarted(0.0, "b", "b/1")]
    agreed = [quiet("a", 1.0, 5.0, 9, 4), quiet("b", 4.0, 7.0, 4, 9)]
    assert agreements([*ups, *agreed]) == [2], "at the end of the first to stop being quiet"
    assert agreements([*ups, quiet("a", 1.0, 5.0, 9, 4)]) == [], "the other has not said it"
    assert agreements([*ups, agreed[0], quiet("b", 6.0, 8.0, 4, 9)]) == [], "not at the same time"
    assert agreements([*ups, agreed[0], quiet("b", 4.0, 7.0, 4, 8)]) == [], "b has not read all of a"
    assert agreements([*ups, agreed[0], quiet("b", 4.0, 7.0, 5, 9)]) == [], "a has not read all of b"
    assert agreements([*ups, agreed[0], Quiet(7.0, "b", 4.0, (("b/1", 4),))]) == [], "b does not reach a"
    assert agreements([*ups, agreed[0], Crashed(6.0, "a"), agreed[1]]) == [4], "those that are up"
    assert agreements([*ups, agreed[0], Crashed(6.0, "a"), Restarted(6.5, "a", "a/1"), agreed[1]]) == []
    third: list[AnyRecord] = [Restarted(0.0, "x", "x/1"), *ups, agreed[0], Crashed(6.0, "x"), agreed[1]]
    assert agreements(third) == [], "x was not quiet when a was"
    assert agreements([*third, quiet("a", 1.0, 10.0, 9, 4)]) == [5], "both were when x was down"
