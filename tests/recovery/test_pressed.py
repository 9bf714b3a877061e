"""Publishers wait for readers of a log in memory that would lose events otherwise."""

from __future__ import annotations

from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.effects import Append, Appended
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.wire.messages import Position, Publish, Subscribe, Took

ROOM = 100_000


def publish(core: BrokerCore, first: int, now: float) -> None:
    events = tuple([Event("t", source="p", id=str(number)) for number in range(first, first + 10)])
    (append,) = [one for one in core.handle(Publish(events), "p", now) if isinstance(one, Append)]
    core.handle(Appended(append), "b", now)


def fill(core: BrokerCore, now: float) -> int:
    """Publish until publishers have to wait; return how many events that took."""
    count = 0
    while not core.is_pressed(now) and count < 1_000:
        publish(core, count, now)
        count += 10
    return count


def test_publishers_wait_before_a_reader_has_read_anything() -> None:
    """Its client takes nothing in this moment, and has not stalled yet."""
    core = BrokerCore("b", Router(make_strategy("covering")), log=OwnLog(room=ROOM))
    core.handle(Subscribe("s", Filter.all(), window=5, afresh=7), "c", 1.0)
    assert 100 < fill(core, 1.0) < 600
    assert core.recovery.tail.start == core.recovery.tail.begin, "nothing was dropped"
    assert core.is_pressed(5.9) and not core.is_pressed(6.1), "it has stalled"
    core.handle(Took((Position("s", 7, 2),)), "c", 6.2)
    publish(core, 1_000, 6.2)
    assert core.is_pressed(6.3), "it makes progress"


def test_nobody_waits_for_readers_that_keep_up() -> None:
    core = BrokerCore("b", Router(make_strategy("covering")), log=OwnLog(room=ROOM))
    core.handle(Subscribe("s", Filter.all(), window=2_000, afresh=7), "c", 1.0)
    assert fill(core, 1.0) == 1_000
