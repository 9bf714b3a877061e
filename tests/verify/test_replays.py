"""The rule over replays: the past, once and in order, then what comes, without a gap."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.trace.records import (
    Acknowledged,
    Advertised,
    AnyRecord,
    Attached,
    Crashed,
    Cut,
    Missing,
    Notified,
    Published,
    Restarted,
    Settled,
    Subscribed,
)
from vestnik.verify.traces import check_trace
from vestnik.wire.replays import Replay


def event(number: int, **envelope: Any) -> Event:
    return Event("t", {"x": 5}, source="p", id=f"e{number}", stream=("b", "p"), seq=number).replace(**envelope)


def trace(replay: Replay, *handed: tuple[int, bool], mortal: int = 0) -> list[AnyRecord]:
    """Three events, a subscription, one event more, and what is handed over."""
    expires = {mortal: {"expires": 3_500_000}}
    events = {number: event(number, **expires.get(number, {})) for number in range(1, 5)}
    past = [Published(float(number - 1) / 2, "p", events[number]) for number in range(1, 4)]
    notified = [
        Notified(3.0, "c", events[number], (("s", place),), replayed)
        for place, (number, replayed) in enumerate(handed, start=1)
    ]
    subscribed = Subscribed(2.0, "c", "s", Filter.all(), replay)
    return [*past, Attached(1.0, "c", "b"), Settled(1.5), subscribed, Published(2.5, "p", events[4]), *notified]


def wrong(records: list[AnyRecord], **claims: Any) -> list[str]:
    return [f"{v.rule}: {v.said}" for v in check_trace([*records, Settled(4.0)], stored=True, **claims)]


PAST = [(1, True), (2, True), (3, True)]
ALL, LAST = Replay(all=True), Replay(last=2)


@pytest.mark.parametrize(
    ("replay", "handed"),
    [
        (ALL, [*PAST, (4, False)]),
        (ALL, [*PAST, (4, True)]),
        (LAST, [(2, True), (3, True), (4, False)]),
        (LAST, [(3, True), (4, True)]),
        (Replay(last=9), [*PAST, (4, False)]),
    ],
)
def test_what_is_right_is_clean(replay: Replay, handed: list[tuple[int, bool]]) -> None:
    assert wrong(trace(replay, *handed)) == []


def test_what_was_picked_and_expired_is_one_of_the_last_also_if_it_came_after_the_question() -> None:
    advertised = Advertised(0.0, "p", "a", Filter.all())
    assert wrong([advertised, *trace(LAST, (3, True), mortal=4)], advertisements=True) == []


NOT_AMONG = "was not among what was replayed to c for s"


@pytest.mark.parametrize(
    ("replay", "handed", "said"),
    [
        (ALL, [*PAST[1:], (4, False)], f"replays: p/e1 {NOT_AMONG}"),
        (ALL, [PAST[0], PAST[2], (4, False)], f"replays: p/e2 {NOT_AMONG}"),
        (ALL, PAST, f"replays: p/e4 {NOT_AMONG}"),
        (LAST, [(2, True), (4, False)], f"replays: p/e3 {NOT_AMONG}"),
        (LAST, [(2, True), (3, True)], f"replays: p/e4 {NOT_AMONG}"),
        (LAST, [(3, True), (4, False)], f"replays: p/e2 {NOT_AMONG}"),
        (Replay(last=9), [*PAST[1:], (4, False)], f"replays: p/e1 {NOT_AMONG}"),
        (LAST, [*PAST, (4, False)], "replays: p/e3 was replayed beyond the last 2 to c for s"),
        (ALL, [*PAST, (3, True), (4, False)], "once: c was notified of p/e3, for s a second time"),
        (ALL, [(2, True), (1, True), (3, True), (4, False)], "fifo: c was notified of p/e1 for s after p/e2"),
        (ALL, [(1, True), (2, False), (3, True), (4, False)], "replays: p/e3 was replayed after what is live"),
    ],
)
def test_what_is_wrong_is_named(replay: Replay, handed: list[tuple[int, bool]], said: str) -> None:
    assert any(found.startswith(said) for found in wrong(trace(replay, *handed))), wrong(trace(replay, *handed))


def test_what_has_expired_need_not_come() -> None:
    assert wrong(trace(ALL, PAST[1], PAST[2], (4, False), mortal=1)) == []
    assert wrong(trace(LAST, PAST[2], (4, False), mortal=2)) == []


@pytest.mark.parametrize("handed", [(1, 3), (2, 3)])
def test_an_event_that_was_accepted_at_two_brokers_counts_at_either_place(handed: tuple[int, int]) -> None:
    again = Published(0.75, "p", event(1).stamped("d", 1))  # after the second, and before the third
    records = trace(LAST, *[(number, True) for number in handed], (4, False))
    assert wrong([*records[:2], again, *records[2:]]) == []
    assert len(wrong(records)) == (1 if handed == (1, 3) else 0)


def test_it_is_claimed_where_all_was_connected() -> None:
    cut, missing = Cut(1.2, "b", "d"), Missing(3.0, "c", "s", "d: it cannot be reached")
    records = trace(ALL, (4, False))
    assert wrong([cut, *records]) == []
    assert wrong([*records, Crashed(3.2, "d"), Restarted(3.3, "d")]) == []
    assert wrong([cut, *records[:-1], missing, records[-1]]) == [], "what cannot be reached may be missing"


def test_what_is_acknowledged_is_published() -> None:
    one, held = event(1), event(2, not_before=3_000_000)
    assert wrong([Published(1.0, "p", one), Acknowledged(1.0, "p", one)]) == []
    told = "acknowledged: p was told that p/e{} is stored, which was not published"
    assert wrong([Acknowledged(1.0, "p", one), Published(1.0, "p", one)]) == [told.format(1)]
    assert wrong([Acknowledged(1.0, "p", held), Published(3.0, "p", held)]) == []
    assert wrong([Acknowledged(1.0, "p", held)]) == [told.format(2)]
    late = event(3, not_before=9_000_000)
    assert wrong([Acknowledged(1.0, "p", late)]) == []
