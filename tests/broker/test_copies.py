"""The past of a broker, where others have copies of it."""

from __future__ import annotations

import random

import pytest

from vestnik import Event, Filter, Replay
from vestnik.broker.catching import Replaying
from vestnik.wire.messages import Recalled, Taken

EVERYTHING = Filter.parse("TRUE")


def taken(seq: int, time: int, *, origin: str = "b1", source: str = "s", **envelope: object) -> Taken:
    """Of a stream the event `seq`, which came to whoever has it at `time`."""
    event = Event("t", {"n": seq}, source=source, id=f"{origin}-{source}-{seq}", **envelope)  # type: ignore[arg-type]
    return Taken(seq, time, event.replace(stream=(origin, source), seq=seq))


def replayed(replay: Replay, **found: list[Taken]) -> list[str]:
    replaying = Replaying(replay)
    for broker, sequence in found.items():
        replaying.take(broker, Recalled(1, tuple(sequence), 0, 0))
    return [event.id.removeprefix("b1-") for event in replaying.past(EVERYTHING)]


def test_what_came_later_to_a_history_is_not_later() -> None:
    own = [taken(2, 20), taken(3, 30), taken(4, 40)]
    copies = [taken(1, 25), taken(2, 26), taken(3, 35)]
    assert replayed(Replay(last=3), b1=own, history=copies) == ["s-2", "s-3", "s-4"]
    assert replayed(Replay(all=True), history=copies, b1=own) == ["s-1", "s-2", "s-3", "s-4"]


def test_copies_fill_what_the_broker_has_no_more() -> None:
    own = [taken(1, 10), taken(4, 40), taken(9, 45, source="r")]
    copies = [taken(3, 70), taken(5, 75), taken(8, 80, source="r")]
    assert replayed(Replay(all=True), b1=own, history=copies) == ["r-8", "s-1", "s-3", "s-4", "r-9", "s-5"]


def test_two_have_parts_of_a_broker_that_is_gone() -> None:
    found = replayed(Replay(all=True), one=[taken(3, 10), taken(4, 11)], two=[taken(1, 20), taken(2, 21), taken(3, 22)])
    assert found == ["s-1", "s-2", "s-3", "s-4"]


def test_a_cause_that_only_a_history_has_comes_before_its_effect() -> None:
    effect = taken(5, 50, source="r", causes=[("s", "b1-s-1")])
    assert replayed(Replay(all=True), b1=[effect, taken(2, 60)], history=[taken(1, 70)]) == ["s-1", "r-5", "s-2"]


@pytest.mark.parametrize("seed", range(200))
def test_whoever_has_what_and_however_late_it_came_there(seed: int) -> None:
    """Streams keep their order, each event comes once, and the last are the last."""
    chance = random.Random(seed)
    events = [taken(seq, 10 * seq, source=chance.choice("abc")) for seq in range(1, 13)]
    own = events[chance.randrange(13) :]
    kept = {name: [one for one in events if chance.random() < 0.6] for name in ("h1", "h2")}
    late = {
        name: [Taken(one.position, one.time + lag, one.event) for one in sequence]
        for name, sequence in kept.items()
        for lag in [chance.randrange(100)]
    }
    found = replayed(Replay(all=True), b1=own, **late)
    there = {one.event.id.removeprefix("b1-") for one in [*own, *kept["h1"], *kept["h2"]]}
    assert sorted(found) == sorted(there)
    for source in "abc":
        numbers = [int(id[2:]) for id in found if id.startswith(source)]
        assert numbers == sorted(numbers)
    assert found[len(found) - len(own) :] == [one.event.id.removeprefix("b1-") for one in own]
