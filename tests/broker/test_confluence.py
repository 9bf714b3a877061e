"""Sequences that become known in parts become the one that they would be if all were known."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from broker.test_recollecting import journals, taken
from vestnik.broker.confluence import Confluence
from vestnik.broker.sequences import merge
from vestnik.wire.messages import Taken


def flown(sequences: list[list[Taken]], sizes: list[int]) -> list[Taken]:
    """What comes, where each sequence is known in parts of these sizes."""
    flow = Confluence({str(place): 0 for place in range(len(sequences))})
    rests = [list(sequence) for sequence in sequences]
    found: list[Taken] = []
    step = 0
    while not flow.is_over:
        place = step % len(sequences)
        size = sizes[step % len(sizes)]
        flow.take(str(place), rests[place][:size])
        flow.open(str(place), max([one.position for one in rests[place][:size]], default=0))
        rests[place] = rests[place][size:]
        if not rests[place]:
            flow.end(str(place))
        while (came := flow.next()) is not None:
            found.append(came[1])
        step += 1
    return found


@given(journals(), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_all_comes_in_the_order_of_each(given: list[list[Taken]], sizes: list[int]) -> None:
    found = flown(given, sizes)
    assert len(found) == sum(map(len, given))
    for sequence in given:
        assert [one for one in found if one in sequence] == sequence


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=4), st.lists(st.integers(1, 4), min_size=1)
)
def test_it_is_the_order_of_what_is_known_as_a_whole(times: list[list[int]], sizes: list[int]) -> None:
    sequences = [
        [taken(broker, position, time, 0, []) for position, time in enumerate(sorted(given), start=1)]
        for broker, given in enumerate(times)
    ]
    assert flown(sequences, sizes) == list(merge(sequences))


@given(journals(), st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_causes_come_first_whatever_time_events_have(
    given: list[list[Taken]], sizes: list[int], random: Random
) -> None:
    """Brokers took each after its causes, by their clocks; the times of events are something else."""
    at = {(one.event.source, one.event.id): place for place, one in enumerate(merge(given))}
    sequences = [
        [
            Taken(one.position, at[one.event.source, one.event.id], one.event.replace(time=random.randrange(10)))
            for one in sequence
        ]
        for sequence in given
    ]
    places = {(one.event.source, one.event.id): place for place, one in enumerate(flown(sequences, sizes))}
    for sequence in given:
        for one in sequence:
            assert all(places[cause] < places[one.event.source, one.event.id] for cause in one.event.causes)
