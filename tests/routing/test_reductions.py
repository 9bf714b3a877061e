"""What a neighbour is told is, after any changes, what the definition says it should know."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import Case, cases
from vestnik import Filter
from vestnik.routing import cover_index
from vestnik.routing.cover_index import CoverIndex
from vestnik.routing.covering import Maximal
from vestnik.routing.declarative import REDUCE, is_merged
from vestnik.routing.identity import Everything
from vestnik.routing.merging import Merged
from vestnik.routing.reductions import Entry, Reduction

REDUCTIONS: dict[str, Any] = {"identity": Everything, "covering": Maximal, "merging": lambda: Merged(0.0)}


@given(cases(trees=3, events=1))
def test_examples_are_of_their_filter(case: Case) -> None:
    for wanted in case.filters:
        example = wanted.example()
        if example is None:
            assert wanted == Filter.none() or "OVERLAPS" in str(wanted)
        else:
            assert wanted.matches(example)
            assert wanted.example() == example


@pytest.fixture(autouse=True, params=[0, 16], ids=["many", "few"])
def _few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With examples from the first member on, and without."""
    monkeypatch.setattr(cover_index, "FEW", request.param)


@given(cases(trees=6, events=1, size=3), st.data())
def test_the_cover_index_agrees_with_asking_every_pair(case: Case, data: st.DataObject) -> None:
    members = list(dict.fromkeys(case.filters))
    index = CoverIndex()
    for member in members:
        index.add(member)
    gone = data.draw(st.lists(st.sampled_from(members), unique=True))
    for member in gone:
        index.remove(member)
    left = [member for member in members if member not in gone]
    assert list(index) == left
    for asked in case.filters:
        assert list(index.covering(asked)) == [member for member in left if member.covers(asked)]
        assert index.covered_by(asked) == [member for member in left if asked.covers(member)]
    for member in left:
        index.remove(member)
    assert not len(index)


def agrees(name: str, reduction: Reduction, entries: dict[Entry, None]) -> bool:
    known = list(reduction.entries())
    if name == "merging":
        return is_merged(known, entries)
    return set(known) == REDUCE[name](set(entries)) and len(known) == len(set(known))


@pytest.mark.parametrize("name", REDUCTIONS)
@given(case=cases(trees=7, events=1, size=2), data=st.data())
def test_a_reduction_is_what_the_definition_says(name: str, case: Case, data: st.DataObject) -> None:
    choices = [Entry(wanted) for wanted in dict.fromkeys(case.filters) if wanted != Filter.none()]
    reduction: Reduction = REDUCTIONS[name]()
    entries: dict[Entry, None] = {}
    told: dict[Entry, None] = {}
    for entry in data.draw(st.lists(st.sampled_from(choices), max_size=14)) if choices else []:
        if entry in entries:
            del entries[entry]
            change = reduction.remove(entry)
        else:
            entries[entry] = None
            change = reduction.add(entry)
        assert not set(change.add) & set(change.remove)
        assert not set(change.add) & set(told) and set(change.remove) <= set(told)
        told = {known: None for known in (*told, *change.add) if known not in change.remove}
        assert set(told) == set(reduction.entries())
        assert agrees(name, reduction, entries)
        for known in told:
            assert known.filter.covers(next(iter(reduction.reasons(known))).filter)
            assert all(reduction.representative(reason) == known for reason in reduction.reasons(known))
