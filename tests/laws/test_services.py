"""Laws of what services ask about filters."""

from __future__ import annotations

from hypothesis import given

from laws.strategies import Case, cases
from vestnik.model.keys import values_at
from vestnik.model.reserved import asks, ordinary, reaches
from vestnik.model.spaces import EVENT
from vestnik.model.values import MISSING

TOLD = {"filter": "price > 1", "client": "c", "name": "s", "broker": "b", "replay": None}


@given(cases(events=3))
def test_an_ordinary_filter_loses_events_of_brokers_and_nothing_else(case: Case) -> None:
    (wanted,) = case.filters
    narrowed = ordinary(wanted)
    assert asks(narrowed) or not reaches(narrowed)
    for event in case.events:
        assert narrowed.matches(event) is wanted.matches(event)
        told = event.replace(type="vestnik.subscription.made", data=TOLD)
        assert not narrowed.matches(told) or (asks(wanted) and wanted.matches(told))
        assert reaches(wanted) or not wanted.matches(told)


@given(cases(events=3))
def test_the_values_at_a_path_are_all_that_there_are(case: Case) -> None:
    (wanted,) = case.filters
    for path in {path for box in wanted.region.boxes for path, _ in box.sets}:
        values = values_at(wanted, path)
        for event in case.events:
            found = EVENT.read(event, path)
            if values is not None and wanted.matches(event):
                assert found is MISSING or found is None or found in values
