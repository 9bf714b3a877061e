"""The judge finds what is planted, and nothing else."""

from __future__ import annotations

from jepsen.judge import judge
from jepsen.records import AnyNote, GapTold, Stored, Taken, Tried, Wanted

COUNT = 10


def tried(number: int, at: float, broker: int = 0, klass: int = 50) -> Tried:
    return Tried(at=at, source="p", broker=broker, first=number, classes=(klass,), tokens=(number,))


def stored(number: int, at: float) -> Stored:
    return Stored(at=at, source="p", broker=0, first=number, count=1)


def wanted(at: float = 0.0, low: int = 0, high: int = 99, since: float | None = None, called: float = -1) -> Wanted:
    begun = at if since is None else since
    return Wanted(called=called, at=at, subscriber="s", client="c", life=0, low=low, high=high, since=begun)


def taken(number: int, life: int = 0, origin: str = "b0", seq: int | None = None, token: int | None = None) -> Taken:
    return Taken(
        at=100.0,
        subscriber="s",
        life=life,
        source="p",
        number=number,
        token=number if token is None else token,
        origin=origin,
        seq=number if seq is None else seq,
    )


def gap(lost: int | None, at: float = 100.0) -> GapTold:
    return GapTold(at=at, subscriber="s", life=0, lost=lost, reason="")


def published() -> list[AnyNote]:
    """Events 1 to COUNT, at the times 1 to COUNT."""
    return [note for n in range(1, COUNT + 1) for note in (tried(n, at=n), stored(n, at=n + 0.5))]


def all_taken_but(*missing: int) -> list[AnyNote]:
    return [taken(n) for n in range(1, COUNT + 1) if n not in missing]


def test_nothing_is_wrong_with_a_whole_run() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but()])
    assert verdict.is_right
    assert (verdict.acknowledged, verdict.due, verdict.delivered, verdict.false_gaps) == (COUNT, COUNT, COUNT, 0)


def test_a_loss() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but(4, 7)])
    assert [finding.key.number for finding in verdict.lost] == [4, 7]


def test_a_subscriber_that_gets_nothing_loses_all() -> None:
    assert len(judge([*published(), wanted()]).lost) == COUNT


def test_what_was_not_acknowledged_may_be_missing_or_come() -> None:
    notes = [*published(), tried(COUNT + 1, at=50), wanted(), *all_taken_but()]
    assert judge(notes).is_right
    assert judge([*notes, taken(COUNT + 1)]).is_right


def test_what_was_tried_before_the_subscription_is_not_due() -> None:
    assert [one.key.number for one in judge([*published(), wanted(at=8.5)]).lost] == [9, 10]


def test_the_past_is_due_to_a_subscriber_that_replays_it() -> None:
    assert len(judge([*published(), wanted(at=8.5, since=0)]).lost) == COUNT
    assert len(judge([*published(), wanted(at=8.5, since=5.5)]).lost) == 5


def test_a_repeat_is_due_since_its_first_try() -> None:
    notes: list[AnyNote] = [tried(1, at=1), wanted(at=2), tried(1, at=3), stored(1, at=4)]
    assert judge(notes).is_right


def test_a_duplicate_by_source_and_number() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but(), taken(3, origin="b1", seq=1)])
    assert [finding.key.number for finding in verdict.duplicates] == [3]
    assert not verdict.lost and not verdict.reordered


def test_a_repeat_in_another_life_is_allowed_and_counted() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but(), taken(9, life=1), taken(10, life=1)])
    assert verdict.is_right and verdict.repeats == 2


def test_a_repeat_within_the_later_life_is_a_duplicate() -> None:
    assert len(judge([*published(), wanted(), *all_taken_but(), taken(9, life=1), taken(9, life=1)]).duplicates) == 1


def test_seq_out_of_order() -> None:
    order = [1, 2, 4, 3, 5, 6, 7, 8, 9, 10]
    verdict = judge([*published(), wanted(), *map(taken, order)])
    assert [finding.key.number for finding in verdict.reordered] == [3]


def test_numbers_out_of_order_though_seq_rises() -> None:
    verdict = judge([*published(), wanted(), taken(2, seq=1), taken(1, seq=2), *all_taken_but(1, 2)])
    assert [finding.key.number for finding in verdict.reordered] == [1]


def test_an_event_that_was_tried_twice_may_be_accepted_later() -> None:
    notes = [*published(), tried(1, at=2), wanted(), taken(2, seq=1), taken(1, seq=2), *all_taken_but(1, 2)]
    assert judge(notes).is_right


def test_two_brokers_have_no_order_between_them() -> None:
    notes = [*published(), wanted(), taken(2, origin="b1", seq=1), *all_taken_but(2)]
    assert judge(notes).is_right


def test_a_gap_covers_as_many_as_it_says() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but(4, 5, 6), gap(2)])
    assert [finding.key.number for finding in verdict.lost] == [6]
    assert (verdict.gaps, verdict.covered, verdict.false_gaps) == (1, 2, 0)


def test_a_gap_covers_nothing_that_was_published_after_it() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but(4, 9), gap(None, at=5.0)])
    assert [finding.key.number for finding in verdict.lost] == [9]


def test_a_false_gap() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but(), gap(3), gap(None)])
    assert verdict.is_right and verdict.false_gaps == 2


def test_contents_that_nobody_published() -> None:
    verdict = judge([*published(), wanted(), *all_taken_but(3), taken(3, token=77), taken(99)])
    assert [finding.key.number for finding in verdict.wrong] == [3, 99]


def test_an_event_that_no_filter_wants() -> None:
    notes: list[AnyNote] = [tried(1, at=1, klass=50), stored(1, at=2), wanted(low=60), taken(1)]
    assert [finding.key.number for finding in judge(notes).wrong] == [1]


def test_what_every_filter_wants_is_due_across_changes() -> None:
    """A change at time 5 to 6, from classes 0 to 60 to classes 40 to 99."""
    first, second = wanted(high=60), wanted(called=5, at=6, low=40)
    before: list[AnyNote] = [tried(1, at=1, klass=50), stored(1, at=2), tried(2, at=2, klass=10), stored(2, at=3)]
    during: list[AnyNote] = [
        tried(3, at=5.5, klass=50),
        stored(3, at=5.6),
        tried(4, at=5.7, klass=90),
        stored(4, at=5.8),
    ]
    after: list[AnyNote] = [tried(5, at=7, klass=90), stored(5, at=8), tried(6, at=8, klass=10), stored(6, at=9)]
    assert [one.key.number for one in judge([*before, *during, *after, first, second]).lost] == [1, 3, 5]
