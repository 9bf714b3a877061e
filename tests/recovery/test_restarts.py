"""What a broker must know of its own log when it starts again."""

from __future__ import annotations

from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.effects import Append, Appended, LogRead, ReadLog, Send
from vestnik.broker.stored import StoredEvent
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.wire.messages import Notify, Publish, Stored, Subscribe
from vestnik.wire.origins import Slice
from vestnik.wire.replays import Replay


def test_a_repeat_with_a_time_is_recognised_after_a_restart() -> None:
    event = Event("q", {"v": 3}, source="p", id="1", time=1_000_123_456)
    stored = StoredEvent.of("p", event.stamped("a", 5))
    core = BrokerCore("a", Router(make_strategy("simple")), stored=[stored], log=OwnLog(next=9, is_whole=False))
    (append,) = core.handle(Publish((event,), request=1), "p", 1.0)
    assert isinstance(append, Append) and append.events == ()
    assert core.handle(Appended(append), "a", 1.0) == [Send("p", Stored(1))]


def test_the_last_events_end_where_the_log_was_when_it_was_asked() -> None:
    """The disk is read later; what was accepted meanwhile is given as all that comes after the subscription."""
    log = OwnLog(next=9, is_whole=False)
    core = BrokerCore("a", Router(make_strategy("simple")), log=log, skew=5.0)
    terms = Subscribe("s", Filter.all(), afresh=7, replay=Replay(last=1))
    _, read = core.handle(terms, "client", 1.0)
    assert isinstance(read, ReadLog)
    (append,) = core.handle(Publish((Event("q"), Event("q")), request=1), "p", 2.0)
    assert isinstance(append, Append)
    core.handle(Appended(append), "a", 2.0)
    assert read.terms.start == 9 and read.terms.since is None
    effects = core.handle(LogRead(read.number, Slice(9, (), 9)), "a", 2.0)
    (notify,) = [one.message for one in effects if isinstance(one, Send) and isinstance(one.message, Notify)]
    assert isinstance(notify, Notify) and len(notify.deliveries) == 2
