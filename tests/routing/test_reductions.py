"""What a neighbour is told is, after any changes, what the definition says it should know."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import Case, cases
from vestnik import Filter
from vestnik.routing import cover_index
from vestnik.routing.cover_index import Catalogue, CoverIndex
from vestnik.routing.declarative import REDUCE, is_merged
from vestnik.routing.merging import Merged
from vestnik.routing.propagation import Leases, Propagation, Source
from vestnik.routing.reductions import Entry, Reduction, add_all
from vestnik.routing.registry import make_strategy

STRATEGIES = "identity", "covering", "merging"


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
    """With examples from the first member on, and filters kept by their paths; and with neither."""
    monkeypatch.setattr(cover_index, "FEW_MEMBERS", request.param)
    monkeypatch.setattr(cover_index, "MANY", 2 * request.param)
    cover_index._keys.cache_clear()


@given(cases(trees=6, events=1, size=3), st.data())
def test_cover_indexes_agree_with_asking_every_pair(case: Case, data: st.DataObject) -> None:
    catalogue = Catalogue()
    one, other = CoverIndex(catalogue), CoverIndex(catalogue)
    members: dict[CoverIndex, dict[Filter, None]] = {one: {}, other: {}}
    for index, member in data.draw(st.lists(st.tuples(st.sampled_from([one, other]), st.sampled_from(case.filters)))):
        if member in index:
            del members[index][member]
            index.remove(member)
        else:
            members[index][member] = None
            index.add(member)
        for asked, known in members.items():
            assert list(asked) == list(known)
            assert set(asked.covering(member)) == {wide for wide in known if wide.covers(member)}
            assert set(asked.covered_by(member)) == {narrow for narrow in known if member.covers(narrow)}
    assert len(catalogue) == len(members[one] | members[other])
    for index, known in members.items():
        for member in known:
            index.remove(member)
    assert not len(catalogue)


def test_boxes_may_cover_together_what_says_nothing_of_their_paths() -> None:
    narrow = Filter.parse("x BETWEEN 1 AND 2")
    wide = Filter.parse("type = 'example' AND x BETWEEN 1 AND 3 OR type != 'example' AND x BETWEEN 0 AND 2")
    index = CoverIndex()
    for member in (Filter.parse("x > 100"), narrow, wide):
        index.add(member)
    assert set(index.covering(narrow)) == {narrow, wide}
    assert set(index.covered_by(wide)) == {narrow, wide}


def test_what_an_index_had_leaves_the_catalogue_with_it() -> None:
    catalogue = Catalogue()
    stays, goes = CoverIndex(catalogue), CoverIndex(catalogue)
    for text in ("a = 1", "b = 1"):
        goes.add(Filter.parse(text))
    stays.add(Filter.parse("a = 1"))
    assert len(catalogue) == 2
    del goes
    assert len(catalogue) == len(stays) == 1


def agrees(name: str, reduction: Reduction, entries: dict[Entry, None]) -> bool:
    known = list(reduction.entries())
    if name == "merging":
        return is_merged(known, entries)
    return set(known) == REDUCE[name](set(entries)) and len(known) == len(set(known))


@pytest.mark.parametrize("name", STRATEGIES)
@given(case=cases(trees=7, events=1, size=2), data=st.data())
def test_the_reductions_of_a_broker_are_what_the_definition_says(name: str, case: Case, data: st.DataObject) -> None:
    choices = [Entry(wanted) for wanted in dict.fromkeys(case.filters) if wanted != Filter.none()]
    strategy = make_strategy(name)
    neighbours = [Neighbour(strategy.reduction("b1")), Neighbour(strategy.reduction("b2"))]
    for neighbour in neighbours:
        neighbour.begin(data.draw(st.lists(st.sampled_from(choices), unique=True)) if choices else [])
        assert agrees(name, neighbour.reduction, neighbour.entries)
    steps = st.tuples(st.sampled_from(neighbours), st.sampled_from(choices)) if choices else st.nothing()
    for neighbour, entry in data.draw(st.lists(steps, max_size=18)):
        neighbour.toggle(entry)
        told, reduction = neighbour.told, neighbour.reduction
        assert set(told) == set(reduction.entries())
        assert agrees(name, reduction, neighbour.entries)
        for known in told:
            assert known.filter.covers(next(iter(reduction.reasons(known))).filter)
            assert all(reduction.representative(reason) == known for reason in reduction.reasons(known))


def test_boxes_merge_where_one_implies_what_the_other_says() -> None:
    reduction = make_strategy("merging").reduction("b1")
    for text in ("EXISTS a.b", "NOT a = 0 AND NOT EXISTS a.b"):
        reduction.add(Entry(Filter.parse(text)))
    assert [str(known.filter) for known in reduction.entries()] == ["NOT a = 0"]


class Neighbour:
    """A reduction, with the entries it is of and what the neighbour was told."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.entries: dict[Entry, None] = {}
        self.told: dict[Entry, None] = {}

    def begin(self, entries: list[Entry]) -> None:
        self.entries = dict.fromkeys(entries)
        change = add_all(self.reduction, entries)
        assert not change.remove
        self.told = dict.fromkeys(change.add)

    def toggle(self, entry: Entry) -> None:
        if entry in self.entries:
            del self.entries[entry]
            change = self.reduction.remove(entry)
        else:
            self.entries[entry] = None
            change = self.reduction.add(entry)
        assert not set(change.add) & set(change.remove)
        assert not set(change.add) & set(self.told) and set(change.remove) <= set(self.told)
        self.told = {known: None for known in (*self.told, *change.add) if known not in change.remove}


def test_what_is_too_much_work_to_merge_is_told_in_parts() -> None:
    cover = Entry(Filter.parse("EXISTS name"))
    parts = [Entry(Filter.parse(f"name MATCHES '.*{letter}.{{9}}'")) for letter in "abc"]
    reduction = Merged(0.0)
    for entry in (cover, *parts):
        reduction.add(entry)
    reduction.remove(cover)
    told = list(reduction.entries())
    assert len(told) == len(parts)
    assert all(any(entry.filter.covers(part.filter) for entry in told) for part in parts)


@pytest.mark.parametrize("name", ["covering", "merging"])
def test_filters_that_are_too_complex_to_compare_are_told_as_they_are(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that may not compare anything tells more than it must, and leaves out nothing that is wanted."""
    monkeypatch.setattr("vestnik.routing.propagation.OPERATION", 0)
    rng = random.Random(5)
    table = Propagation(make_strategy(name), Leases())
    table.connect("n")
    wanted = [
        Filter.parse(f"ANY q (a = {rng.randrange(9)} OR b LIKE '%{rng.randrange(99)}%') AND c > 1") for _ in range(30)
    ]
    for place, one in enumerate(wanted):
        table.add(Entry(one), Source("c", f"s{place}"), 1e9)
    for place, one in enumerate(wanted[::2]):
        table.remove(Entry(one), Source("c", f"s{2 * place}"))
    told = [interest.filter for _, update in table.flush(0.0) for interest in update.add]
    assert all(any(entry.covers(one) for entry in told) for one in set(wanted[1::2]) - set(wanted[::2]))
