"""What a client publishes at once is taken as if it had been published event by event."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event
from vestnik.broker import acceptance as acceptances
from vestnik.broker import sources
from vestnik.broker.acceptance import Acceptance

keys = st.tuples(st.sampled_from("xy"), st.integers(0, 40))
same = st.integers(0, 3).map(lambda n: [("x", 100 * n + number) for number in range(12)])
batches = st.lists(st.tuples(st.lists(keys, max_size=12) | same, st.booleans()), max_size=6)


def made(source: str, number: int) -> Event:
    return Event("t", {"n": number}, source=source, id=str(number))


@given(batches)
def test_a_batch_is_taken_as_its_events_one_by_one(given: list[tuple[list[tuple[str, int]], bool]]) -> None:
    whole, single = Acceptance(), Acceptance()
    for keys, answered in given:
        events = [made(*key) for key in keys]
        fresh, others = whole.sifted(events, answered=answered)
        each = [single.sifted([event], answered=answered) for event in events]
        assert list(fresh) == [event for found, _ in each for event in found]
        assert others == [event for _, found in each for event in found]


def test_ids_are_forgotten_by_and_by() -> None:
    acceptance = Acceptance()
    first = [made("x", number) for number in range(acceptances.FEW_EVENTS + 1)]
    assert acceptance.sifted(first, answered=False) == (first, [])
    for start in range(1_000, 1_000 + 2 * sources.IDS, 512):
        acceptance.sifted([made("x", start + number) for number in range(512)], answered=False)
    assert acceptance.sifted(first, answered=False) == (first, []), "so many have come since"
    assert acceptance.sifted(first, answered=False) == ([], [])


def test_of_large_events_a_digest_is_remembered() -> None:
    acceptance = Acceptance()
    large = Event("t", {"x": [{}] * 1_000, "y": 1}, source="x", id="1")
    assert acceptance.sifted([large]) == ([large], [])
    assert isinstance(acceptance._contents.get(("x", "1")), bytes)
    same = Event("t", {"y": 1, "x": [{}] * 1_000}, source="x", id="1")
    assert acceptance.sifted([same]) == ([], []), "it is a repetition, whatever the order of its names"
    for another in (same.replace(data={"x": [{}] * 1_000, "y": 1.0}), same.replace(type="u")):
        assert acceptance.sifted([another]) == ([], [another])
