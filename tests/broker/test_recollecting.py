"""Laws of what is found of the past: sequences become one, and pages put together are what was selected."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from vestnik import Event, Filter
from vestnik.broker import selection
from vestnik.broker.selection import Selection, recollect
from vestnik.broker.sequences import by_stream, merge
from vestnik.wire import pages
from vestnik.wire.messages import Recall, Recalled, Taken
from vestnik.wire.replays import Replay

FILTERS = [Filter.parse(text) for text in ("x < 2", "x = 3", "x > 1", "EXISTS x")]


def taken(broker: int, position: int, time: int, x: int, causes: list[tuple[str, str]]) -> Taken:
    source = f"p{broker}"
    event = Event("t", {"x": x}, source=source, id=str(position), causes=causes)
    return Taken(position, time, event.replace(stream=(f"b{broker}", source), seq=position))


@st.composite
def journals(draw: st.DrawFn) -> list[list[Taken]]:
    """What some brokers took. Causes were taken earlier: no two wait for each other."""
    clock = 0
    found: list[list[Taken]] = [[] for _ in range(draw(st.integers(1, 4)))]
    before: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, 25))):
        broker = draw(st.integers(0, len(found) - 1))
        clock += draw(st.integers(0, 2))
        time = clock + draw(st.integers(-3, 3))  # clocks of brokers differ
        causes = draw(st.lists(st.sampled_from(before), max_size=2, unique=True)) if before else []
        new = taken(broker, len(found[broker]) + 1, time, draw(st.integers(0, 4)), causes)
        found[broker].append(new)
        before.append((new.event.source, new.event.id))
    return found


@given(journals())
def test_merging_keeps_all_and_each_order_and_puts_causes_first(given: list[list[Taken]]) -> None:
    merged = list(merge(given))
    assert sorted(merged, key=_place) == sorted((one for sequence in given for one in sequence), key=_place)
    for sequence in given:
        assert [one for one in merged if one in sequence] == sequence
    places = {(one.event.source, one.event.id): place for place, one in enumerate(merged)}
    for place, one in enumerate(merged):
        assert all(places[cause] < place for cause in one.event.causes)


@given(journals(), st.randoms(use_true_random=False))
def test_what_came_in_any_order_is_put_in_that_of_its_streams(given: list[list[Taken]], random: Random) -> None:
    events = [one.event for sequence in given for one in sequence]
    random.shuffle(events)
    ordered = [events[place] for place in by_stream(events)]
    assert sorted(ordered, key=events.index) == events
    places = {(event.source, event.id): place for place, event in enumerate(ordered)}
    for event in ordered:
        assert all(places[cause] < places[event.source, event.id] for cause in event.causes)
    for sequence in given:
        seqs = [event.seq for event in ordered if event.stream == sequence[0].event.stream] if sequence else []
        assert seqs == list(range(1, len(sequence) + 1))
    assert by_stream(ordered) == list(range(len(ordered))), "what is in order stays as it is"


@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 9), max_size=12))
def test_merging_goes_by_time_where_nothing_has_a_cause(first: list[int], second: list[int]) -> None:
    sequences = [
        [taken(broker, position, time, 0, []) for position, time in enumerate(sorted(times), start=1)]
        for broker, times in enumerate((first, second))
    ]
    merged = list(merge(sequences))
    assert all(one.time <= other.time for one, other in pairwise(merged)) and len(merged) == len(first + second)


@given(st.integers(0, 1))
def test_sequences_that_wait_for_each_other_come_all_the_same(place: int) -> None:
    effects = [taken(broker, 1, broker, 0, [(f"p{1 - broker}", "1")]) for broker in (0, 1)]
    assert len(list(merge([[effects[place]], [effects[1 - place]]]))) == 2


def _place(one: Taken) -> tuple[str, int]:
    return one.event.source, one.position


REPLAYS = st.one_of(
    st.just(Replay(all=True)),
    st.integers(1, 9).map(lambda last: Replay(last=last)),
    st.integers(0, 30).map(lambda since: Replay(since=since)),
    st.integers(1, 9).map(lambda last: Replay(last=last, latest_by="x")),
    st.integers(1, 9).map(lambda most: Replay(since=5, most=most)),
)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=40),
    st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3, unique_by=str),
    REPLAYS,
    st.integers(-1, 40),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_pages_put_together_are_what_was_selected(
    stored: list[tuple[int, int]], filters: list[Filter], replay: Replay, after: int, page: int, unasked: int
) -> None:
    journal = [taken(0, position, time, x, []) for position, (time, x) in enumerate(stored, start=1)]
    recall = Recall(7, tuple(filters), replay, after=min(after, len(journal)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "PAGE", page)
        patch.setattr(selection, "UNASKED", unasked)
        parts = asked_to_the_end(recall, journal)
    direct = Selection(recall.filters, replay)
    for one in journal[max(recall.after, 0) :]:
        direct.take(one)
    assert [one for part in parts for one in part.taken] == direct.taken()
    assert "".join(part.lost for part in parts) == direct.left_out
    assert all(len(part.taken) <= page and part.number == 7 for part in parts)
    assert all(one.after < other.after or other is parts[-1] for one, other in pairwise(parts))


def asked_to_the_end(recall: Recall, journal: list[Taken]) -> list[Recalled]:
    """All parts of the answer; what does not come unasked is asked for."""
    parts: list[Recalled] = []
    after, upto = recall.after, 0
    while True:
        again = Recall(recall.number, recall.filters, recall.replay, after, upto)
        answer = list(recollect(again, journal[max(after, 0) :], len(journal)))
        assert [part.more for part in answer] == [True] * (len(answer) - 1) + [False]
        parts += answer
        after, upto = answer[-1].after, answer[-1].upto
        if after >= len(journal):
            return parts


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=30),
    REPLAYS,
    st.integers(1, 9),
)
def test_what_is_left_out_is_counted(stored: list[tuple[int, int]], replay: Replay, most: int) -> None:
    whole, bounded = [Selection((FILTERS[3],), structs.replace(replay, most=bound)) for bound in (None, most)]
    for position, (time, x) in enumerate(stored, start=1):
        whole.take(taken(0, position, time, x, []))
        bounded.take(taken(0, position, time, x, []))
    found = whole.taken()
    assert bounded.taken() == found[-most:] and not whole.left_out
    left = len(found) - most
    assert bounded.left_out.split(" ")[0] == (str(left) if left > 0 else "")
