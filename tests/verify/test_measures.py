"""How long events take, and which copies of them nobody needs."""

from __future__ import annotations

import pytest

from vestnik import Event, Filter
from vestnik.trace.records import AnyRecord, Attached, Notified, Published, Sent, Subscribed
from vestnik.verify.histories import History
from vestnik.verify.latency import Percentiles, deliveries, latency, percentiles
from vestnik.verify.useless import Carried, copies, useless


def event(number: int, **envelope: int) -> Event:
    return Event("t", {"x": number}, source="p", id=f"e{number}", stream=("a", "p"), seq=number, **envelope)  # type: ignore[arg-type]


def sent(at: float, sender: str, receiver: str, *numbers: int) -> Sent:
    return Sent(at, sender, receiver, "Routed", tuple(("p", f"e{number}") for number in numbers))


def test_latency_counts_from_when_an_event_may_be_delivered() -> None:
    held = event(2, not_before=5_000_000)
    records: list[AnyRecord] = [
        Attached(0.0, "c", "b"),
        Published(1.0, "p", event(1)),
        Notified(1.5, "c", event(1), (("s", 1),)),
        Notified(1.75, "d", event(1), (("s", 1),)),
        Published(2.0, "p", held),
        Notified(5.25, "c", held, (("s", 2),)),
        Notified(6.0, "c", event(1), (("r", 1),), replayed=True),
        Notified(7.0, "c", event(3), (("s", 3),)),
    ]
    assert latency(deliveries(History(records))) == {
        ("all", ""): Percentiles(3, 0.5, 0.75, 0.75, 0.75),
        ("broker", ""): Percentiles(1, 0.75, 0.75, 0.75, 0.75),
        ("broker", "b"): Percentiles(2, 0.25, 0.5, 0.5, 0.5),
        ("client", "c"): Percentiles(2, 0.25, 0.5, 0.5, 0.5),
        ("client", "d"): Percentiles(1, 0.75, 0.75, 0.75, 0.75),
    }


@pytest.mark.parametrize(("count", "p50", "p90", "p99"), [(1, 1, 1, 1), (10, 5, 9, 10), (200, 100, 180, 198)])
def test_percentiles_are_times_that_occur(count: int, p50: int, p90: int, p99: int) -> None:
    assert percentiles(list(range(count, 0, -1))) == (count, p50, p90, p99, count)


def test_a_copy_is_needed_where_somebody_behind_wants_it() -> None:
    """On the line a - b - c, with a client at c that wants e1, and another at b that is handed e2."""
    records: list[AnyRecord] = [
        Attached(0.0, "x", "c"),
        Attached(0.0, "y", "b"),
        Subscribed(0.0, "x", "s", Filter.parse("x = 1")),
        *[Published(1.0, "p", event(number)) for number in (1, 2, 3)],
        sent(1.0, "p", "a", 1, 2, 3),
        sent(2.0, "a", "b", 1, 2, 3),
        sent(3.0, "b", "c", 1, 2),
        sent(3.0, "b", "c", 3),
        sent(4.0, "b", "y", 2),
        sent(4.0, "b", "a", 1),
    ]
    assert useless(copies(History(records))) == {
        ("a", "b"): Carried(3, 1),
        ("b", "a"): Carried(1, 1),
        ("b", "c"): Carried(3, 2),
    }
    assert useless(copies(History(records), {("p", "e3")})) == {("a", "b"): Carried(1, 1), ("b", "c"): Carried(1, 1)}
