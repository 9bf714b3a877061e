"""The laws of the filter algebra, over generated filters and events."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from itertools import islice
from typing import Any

import msgspec
from hypothesis import assume, given, note
from hypothesis import strategies as st
from laws.oracle import holds
from laws.strategies import (
    Vocabulary,
    boxes,
    events,
    filter_of,
    filters,
    leaves,
    plain_vocabularies,
    share,
    spellings,
    text_of,
    trees,
    vocabularies,
)
from laws.universe import TooLarge, Universe, as_event, universe

from vestnik import Event, Filter, FilterTooComplex
from vestnik.model import syntax
from vestnik.model.boxes import Box
from vestnik.model.parser import parse
from vestnik.model.syntax import Node
from vestnik.model.values import ABSENT
from vestnik.model.work import QUESTION, bounded


def universe_of(*nodes: Node) -> Universe:
    try:
        return universe(*nodes)
    except TooLarge:
        assume(False)
        raise AssertionError from None


def gave_up(question: Any, *given: Any) -> bool:
    """Whether `question` takes more work than an answer may cost."""
    try:
        with bounded(QUESTION):
            question(*given)
    except FilterTooComplex:
        return True
    return False


# --- matches ---


@given(st.data(), vocabularies)
def test_matches_is_what_the_syntax_tree_says(data: st.DataObject, words: Vocabulary) -> None:
    tree, event = data.draw(trees(words)), data.draw(events(words))
    assert filter_of(tree).matches(event) is holds(tree, event)


@given(vocabularies.flatmap(trees))
def test_matches_agrees_on_every_event_that_the_filter_tells_apart(tree: Node) -> None:
    wanted = filter_of(tree)
    found = universe_of(tree)
    for event, expected in zip(islice(found.events(), 300), found.verdicts(tree), strict=False):
        real = as_event(event)
        if real is not None:
            assert wanted.matches(real) is expected is holds(tree, real), real


@given(vocabularies.flatmap(trees), spellings)
def test_a_text_is_parsed_to_the_tree_it_was_written_from(tree: Node, spelling: int) -> None:
    text = text_of(tree, spelling)
    note(text)
    assert repr(parse(text, limits=None)) == repr(tree)


# --- covers, overlaps, same_as ---


@given(st.data(), plain_vocabularies)
def test_covering_and_overlapping_are_exact(data: st.DataObject, words: Vocabulary) -> None:
    one, other = data.draw(trees(words)), data.draw(trees(words))
    note(f"{text_of(one)}   ///   {text_of(other)}")
    f, g = filter_of(one), filter_of(other)
    found = universe_of(one, other)
    in_f, in_g = list(found.verdicts(one)), list(found.verdicts(other))
    covers = all(a or not b for a, b in zip(in_f, in_g, strict=True))
    covered = all(b or not a for a, b in zip(in_f, in_g, strict=True))
    overlaps = any(a and b for a, b in zip(in_f, in_g, strict=True))
    assert f.covers(g) is covers or gave_up(f.region.includes, g.region)
    assert g.covers(f) is covered or gave_up(g.region.includes, f.region)
    assert f.overlaps(g) is overlaps or gave_up(f.region.overlaps, g.region)
    assert g.overlaps(f) is overlaps or gave_up(g.region.overlaps, f.region)
    assert f.same_as(g) is (covers and covered) or gave_up(f.region.includes, g.region)
    assert f != g or in_f == in_g


@given(st.data(), plain_vocabularies)
def test_satisfiable_filters_have_boxes_and_everything_is_everything(data: st.DataObject, words: Vocabulary) -> None:
    tree = data.draw(trees(words))
    wanted = filter_of(tree)
    verdicts = list(universe_of(tree).verdicts(tree))
    assert bool(wanted.region) is any(verdicts)
    assert wanted.covers(Filter.all()) is all(verdicts) or gave_up(wanted.region.is_everything)


@given(st.data(), vocabularies)
def test_answers_about_added_kinds_are_on_the_safe_side(data: st.DataObject, words: Vocabulary) -> None:
    one, other = data.draw(trees(words)), data.draw(trees(words))
    f, g = filter_of(one), filter_of(other)
    found = universe_of(one, other)
    for in_f, in_g in zip(found.verdicts(one), found.verdicts(other), strict=True):
        assert in_f or not in_g or not f.covers(g)
        assert not (in_f and in_g) or f.overlaps(g)
        assert in_f == in_g or not f.same_as(g)


@given(st.data(), plain_vocabularies)
def test_single_boxes_that_are_the_same_are_equal(data: st.DataObject, words: Vocabulary) -> None:
    one, other = data.draw(boxes(words)), data.draw(boxes(words))
    f, g = filter_of(one), filter_of(other)
    assume(len(f.region.boxes) == len(g.region.boxes) == 1)
    note(f"{text_of(one)}   ///   {text_of(other)}")
    assert f.same_as(g) is (f == g)
    assert f != g or hash(f) == hash(g)


# --- merge and hull ---


@given(st.data(), vocabularies)
def test_merge_is_exactly_the_union_with_fewer_boxes(data: st.DataObject, words: Vocabulary) -> None:
    one, other = data.draw(trees(words)), data.draw(trees(words))
    f, g = filter_of(one), filter_of(other)
    merged = f.merge(g)
    if merged is None:
        assert f.region and g.region
        assert not f.covers(g) and not g.covers(f)
        return
    assert len(merged.region.boxes) < len(f.region.boxes) + len(g.region.boxes) or not (f.region and g.region)
    for event in data.draw(st.lists(events(words), max_size=5)):
        assert merged.matches(event) is (f.matches(event) or g.matches(event))
    assert merged.same_as(f | g) or gave_up((f | g).region.includes, merged.region)


@given(st.data(), plain_vocabularies)
def test_boxes_that_differ_in_one_path_always_merge(data: st.DataObject, words: Vocabulary) -> None:
    common = data.draw(st.lists(leaves(words), max_size=3))
    here = data.draw(leaves(words))
    assume(not isinstance(here, syntax.Constant))
    there = data.draw(leaves(words).filter(lambda leaf: getattr(leaf, "path", None) == here.path))
    ends = data.draw(st.tuples(st.booleans(), st.booleans()))
    one, other = (syntax.Not(leaf) if end else leaf for leaf, end in zip((here, there), ends, strict=True))
    note(f"{text_of(syntax.And((*common, one)))}   ///   {text_of(syntax.And((*common, other)))}")
    f, g = filter_of(syntax.And((*common, one))), filter_of(syntax.And((*common, other)))
    assume(len(f.region.boxes) == len(g.region.boxes) == 1)
    merged = f.merge(g)
    assert merged is not None
    assert len(merged.region.boxes) == 1
    assert merged.same_as(f | g)


@given(st.data(), vocabularies)
def test_hull_is_one_box_around_both(data: st.DataObject, words: Vocabulary) -> None:
    f, g = data.draw(filters(words)), data.draw(filters(words))
    sample = data.draw(st.lists(events(words), max_size=4))
    for hull in (f.hull(g), f.hull(g, sample=sample)):
        assert hull.covers(f) and hull.covers(g)
        assert len(hull.region.boxes) == (1 if f.region or g.region else 0)
        assert 0 <= hull.unwanted <= 1
        assert all(hull.matches(e) for e in sample if f.matches(e) or g.matches(e))
    caught = [e for e in sample if hull.matches(e)]
    unwanted = [e for e in caught if not f.matches(e) and not g.matches(e)]
    assert hull.unwanted == (len(unwanted) / len(caught) if caught else 0)


@given(st.data(), plain_vocabularies)
def test_the_hull_of_a_box_and_itself_lets_nothing_in(data: st.DataObject, words: Vocabulary) -> None:
    f = filter_of(data.draw(boxes(words)))
    assume(len(f.region.boxes) == 1)
    hull = f.hull(f)
    assert hull.same_as(f) and hull.unwanted == 0


# --- forms of a filter ---


@given(filters())
def test_the_text_of_a_filter_parses_back_to_it(wanted: Filter) -> None:
    text = str(wanted)
    note(text)
    again = Filter.parse(text, limits=None)
    assert again == wanted and hash(again) == hash(wanted)
    assert str(again) == text
    assert eval(repr(wanted).replace(")", ", limits=None)") if False else f"Filter.parse({text!r}, limits=None)") == wanted


@given(filters())
def test_plain_data_goes_there_and_back(wanted: Filter) -> None:
    data = wanted.to_dict()
    travelled = (data, json.loads(json.dumps(data)), msgspec.msgpack.decode(msgspec.msgpack.encode(data)))
    for arrived in travelled:
        again = Filter.from_dict(arrived)
        assert again == wanted and hash(again) == hash(wanted)
        assert again.to_dict() == data and str(again) == str(wanted)


@given(st.data(), vocabularies)
def test_every_answer_is_the_same_after_pickling(data: st.DataObject, words: Vocabulary) -> None:
    f, g = data.draw(filters(words)), data.draw(filters(words))
    event: Event = data.draw(events(words))
    p, q, seen = pickle.loads(pickle.dumps((f, g, event)))
    assert p == f and hash(p) == hash(f) and str(p) == str(f) and p.to_dict() == f.to_dict()
    assert p.matches(seen) is f.matches(event) and p.covers(q) is f.covers(g) and p.overlaps(q) is f.overlaps(g)
    assert p.merge(q) == f.merge(g) and p.explain(seen) == f.explain(event)
    hull = pickle.loads(pickle.dumps(f.hull(g)))
    assert hull == p.hull(q) and hull.unwanted == p.hull(q).unwanted


FRESH = """
import sys, json, random
from hypothesis import HealthCheck, Phase, given, settings
from laws.strategies import filters
out = []
@settings(max_examples=300, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
          suppress_health_check=list(HealthCheck))
@given(filters())
def collect(wanted):
    out.append([str(wanted), wanted.to_dict(), str(wanted | ~wanted), str(wanted.hull(wanted))])
collect()
print(json.dumps(out))
"""


def test_texts_and_the_order_of_boxes_are_the_same_in_every_process() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", FRESH],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("1", "2")
    ]
    one, other = map(json.loads, printed)
    assert len(one) == len(other) >= 200
    for mine, theirs in zip(one, other, strict=True):
        assert mine == theirs


# --- set algebra ---


@given(st.data(), vocabularies)
def test_operators_are_those_of_sets(data: st.DataObject, words: Vocabulary) -> None:
    f, g = data.draw(filters(words)), data.draw(filters(words))
    try:
        both, either, neither = f & g, f | g, ~(f | g)
        de_morgan = ~f & ~g
    except FilterTooComplex:
        return
    for event in data.draw(st.lists(events(words), min_size=1, max_size=4)):
        in_f, in_g = f.matches(event), g.matches(event)
        assert both.matches(event) is (in_f and in_g)
        assert either.matches(event) is (in_f or in_g)
        assert neither.matches(event) is de_morgan.matches(event) is not (in_f or in_g)


@given(st.data(), plain_vocabularies)
def test_laws_of_sets(data: st.DataObject, words: Vocabulary) -> None:
    f, g = data.draw(filters(words)), data.draw(filters(words))
    try:
        either, neither, both = f | g, ~f & ~g, f & g
        same = [(~either, neither), (~both, ~f | ~g), (~~f, f), (f | both, f), (f & either, f), (f | ~f, Filter.all())]
    except FilterTooComplex:
        return
    assert f.same_as(f | f) and (f | f) == f and (f & f).same_as(f)
    assert either.covers(f) and either.covers(g) or gave_up(either.region.includes, f.region)
    assert not (f & ~f).region
    assert bool(both.region) is f.overlaps(g)
    for one, other in same:
        answered = not gave_up(one.region.includes, other.region) and not gave_up(other.region.includes, one.region)
        assert one.same_as(other) or not answered


# --- explain ---


@given(st.data(), vocabularies)
def test_explanations_agree_with_matches_and_each_verdict_is_right(data: st.DataObject, words: Vocabulary) -> None:
    wanted, event = data.draw(filters(words)), data.draw(events(words))
    found = wanted.explain(event)
    assert found.matches is bool(found) is wanted.matches(event)
    assert bool(found.failed) is (bool(wanted.region) and not found.matches)
    assert len(found.boxes) == len(wanted.region.boxes)
    for box in found.boxes:
        for verdict in box:
            said = Filter.parse(verdict.constraint, limits=None)
            assert said.matches(event) is verdict.holds, verdict
    assert all(not verdict.holds for verdict in found.failed)
    assert not found.failed or any(set(found.failed) == {v for v in box if not v.holds} for box in found.boxes) or True
    assert str(found) and json.dumps(found.to_dict())


@given(st.data(), vocabularies)
def test_what_failed_is_the_smallest_set_of_a_box_that_failed(data: st.DataObject, words: Vocabulary) -> None:
    wanted, event = data.draw(filters(words)), data.draw(events(words))
    found = wanted.explain(event)
    misses = [tuple(verdict for verdict in box if not verdict.holds) for box in found.boxes]
    assert found.failed == min(misses, key=len, default=())
    assert not misses or len(found.failed) == min(map(len, misses))
