"""An event that was published at two brokers is given once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.worlds import ACME, CHEAP, World, ids, quote
from vestnik.broker.effects import LinkDown, LinkUp
from vestnik.model.events import Event
from vestnik.recovery.limits import RecoveryLimits
from vestnik.recovery.repeats import Repeats, Twin
from vestnik.wire.messages import Position, Subscribe, Took
from vestnik.wire.origins import Origin
from vestnik.wire.replays import Replay

X, Y = Origin("x", 1), Origin("y", 1)
PAIR = ("s", "1")


def test_the_same_event_of_another_log_is_a_twin_and_of_the_same_log_is_not() -> None:
    known = Repeats()
    assert known.add(X, [event("1", 7)]) == {}
    assert known.add(X, [event("1", 7)]) == {}, "it comes again because its reader lagged"
    assert known.add(Y, [event("2", 2), event("1", 3)]) == {3: (X, 7, 1)}
    assert known.first(PAIR) == (X, 7, 1)
    assert known.first(("s", "3")) is None and known.serial == 2


def test_what_came_live_and_is_read_again_after_what_was_missed_is_one_event() -> None:
    """A reader of its own was at the edge before the others: they still read the pages that lead to it."""
    known = Repeats()
    for offset in (7, 5, 6, 7):
        assert known.add(X, [event(str(offset), offset)]) == {}
    assert known.serial == 3 and known.first(("s", "7")) == (X, 7, 1)


def event(id: str, offset: int) -> Event:
    return Event("t", source="s", id=id).stamped("x", offset)


def test_at_least_the_last_events_are_known() -> None:
    known = Repeats(10)
    for number in range(100):
        known.add(X, [event(str(number), number)])
        assert all(known.first(("s", str(one))) for one in range(max(0, number - 9), number + 1))
    assert known.first(("s", "50")) is None


def test_what_came_within_its_age_is_known_and_what_is_twice_as_old_is_not() -> None:
    known = Repeats(age=10.0)
    for second in range(100):
        known.tell(1_000.0 + second)
        known.add(X, [event(str(second), second)])
        assert all(known.first(("s", str(one))) for one in range(max(0, second - 9), second + 1))
        assert not any(known.first(("s", str(one))) for one in range(second - 20))
    known.tell(5_000.0)
    known.add(X, [event("late", 500)])
    assert known.first(("s", "99")) is None


def test_a_clock_that_is_set_makes_nothing_older() -> None:
    known = Repeats(age=10.0)
    known.tell(1_000.0)
    known.add(X, [event("1", 1)])
    until = known.until()
    known.shift(5_000.0)
    known.tell(6_001.0)
    known.add(X, [event("2", 2)])
    assert known.first(("s", "1")) and not known.is_over(until)
    known.tell(6_011.0)
    assert known.is_over(until)


def test_a_broker_recognises_a_repeat_as_long_as_it_is_told_to() -> None:
    for seconds, expected in ((9.0, []), (25.0, ["1"])):
        world = World(limits=RecoveryLimits(repeat_window_age=10.0))
        x, y = world.meet("x"), world.meet("y", via="v")
        world.tell("c", Subscribe("s", ACME, afresh=7))
        assert ids(x.publish(quote(5, "1"))) == ["1"]
        world.now += seconds
        assert ids(x.publish(quote(5, "2"))) == ["2"]
        assert ids(y.publish(quote(5, "1"))) == expected


def took(world: World, number: int, name: str = "s") -> list[str]:
    return ids(world.tell("c", Took((Position(name, 7, number),))))


def test_a_reader_that_shares_the_feeds_gets_it_once() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    world.tell("c", Subscribe("s", ACME, afresh=7))
    assert ids(x.publish(quote(5, "1"))) == ["1"]
    assert ids(y.publish(quote(5, "1"), quote(6, "2"))) == ["2"]
    assert ids(x.publish(quote(6, "2"))) == []


def test_a_repeat_is_no_repeat_for_a_reader_that_began_between_the_two() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    world.tell("d", Subscribe("s", ACME, afresh=7))
    x.publish(quote(5, "1"))
    world.tell("c", Subscribe("s", ACME, afresh=7))
    effects = y.publish(quote(5, "1"))
    assert ids(effects, "d") == [] and ids(effects, "c") == ["1"]


def test_a_reader_that_lags_at_one_log_gets_it_of_the_other_and_once() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    world.tell("c", Subscribe("s", CHEAP, window=2, afresh=7))
    world.silent = {X}
    assert ids(x.publish(*[quote(1, str(number)) for number in range(4)])) == ["0", "1"]
    world.silent = {X, Y}
    assert took(world, 2) == []
    assert ids(y.publish(quote(1, "3"))) == ["3"], "it has not come to it at x"
    (read,) = [one.read for one in world.broker.recovery.requests._open.values() if one.read.origin == X]
    world.silent = set()
    assert ids(world.tell("u", x.page_of(read))) == ["2"]


def test_a_reader_that_read_it_by_itself_does_not_get_it_again() -> None:
    """Nobody else wanted it when it came, and its reader lagged."""
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    world.tell("c", Subscribe("s", CHEAP, window=1, afresh=7))
    x.publish(quote(1, "0"), quote(1, "1"))
    world.tell("b", LinkDown("u"))
    x.accept(quote(1, "2"))
    world.tell("b", LinkUp("u"))
    world.meet("x")
    assert [took(world, number) for number in (1, 2, 3)] == [["1"], ["2"], []]
    assert ids(y.publish(quote(1, "2"))) == []


def test_what_was_replayed_does_not_come_again_of_another_log() -> None:
    world = World()
    x, y = world.meet("x"), world.meet("y", via="v")
    x.accept(quote(1, "1"), quote(2, "2"))
    for replay in (Replay(all=True), Replay(last=2)):
        assert ids(world.tell("c", Subscribe(str(replay), ACME, afresh=7, replay=replay))) == ["1", "2"]
    assert ids(y.publish(quote(2, "2"))) == []


def test_it_is_remembered_from_when_it_was_given() -> None:
    """However long before its reader had begun."""
    world = World(limits=RecoveryLimits(repeat_window=5))
    x, y = world.meet("x"), world.meet("y", via="v")
    world.tell("c", Subscribe("s", CHEAP, window=1, afresh=7))
    for number in range(1, 21):
        assert ids(x.publish(quote(1, str(number)))) == [str(number)]
        took(world, number)
    assert ids(x.publish(quote(1, "a"), quote(1, "b"))) == ["a"]
    world.silent = {X}
    assert took(world, 21) == []
    assert ids(y.publish(quote(1, "b"))) == ["b"]
    took(world, 22)
    (read,) = [one.read for one in world.broker.recovery.requests._open.values() if one.read.origin == X]
    assert ids(world.tell("u", x.page_of(read))) == []


class OneByOne:
    """The slow twin: all that came, in order, without bounds."""

    def __init__(self) -> None:
        self.came: dict[str, Twin] = {}

    def add(self, origin: Origin, events: list[Event]) -> dict[int, Twin]:
        twins: dict[int, Twin] = {}
        for one in events:
            known = self.came.setdefault(one.id, Twin(origin, one.seq or 0, len(self.came) + 1))
            if known.origin != origin:
                twins[one.seq or 0] = known
        return twins


BATCHES = st.lists(st.tuples(st.sampled_from([X, X, X, Y]), st.sets(st.integers(1, 40), max_size=6)), max_size=12)


@given(BATCHES, st.sets(st.integers(1, 45), min_size=1, max_size=5), st.integers(0, 20))
def test_batches_of_one_log_are_remembered_like_single_events(
    batches: list[tuple[Origin, set[int]]], asked: set[int], after: int
) -> None:
    known, twin = Repeats(), OneByOne()
    for origin, numbers in batches:
        batch = [event(str(number), number) for number in sorted(numbers)]
        assert known.add(origin, batch) == twin.add(origin, batch)
    assert known.serial == len(twin.came)
    wanted = [event(str(number), number) for number in sorted(asked)]
    expected = [twin.came.get(one.id) for one in wanted]
    for origin in (X, Y):
        are_first = all(one is not None and one.origin == origin and one.serial > after for one in expected)
        assert known.are_first(origin, wanted, after) == are_first
    assert [known.first(("s", one.id)) for one in wanted] == expected
