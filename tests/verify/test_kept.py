"""What is accepted is kept: the rule over traces, and over a network in which catching up has a mistake."""

from __future__ import annotations

from typing import Any

import pytest

from verify import catching_up
from verify.catching_up import MISTAKES, Plant
from vestnik import Event, Filter
from vestnik.sim.faults import Away, Crash, CutLink, Move
from vestnik.sim.runs import Run
from vestnik.sim.scenarios import Clients, Lease, Routing, Scenario
from vestnik.sim.shapes import Line
from vestnik.sim.workloads import Stock
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Crashed,
    Cut,
    Detached,
    Linked,
    Lost,
    Missing,
    Notified,
    Published,
    Restarted,
    Settled,
    Subscribed,
    Unsubscribed,
)
from vestnik.verify.traces import check_trace
from vestnik.verify.violations import Violation

WANTED = Filter.parse("x > 1")


def event(number: int, **envelope: Any) -> Event:
    return Event("t", {"x": 5}, source="p", id=f"e{number}", stream=("b", "p"), seq=number).replace(**envelope)


def wrong(*records: AnyRecord, advertisements: bool = False) -> list[str]:
    return [str(violation) for violation in check_trace(records, stored=True, advertisements=advertisements)]


KNOWN: list[AnyRecord] = [Attached(0.0, "c", "b"), Subscribed(0.0, "c", "s", WANTED), Settled(1.0)]
CUT, MENDED = Cut(1.5, "b", "d"), Linked(2.5, "b", "d")
ONE = Published(2.0, "p", event(1))
NEVER = ["kept: c was never notified of p/e1 for s, which wants it"]


def handed(at: float, number: int = 1) -> Notified:
    return Notified(at, "c", event(number), (("s", number),))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([CUT], [MENDED]),
        ([Crashed(1.5, "d")], [Restarted(2.5, "d")]),
        ([Detached(1.5, "c", "b")], [Attached(2.5, "c", "d")]),
        ([], [CUT, MENDED]),
    ],
)
def test_what_was_accepted_while_something_happened_comes_in_the_end(
    before: list[AnyRecord], after: list[AnyRecord]
) -> None:
    assert wrong(*KNOWN, *before, ONE, *after, Settled(4.0)) == NEVER
    assert wrong(*KNOWN, *before, ONE, *after, handed(3.0), Settled(4.0)) == []
    assert check_trace([*KNOWN, *before, ONE, *after, Settled(4.0)]) == [], "nobody claims that it is stored"


def test_it_is_due_when_all_is_connected_again() -> None:
    assert wrong(*KNOWN, CUT, ONE, Settled(4.0)) == []
    assert wrong(*KNOWN, CUT, ONE, MENDED) == []
    assert wrong(*KNOWN, CUT, ONE, Settled(2.2), MENDED, Settled(4.0), Crashed(5.0, "d"), Settled(6.0)) == NEVER
    assert wrong(*KNOWN, CUT, ONE, MENDED, Detached(3.0, "c", "b"), Settled(4.0)) == []


def test_it_is_owed_to_subscriptions_that_all_brokers_knew() -> None:
    assert wrong(*KNOWN[:2], CUT, ONE, MENDED, Settled(4.0)) == []
    assert wrong(*KNOWN[:2], CUT, Settled(1.7), ONE, MENDED, Settled(4.0)) == []
    away: list[AnyRecord] = [*KNOWN[:2], Detached(0.5, "c", "b"), Settled(1.0), CUT, ONE, MENDED]
    assert wrong(*away, Attached(2.6, "c", "b"), Settled(4.0)) == []
    assert wrong(*KNOWN, CUT, ONE, MENDED, Unsubscribed(3.0, "c", "s"), Settled(4.0)) == []
    assert wrong(*KNOWN, CUT, ONE, MENDED, Subscribed(3.0, "c", "s", Filter.all()), Settled(4.0)) == []


def test_what_expires_need_not_come() -> None:
    assert wrong(*KNOWN, CUT, Published(2.0, "p", event(1, expires=3_000_000)), MENDED, Settled(4.0)) == []
    assert wrong(*KNOWN, CUT, Published(2.0, "p", event(1, expires=5_000_000)), MENDED, Settled(4.0)) == NEVER


def test_as_many_may_be_lost_as_the_client_was_told() -> None:
    two: list[AnyRecord] = [*KNOWN, Crashed(1.5, "b"), ONE, Published(2.0, "p", event(2)), Restarted(2.5, "b")]
    assert wrong(*two, Lost(3.0, "c", "s", 1, 2), Settled(4.0)) == []
    assert wrong(*two, Lost(3.0, "c", "s", 1, 1), Settled(4.0)) == [*NEVER, NEVER[0].replace("e1", "e2")]
    assert wrong(*two, Lost(3.0, "c", "s", 1, 1), handed(3.0, 2), Settled(4.0)) == []


def test_that_something_may_be_missing_is_told_only_of_what_is_new() -> None:
    crash: list[AnyRecord] = [Crashed(1.5, "b"), ONE, Restarted(2.5, "b"), Missing(3.0, "c", "s"), Settled(4.0)]
    assert wrong(*KNOWN[:2], *crash) == []
    told = "kept: c was told that something of s may be missing, of which all brokers knew"
    assert wrong(*KNOWN, *crash) == [told]


def test_with_advertisements_the_publisher_must_have_been_known() -> None:
    offered = Advertised(0.0, "p", "a", Filter.all())
    there, gone, back = Attached(0.0, "p", "b"), Detached(1.6, "p", "b"), Attached(1.7, "p", "b")
    later: list[AnyRecord] = [CUT, ONE, MENDED, Settled(4.0)]
    assert wrong(there, offered, *KNOWN, *later, advertisements=True) == NEVER
    assert wrong(there, offered, *KNOWN, CUT, gone, back, *later[1:], advertisements=True) == []


# --- a network in which something is always cut off, crashed or moved ---


def rough() -> Scenario:
    return Scenario(
        topology=Line(4),
        routing=Routing(strategy="covering"),
        clients=Clients(consumers=6, subscriptions=2, producers=4, rate=4.0, probes=2, window=2),
        workload=Stock(stocks=3),
        leases=Lease(length=4.0, refresh=1.5, sweep=0.5),
        faults=(
            CutLink(2.0, 3.0, ("b1", "b2")),
            Crash(6.0, 2.0, "b3"),
            Crash(7.0, 2.0, "b0"),
            *[Move(9.0 + number / 10, 0.5, f"c{number}", f"b{number % 4}") for number in range(6)],
            CutLink(10.0, 1.0, ("b2", "b3")),
            Away(11.0, 2.0, "c1"),
            Crash(12.0, 1.0, "b1"),
        ),
        duration=15.0,
    )


def violations(scenario: Scenario) -> list[Violation]:
    trace: list[AnyRecord] = []
    for _ in Run(scenario, trace.append).steps():
        pass
    return check_trace(trace, stored=True)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what was missed come in many pages."""
    catching_up.small_pages(monkeypatch)


@pytest.mark.usefixtures("small_pages")
def test_whatever_happens_all_arrives() -> None:
    assert violations(rough()) == []


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize(("plant", "rule"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_found_out(plant: Plant, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert rule in {violation.rule for violation in violations(rough())}
