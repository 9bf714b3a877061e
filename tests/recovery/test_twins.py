"""An event that was published at two brokers."""

from __future__ import annotations

from vestnik import Event, Filter
from vestnik.recovery.reader import Reader
from vestnik.recovery.readers import Start
from vestnik.recovery.recovery import Recovery
from vestnik.recovery.tail import Tail
from vestnik.wire.origins import Origin, Slice, Span
from vestnik.wire.packing import pack

OWN, OTHER = Origin("a", 1), Origin("b", 1)
KEY = "client", "s"


class World:
    """Feeds with one reader that follows two logs, and a window of one event that is full."""

    def __init__(self, wanted: Filter) -> None:
        self.recovery = Recovery(OWN, Tail(1 << 20), lambda event: [KEY], lambda neighbour: ())
        self.reader = Reader(KEY, wanted, 1, window=1)
        self.recovery.readers.begin(self.reader, Start())
        self.recovery.origins.found(OTHER)
        self.read(OTHER, Slice(1, (), 1), 1)
        self.live(OWN, 1, "first", 1)
        assert self.reader.number == 1 and self.reader.room == 0

    def live(self, origin: Origin, offset: int, id: str, v: int) -> None:
        event = Event("q", {"v": v}, id=id, source="p").stamped(origin.broker, offset)
        wanting = [self.reader] if self.reader.filter.matches(event) else []
        self.recovery.feeds.live(origin, [event], [pack(event)], [wanting])

    def read(self, origin: Origin, page: Slice, edge: int) -> None:
        """Answer what is read of a log."""
        for read in self.recovery._next_reads():
            if read.origin == origin:
                self.recovery.requests.read(read.request, origin, page, edge)

    def take(self) -> None:
        self.reader.take(self.reader.number)
        self.recovery.readers.made_room(KEY)

    @property
    def given(self) -> list[str]:
        flights = [flight for _, _, flight in self.recovery.feeds.giving.given]
        return [id for flight in flights for id in [event.id for event in flight.events] or ["gap"]]


def test_a_reader_without_room_was_not_given_the_event() -> None:
    """Its log loses the event before the reader has room; the repeat at the other broker is all that there is."""
    world = World(Filter.all())
    world.live(OWN, 2, "second", 1)
    world.recovery.origins.superseded(OWN)
    world.take()
    world.live(OTHER, 1, "second", 1)
    assert world.given == ["first", "gap", "second"]


def test_a_gap_is_not_an_event_that_was_given() -> None:
    world = World(Filter.all())
    world.live(OWN, 2, "second", 1)
    world.take()
    world.read(OWN, Slice(2, (), 3, Span(2, 3), "dropped"), 3)
    world.take()
    world.live(OTHER, 1, "second", 1)
    assert world.given == ["first", "gap", "second"]


def test_an_event_that_nobody_was_given_is_not_repeated() -> None:
    """While a log is out of reach nobody is given its events, which may still arrive."""
    world = World(Filter.all())
    world.take()
    world.recovery.origins.lost(OTHER)
    world.live(OTHER, 1, "second", 1)
    world.live(OWN, 2, "second", 1)
    assert world.given == ["first", "second"]


def test_an_event_that_a_filter_did_not_want_is_not_repeated() -> None:
    world = World(Filter.parse("v < 5"))
    world.take()
    world.live(OWN, 2, "second", 7)
    world.recovery.readers.change(KEY, Filter.all())
    world.read(OTHER, Slice(1, (), 1), 1)
    world.live(OTHER, 1, "second", 7)
    assert world.given == ["first", "second"]


def test_an_event_is_recognised_after_the_filter_of_a_lagging_reader_changes() -> None:
    world = World(Filter.parse("v < 9"))
    world.live(OTHER, 1, "second", 1)
    world.recovery.readers.change(KEY, Filter.all())
    world.take()
    repeat = Event("q", {"v": 1}, id="first", source="p").stamped("b", 2)
    world.read(OTHER, Slice(1, (repeat,), 3, None, "", (1,)), 3)
    assert world.given == ["first"]


def test_an_event_is_recognised_in_a_log_that_was_found_later() -> None:
    """The reader shared all feeds when it was given the event, and did not remember it by itself."""
    world = World(Filter.all())
    world.take()
    late = Origin("c", 1)
    world.recovery.origins.found(late)
    repeat = Event("q", {"v": 1}, id="first", source="p").stamped("c", 1)
    world.read(late, Slice(1, (repeat,), 2, None, "", (1,)), 2)
    assert world.given == ["first"]


def test_an_event_is_recognised_that_a_lagging_reader_read_by_itself() -> None:
    world = World(Filter.all())
    world.live(OWN, 2, "second", 1)
    world.take()
    third = Event("q", {"v": 1}, id="third", source="p")
    world.read(OWN, Slice(2, (third.stamped("a", 3),), 4, None, "", (1,)), 4)
    world.live(OTHER, 1, "third", 1)
    world.take()
    world.read(OTHER, Slice(1, (third.stamped("b", 1),), 2, None, "", (1,)), 2)
    assert world.given == ["first", "third"]
