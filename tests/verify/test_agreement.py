"""What neighbours tell each other and know: where it differs, the difference is shown."""

from __future__ import annotations

from vestnik import Filter
from vestnik.routing.identity import Identity
from vestnik.routing.propagation import Source
from vestnik.routing.reductions import Entry
from vestnik.routing.router import Router
from vestnik.verify.agreement import agreement
from vestnik.verify.network import LEASES, Network

FILTERS = [Filter.parse(f"x = {number}") for number in range(4)]


def network() -> Network:
    """Of two brokers; c0 at the first wants everything there is."""
    found = Network((0,), lambda parent: Router(Identity(), LEASES))
    for number, wanted in enumerate(FILTERS):
        found.subscribe("c0", f"s{number}", wanted)
    found.settle()
    return found


def test_who_agrees() -> None:
    assert list(agreement(network().routers)) == []


def test_only_what_differs_is_shown() -> None:
    routers = network().routers
    told = routers["b0"].subscriptions.told("b1")
    del told[Entry(FILTERS[2])]
    told[Entry(Filter.parse("x = 9"))] = 1.0
    assert list(agreement(routers)) == [
        "b0 should have told b1 (x = 2)",
        "b0 should have told b1 that (x = 9) is over",
        "b0 thinks it has told b1 (x = 9), which knows nothing of it",
        "b0 thinks it has told b1 nothing of (x = 2), which knows it",
    ]


def test_sentences_are_in_order() -> None:
    routers = network().routers
    for wanted in FILTERS:
        routers["b1"].subscriptions.remove(Entry(wanted), Source("b0"))
    (said,) = agreement(routers)
    assert said == "b0 thinks it has told b1 (x = 0), (x = 1), (x = 2), (x = 3), which knows nothing of it"
