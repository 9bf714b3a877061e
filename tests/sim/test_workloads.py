"""Filters and events that are drawn."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import pytest

from vestnik import Filter
from vestnik.sim.workloads import Medical, RandomFilters, Stock, Workload

WORKLOADS: list[Workload] = [
    Stock(),
    Stock(stocks=50, intervals=True, zipf=1.2, locality=0.5),
    RandomFilters(),
    Medical(),
    Medical(wards=3, locality=0.5),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_equal_seeds_give_equal_data(workload: Workload) -> None:
    def drawn(seed: int) -> list[object]:
        rng = Random(seed)
        filters: list[object] = list(islice(workload.interests(rng, 0.5), 20))
        return filters + [workload.event(rng, "p", str(number)) for number in range(20)]

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_producers_keep_to_their_offer(workload: Workload) -> None:
    rng = Random(1)
    assert all(workload.offer().matches(workload.event(rng, "p", str(number))) for number in range(200))


def test_the_two_forms_of_stock() -> None:
    assert str(next(Stock(stocks=1).interests(Random(1), 0))) == "stock = 's0'"
    wanted = next(Stock(stocks=1, intervals=True).interests(Random(1), 0))
    assert wanted.covers(Filter.parse("stock = 's0' AND price = 50")) and wanted.overlaps(Filter.parse("price < 50"))
    assert Filter.parse("price BETWEEN 0 AND 100").covers(wanted)


def test_a_client_wants_each_stock_once() -> None:
    wanted = list(islice(Stock(stocks=30, zipf=2.0, locality=0.9).interests(Random(1), 0.2), 30))
    assert len(set(wanted)) == 30


def test_popular_stocks_are_published_more_often() -> None:
    rng = Random(1)
    stocks = Counter(Stock(stocks=100, zipf=1.0).event(rng, "p", str(n)).data["stock"] for n in range(5_000))
    assert stocks["s0"] > 1.5 * stocks["s1"] > 2 * stocks["s5"]


def test_near_places_want_the_same() -> None:
    local = Stock(stocks=1000, locality=1.0)
    here, near, far = (
        {str(wanted) for wanted in islice(local.interests(Random(seed), place), 50)}
        for seed, place in ((1, 0.3), (2, 0.3), (3, 0.8))
    )
    assert len(here & near) > 10 and not here & far


def test_patients_are_watched_by_ward_patient_vitals_and_alarms() -> None:
    rng = Random(1)
    wanted = list(islice(Medical(wards=3).interests(rng, 0.5), 100))
    texts = " ".join(map(str, wanted))
    for part in ("patient.ward = 'w2'", "vitals.pulse > 120", "vitals.oxygen < 90", "patient.id = 'w0-", "ANY alarms"):
        assert part in texts
    events = [Medical(wards=3).event(rng, "p", str(number)) for number in range(300)]
    assert sum(any(one.matches(event) for event in events) for one in wanted) > 80
    assert {"patient", "vitals", "alarms"} == set(events[0].data)


def test_staff_watch_the_ward_of_their_place() -> None:
    wanted = islice(Medical(wards=10, locality=1.0).interests(Random(1), 0.45), 50)
    assert {part for one in wanted for part in str(one).split("'") if part.startswith("w")} <= {
        "w4",
        *(f"w4-{number}" for number in range(10)),
    }


def test_a_hospital_has_a_ward() -> None:
    with pytest.raises(ValueError, match="at least 1 ward"):
        Medical(wards=0)
