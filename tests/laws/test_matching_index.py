"""The index agrees with the oracle, whatever was added and removed before, and keeps nothing of what is gone."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from laws.strategies import Case, Pick, cases, event, text_of, tree, vocabulary
from vestnik import Event, Filter, FilterTooComplex
from vestnik.matching import Matcher, naive
from vestnik.matching.single import buckets, direct, index, paths
from vestnik.matching.single.scan import plain_scan
from vestnik.matching.single.store import HEAD, RECORD, ROW


@contextmanager
def small_sizes(few: int = 0) -> Iterator[None]:
    """Sizes at which a few rows are many; the kernel takes over where there are more than `few`."""
    sizes = ((buckets, "LARGEST", 3), (index, "FEW_RECORDS", few), (direct, "FEW_HEADS", 0))
    with ExitStack() as stack:
        for where, name, size in sizes:
            stack.enter_context(mock.patch.object(where, name, size))
        yield


def matcher_of(filters: dict[int, Filter]) -> Matcher[int]:
    matcher: Matcher[int] = Matcher()
    for id, wanted in filters.items():
        matcher.add(id, wanted)
    return matcher


def layout(matcher: Matcher[Any]) -> dict[Any, Any]:
    """What the index holds and where: for each path its views with their users, and for each bucket the ids in it."""
    paths, store, ids = matcher._paths, matcher._store, matcher._ids
    found: dict[Any, Any] = {"checks": len(matcher._checks), "doubts": len(matcher._doubts), "tests": matcher.tests}
    nodes: list[tuple[tuple[Any, ...], Any]] = [((name,), node) for name, node in paths._envelope.items()]
    nodes.append((("data",), paths._data))
    held: list[tuple[Any, Any]] = [("rest", matcher._rest)]
    for path, node in nodes:
        found[path] = [paths._users[column] for column in node.columns]
        held += [((path, key), bucket) for key, bucket in node.buckets.items()]
        nodes += [((*path, step), child) for step, child in node.children.items()]
    for name, bucket in held:
        heads = [at for block in bucket.blocks for at in range(block.at, block.at + block.size)]
        found[name] = Counter(ids[store.records[store.heads[HEAD * at + RECORD]] >> ROW] for at in heads)
    return found


def is_pristine(matcher: Matcher[Any]) -> bool:
    paths, store = matcher._paths, matcher._store
    return layout(matcher) == layout(Matcher()) and not (
        matcher._ids
        or matcher._tests
        or matcher._free
        or paths._free
        or paths._columns[1:]
        or paths._by_name
        or paths._by_path
        or store.heads
        or store.records
    )


@given(cases(trees=6, events=4), st.sampled_from([0, 100]), st.sampled_from([0, 100]))
def test_a_batch_is_matched_as_each_of_its_events(case: Case, few: int, names: int) -> None:
    filters = dict(enumerate(case.filters))
    matcher = matcher_of(filters)
    with mock.patch.object(direct, "FEW_HEADS", few), mock.patch.object(paths, "FEW_NAMES", names):
        each = matcher.match_each(case.events)
    assert [set(found) for found in each] == [naive.match(filters, published) for published in case.events]
    assert all(len(set(found)) == len(found) for found in each), "each once"


@given(cases(trees=6, events=4), st.sampled_from([0, 2, 100]))
def test_the_index_agrees_with_naive(case: Case, few: int) -> None:
    filters = dict(enumerate(case.filters))
    matcher = matcher_of(filters)
    with mock.patch.object(direct, "FEW_HEADS", few):
        for published in case.events:
            assert matcher.match(published) == naive.match(filters, published)


@given(cases(trees=9, events=4, size=3))
def test_the_kernel_agrees_with_naive_and_with_the_plain_scan(case: Case) -> None:
    filters = dict(enumerate(case.filters))
    with small_sizes():
        matcher = matcher_of(filters)
        for published in case.events:
            found = matcher.match(published)
            assert found == naive.match(filters, published)
            reading = matcher._paths.read(published)
            for bucket in (matcher._rest, *matcher._paths.reached([published]).get(0, ())):
                reading.blocks.extend(bucket.blocks)
            assert sorted(matcher._scan(matcher._store, reading)) == sorted(plain_scan(matcher._store, reading))


@given(cases(trees=8, events=3, size=3), st.data())
def test_adding_and_removing_in_any_order_leaves_no_trace(case: Case, data: st.DataObject) -> None:
    filters = dict(enumerate(case.filters))
    kept = {id: wanted for id, wanted in filters.items() if id % 2}
    others = data.draw(st.permutations([id for id in filters if id not in kept]))
    with small_sizes():
        matcher = matcher_of(kept)
        before = layout(matcher)
        for id in others:
            matcher.add(id, filters[id])
        for id in data.draw(st.permutations(others)):
            matcher.remove(id)
        assert layout(matcher) == before
        assert [matcher.match(e) for e in case.events] == [naive.match(kept, e) for e in case.events]
        for id in data.draw(st.permutations(list(kept))):
            matcher.remove(id)
        assert is_pristine(matcher)


@given(cases(trees=6, events=3))
def test_the_answers_are_the_same_after_pickling(case: Case) -> None:
    matcher = matcher_of(dict(enumerate(case.filters)))
    again = pickle.loads(pickle.dumps(matcher))
    assert len(again) == len(matcher)
    assert [again.match(e) for e in case.events] == [matcher.match(e) for e in case.events]


def pick_from(data: st.DataObject) -> Pick:
    return Pick(data.draw)  # type: ignore[arg-type]  # a DrawFn but for its name


class Session(RuleBasedStateMachine):
    """Subscribers come, change their minds and go, while events are published."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.sizes = small_sizes()
        self.sizes.__enter__()
        self.matcher: Matcher[int] = Matcher()
        self.model: dict[int, Filter] = {}

    def teardown(self) -> None:
        self.sizes.__exit__(None, None, None)

    @initialize(data=st.data())
    def choose_words(self, data: st.DataObject) -> None:
        self.words = vocabulary(pick_from(data), added=True)

    @rule(target=ids, data=st.data(), id=st.integers(0, 12))
    def add_or_replace(self, data: st.DataObject, id: int) -> int:
        try:
            wanted = Filter.parse(text_of(tree(pick_from(data), self.words, most=3)))
        except FilterTooComplex:
            wanted = Filter.all()
        self.matcher.add(id, wanted)
        self.model[id] = wanted
        return id

    @rule(id=consumes(ids))
    def remove(self, id: int) -> None:
        if id in self.model:
            self.matcher.remove(id)
            del self.model[id]

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        published: Event = event(pick_from(data), self.words)
        assert self.matcher.match(published) == naive.match(self.model, published)

    @invariant()
    def holds_what_it_should(self) -> None:
        assert len(self.matcher) == len(self.model)
        assert self.model or is_pristine(self.matcher)


TestSession = Session.TestCase
TestSession.settings = settings(max_examples=settings().max_examples // 10, stateful_step_count=40)
