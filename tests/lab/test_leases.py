"""Networks that recover from anything, within the bound that is stated for their strategy."""

from __future__ import annotations

import pytest

from vestnik.lab.leases import STRATEGIES, recover
from vestnik.routing.timing import Timing, bound, printed_bound


@pytest.mark.parametrize("advertisements", [False, True], ids=["", "advertisements"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_from_any_state_all_is_in_order_within_the_bound_and_stays_so(strategy: str, advertisements: bool) -> None:
    for seed in range(5):
        found = recover(strategy, seed, advertisements=advertisements, most_brokers=12)
        assert found.after == ""
        assert 0 < found.seconds <= found.bound


def test_the_printed_bound_is_too_small() -> None:
    found = [recover("identity", seed, most_brokers=8) for seed in range(3)]
    assert all(recovery.seconds > recovery.printed_bound for recovery in found)


def test_bounds() -> None:
    timing = Timing(refresh=2, lease=6, sweep=0.5, least_delay=0.1, most_delay=0.2, hops=4)
    assert timing.least_lease == pytest.approx(2.4)
    assert timing.slack == pytest.approx(1.8)
    assert timing.wrong_until == pytest.approx(6 + 1.0 + 1.0)
    assert printed_bound(timing) == pytest.approx(0.2 + 0.4 + 2)
    assert bound("identity", timing) == pytest.approx(8.0)
    assert bound("hierarchical covering", timing) == pytest.approx(8.0 + 1.5)
    assert bound("merging", timing, advertisements=True) == pytest.approx(8.0 + 3.0)
