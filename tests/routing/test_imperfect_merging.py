"""Merging with a tolerance: fewer entries, some unwanted events on links, and none at clients."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import Case, cases
from routing.networks import Network
from vestnik import Event, Filter
from vestnik.routing.declarative import entries_for
from vestnik.routing.merging import Merged, Merging
from vestnik.routing.reductions import Entry
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router

LINE = [(0, 1), (1, 2)]


def network(tolerance: float) -> Network:
    return Network(LINE, lambda number: Router(make_strategy("merging", tolerance=tolerance)))


def test_a_tolerance_saves_entries() -> None:
    rng = Random(1)
    filters = [
        Filter.parse(f"price BETWEEN {50 - rng.uniform(0, 50)} AND {50 + rng.uniform(0, 50)} AND stock = 's{n % 4}'")
        for n in range(40)
    ]
    sizes = []
    for tolerance in (0.0, 0.2, 0.9):
        net = network(tolerance)
        for number, wanted in enumerate(filters):
            net.subscribe(0, str(number), wanted)
        net.settle()
        sizes.append(len(net.routers["b2"].subscriptions))
    assert sizes[0] == 4 and sizes[0] >= sizes[1] >= sizes[2] == 1


@given(case=cases(trees=5, events=3, size=2), data=st.data())
def test_nothing_is_lost_and_clients_get_nothing_unwanted(case: Case, data: st.DataObject) -> None:
    net = network(data.draw(st.sampled_from([0.1, 0.5])))
    filters = [wanted for wanted in case.filters if wanted != Filter.none()] or [Filter.all()]
    subscribed: dict[tuple[int, str], Filter] = {}
    for _ in range(data.draw(st.integers(1, 8))):
        key = data.draw(st.integers(0, 2)), data.draw(st.sampled_from("st"))
        if key in subscribed:
            net.unsubscribe(*key, subscribed.pop(key))
        else:
            subscribed[key] = data.draw(st.sampled_from(filters))
            net.subscribe(*key, subscribed[key])
    net.settle()
    for router in net.routers.values():
        for neighbour in router.neighbours:
            known = list(router.subscriptions.reduction(neighbour).entries())
            for entry in entries_for(neighbour, router.subscriptions):
                assert any(other.filter.covers(entry.filter) for other in known)
    for event in case.events:
        arrived = {(int(source.node[1:]), source.name) for source in net.publish(1, event)}
        assert arrived == {key for key, wanted in subscribed.items() if wanted.matches(event)}


def random_box(rng: Random) -> Filter:
    x, y = rng.uniform(0, 100), rng.uniform(0, 100)
    return Filter.parse(f"x BETWEEN {x} AND {x + rng.uniform(2, 12)} AND y BETWEEN {y} AND {y + rng.uniform(2, 12)}")


def unwanted(known: list[Filter], wanted: list[Filter], rng: Random) -> float:
    """The share of uniform events that are told as wanted and are not."""
    caught, missed = 0, 0
    for _ in range(2000):
        event = Event("point", {"x": rng.uniform(0, 110), "y": rng.uniform(0, 110)}, id="p")
        if any(told.matches(event) for told in known):
            caught += 1
            missed += not any(one.matches(event) for one in wanted)
    return missed / caught


@pytest.mark.parametrize("tolerance", [0.2, 0.3])
def test_the_tolerance_holds_for_the_result_of_many_mergers(tolerance: float) -> None:
    rng = Random(1)
    reduction, wanted = Merged(tolerance), [random_box(rng) for _ in range(80)]
    for one in wanted:
        reduction.add(Entry(one))
    for gone in (wanted[::2], []):
        known = [entry.filter for entry in reduction.entries()]
        assert len(known) < len(wanted)
        assert 0 < unwanted(known, wanted, rng) <= 1.2 * tolerance, "uniform events are nearly those of the model"
        for one in gone:
            reduction.remove(Entry(one))
            wanted.remove(one)


def test_a_tolerance_is_a_share() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        Merging(1.5)


def test_an_event_is_forwarded_that_only_the_hull_wants() -> None:
    net = network(0.9)
    net.subscribe(0, "a", Filter.parse("stock = 'x' AND price < 10"))
    net.subscribe(0, "b", Filter.parse("stock = 'y' AND price < 20"))
    net.settle()
    unwanted = Event("quote", {"stock": "x", "price": 15})
    assert net.routers["b2"].targets(unwanted, "c2").neighbours == ["b1"]
    assert list(net.publish(2, unwanted)) == []
