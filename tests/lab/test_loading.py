"""Brokers that are linked when their clients have subscribed know what they know when it comes one by one."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik.lab.overlay import Overlay
from vestnik.lab.routing import FORMS, Market, Setting, sample
from vestnik.routing.registry import known_strategies
from vestnik.routing.router import AdvertisingRouter
from vestnik.sim.topologies import Topology, balanced_tree, star

STOCKS, LOAD, OPERATIONS = 12, 60, 8


def tables(overlay: Overlay) -> dict[str, Any]:
    """What each broker knows, from whom, and what it has told to whom."""
    found: dict[str, Any] = {}
    for name, router in overlay.routers.items():
        offers = [router.advertisements] if isinstance(router, AdvertisingRouter) else []
        found[name] = [
            (
                {entry: set(sources) for entry, sources in table},
                {other: set(table.reduction(other).entries()) for other in table.neighbours},
                {other: set(table.told(other)) for other in table.neighbours},
            )
            for table in (router.subscriptions, *offers)
        ]
    return found


@pytest.mark.parametrize("topology", [star(5), balanced_tree(3, 2)], ids=["star", "tree"])
@pytest.mark.parametrize("producers", [0, 2])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("strategy", known_strategies())
def test_it_is_the_same_network(
    strategy: str, advertisements: bool, form: str, producers: int, topology: Topology
) -> None:
    setting = Setting(strategy=strategy, advertisements=advertisements, form=form, producers=producers, stocks=STOCKS)
    for seed in range(2):
        one_by_one = Market(setting, seed, topology)
        one_by_one.grow(LOAD)
        at_once = Market(setting, seed, topology, LOAD)
        assert tables(at_once.overlay) == tables(one_by_one.overlay)
        assert at_once.measure(OPERATIONS) == one_by_one.measure(OPERATIONS)
        for market in (at_once, one_by_one):
            market.leave()
            market.come()
        assert tables(at_once.overlay) == tables(one_by_one.overlay)


def test_imperfect_merging_has_them_come_one_by_one() -> None:
    setting = Setting(strategy="merging", form="interval", tolerance=0.3, stocks=STOCKS)
    one_by_one = Market(setting, 1, star(5))
    one_by_one.grow(LOAD)
    assert [one_by_one.measure(OPERATIONS)] == list(sample(setting, [LOAD], 1, OPERATIONS, star(5)))
