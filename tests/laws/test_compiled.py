"""Compiled filters agree with the oracle on every way in: events, Arrow, JSON text; pairs and counts."""

from __future__ import annotations

import json
import pickle
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from hypothesis import given, settings

from laws.strategies import Case, cases
from vestnik import Event, Filter
from vestnik.matching import compile_filters, naive
from vestnik.matching.batch.columns import event_columns
from vestnik.matching.batch.compiled import CompiledFilters, Pairs
from vestnik.matching.batch.intervals import rank_boxes
from vestnik.model.cloudevents import to_cloudevent

half = settings(max_examples=settings().max_examples // 2)
"""For laws that compile filters several times over."""
some = settings(max_examples=settings().max_examples // 10)
"""For laws that only write and read again what others have asked."""


def expected(filters: dict[str, Filter], events: list[Event]) -> list[set[Any]]:
    return [naive.match(filters, event) for event in events]


def answer(compiled: CompiledFilters, pairs: Pairs) -> list[set[Any]]:
    found = compiled.ids_by_event(pairs)
    assert all(len(set(ids)) == len(ids) for ids in found), "a pair occurs once"
    assert len(found) == pairs.event_count
    return [set(ids) for ids in found]


def named(case: Case) -> dict[str, Filter]:
    return {f"f{number}": wanted for number, wanted in enumerate(case.filters)}


@given(cases(trees=6, events=4))
def test_pairs_and_counts_of_events_agree_with_naive(case: Case) -> None:
    filters = named(case)
    compiled = compile_filters(filters)
    want = expected(filters, case.events)
    assert answer(compiled, compiled.match_batch(case.events)) == want
    assert compiled.count_batch(case.events).tolist() == [len(ids) for ids in want]


@half
@given(cases(trees=6, events=4))
def test_json_text_agrees_with_naive(case: Case) -> None:
    filters = named(case)
    compiled = compile_filters(filters)
    lines = [event.to_json() for event in case.events]
    want = expected(filters, case.events)
    assert answer(compiled, compiled.match_json("\n".join(lines))) == want
    assert answer(compiled, compiled.match_json(lines)) == want
    assert compiled.count_json([line.encode() for line in lines]).tolist() == [len(ids) for ids in want]


@half
@given(cases(trees=6, events=4))
def test_arrow_with_data_as_json_or_msgpack_agrees_with_naive(case: Case) -> None:
    filters = named(case)
    compiled = compile_filters(filters)
    want = expected(filters, case.events)
    for encode in (lambda data: json.dumps(data), lambda data: json.dumps(data).encode(), msgspec.msgpack.encode):
        batch = arrow_batch(case.events, [encode(event.data) for event in case.events])
        assert answer(compiled, compiled.match_batch(batch)) == want
        assert compiled.count_batch(batch).tolist() == [len(ids) for ids in want]


def arrow_batch(events: list[Event], data: list[Any]) -> pa.RecordBatch:
    envelope = ("type", "source", "id", "subject", "time", "priority", "not_before", "expires", "seq")
    columns = {name: pa.array([getattr(event, name) for event in events]) for name in envelope}
    return pa.RecordBatch.from_pydict({**columns, "data": pa.array(data)})


@some
@given(cases(trees=6, events=4))
def test_the_answers_are_the_same_after_pickling_and_mapping(case: Case) -> None:
    filters = named(case)
    compiled = compile_filters(filters)
    want = answer(compiled, compiled.match_batch(case.events))
    again = pickle.loads(pickle.dumps(compiled))
    assert answer(again, again.match_batch(case.events)) == want
    with tempfile.TemporaryDirectory() as folder:
        compiled.save(Path(folder) / "index")
        mapped = CompiledFilters.load(Path(folder) / "index")
        assert answer(mapped, mapped.match_batch(case.events)) == want
        assert answer(mapped, mapped.match_json([event.to_json() for event in case.events])) == want


@some
@given(cases(trees=6, events=6))
def test_a_batch_is_answered_alike_in_one_piece_and_event_by_event(case: Case) -> None:
    compiled = compile_filters(named(case))
    whole = answer(compiled, compiled.match_batch(case.events))
    assert whole == [answer(compiled, compiled.match_batch([event]))[0] for event in case.events]
    assert np.array_equal(compiled.count_batch(case.events), [len(ids) for ids in whole])


def test_a_cloud_event_is_what_the_reader_of_documents_expects() -> None:
    event = Event(
        "t", {"a": 1}, subject="/s", time=5, not_before=6, expires=7, stream=("b", "local"), seq=8, priority=2
    )
    text = "subject = '/s' AND time = 5 AND not_before = 6 AND expires = 7 AND seq = 8 AND priority = 2 AND a = 1"
    compiled = compile_filters({"f": Filter.parse(text)})
    assert compiled.count_json(json.dumps(to_cloudevent(event))).tolist() == [1]


@some
@given(cases(trees=6, events=4))
def test_boxes_as_intervals_of_ranks_agree_with_naive(case: Case) -> None:
    filters = [wanted for wanted in case.filters if len(wanted.region.boxes) < 2]
    events = case.events
    columns = event_columns(events)
    for kept in [filters, *([one] for one in filters)]:
        boxes = rank_boxes([wanted.region for wanted in kept])
        if boxes is None:
            continue
        ranks = [columns.ranks(path, line, 0, len(events)) for path, line in zip(boxes.paths, boxes.lines, strict=True)]
        found = [
            (int(owner), event)
            for owner, low, high in zip(boxes.owners, boxes.low, boxes.high, strict=True)
            for event in range(len(events))
            if all(a <= rank[event] <= b for a, rank, b in zip(low, ranks, high, strict=True))
        ]
        want = [(n, event) for n, one in enumerate(kept) for event in range(len(events)) if one.matches(events[event])]
        assert sorted(found) == want
        assert (boxes.low[:, 0] == boxes.high[:, 0]).all()
